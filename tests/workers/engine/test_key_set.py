"""A set of keys is a set, and takes a third of the memory of one."""

import tracemalloc
from collections.abc import Iterator
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.engine.key_set import KEY_BYTES, KeySet

MANY = 100_000
# Few first bytes and few places, so that keys meet one another.
CROWDED = st.tuples(st.sampled_from([0, 255]), st.integers(0, 9), st.integers(1, 9)).map(
    lambda parts: bytes([parts[0], parts[1], *bytes(KEY_BYTES - 3), parts[2]])
)


def keys(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield blake2b(number.to_bytes(8, "big"), digest_size=KEY_BYTES).digest()


@given(st.lists(st.tuples(st.booleans(), CROWDED)), st.integers(0, 9))
def test_it_holds_what_a_set_holds(steps: list[tuple[bool, bytes]], plain: int) -> None:
    ours, theirs = KeySet(plain=plain), set()
    for is_added, key in steps:
        if is_added:
            assert ours.add(key) == (key not in theirs)
            theirs.add(key)
        else:
            ours.discard(key)
            theirs.discard(key)
        assert len(ours) == len(theirs)
        assert all((key in ours) == (key in theirs) for _, key in steps)


def test_it_grows() -> None:
    held = KeySet(keys(MANY))

    assert len(held) == MANY
    assert all(key in held for key in keys(MANY))
    assert not any(key[::-1] in held for key in keys(MANY))


def test_it_takes_at_most_forty_eight_bytes_a_key() -> None:
    tracemalloc.start()
    try:
        held = KeySet(keys(MANY), plain=0)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert taken < 50 * len(held)


@pytest.mark.parametrize("key", [b"", b"short", bytes(KEY_BYTES), bytes(KEY_BYTES + 1)])
def test_what_is_no_key_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match="sixteen bytes"):
        KeySet().add(key)
