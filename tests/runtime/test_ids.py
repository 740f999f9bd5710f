"""Ids: version 7, in the order in which they were made, and hard to guess."""

import uuid

from runtime import clock, ids


def test_ids_come_in_the_order_in_which_they_were_made() -> None:
    made = [ids.new_id() for _ in range(20_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_an_id_is_a_uuid_of_version_7_and_tells_its_time() -> None:
    before = int(clock.now().timestamp() * 1000)
    made = ids.new_id()
    after = int(clock.now().timestamp() * 1000)

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before <= made.int >> 80 <= after + 10


def test_random_text_is_base_62_of_the_length_asked_for() -> None:
    text = ids.random_text(43)

    assert len(text) == 43
    assert set(text) <= set(ids.ALPHABET)
    assert ids.random_text(43) != text
