"""A content store that is away is not one whose content is gone."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from runtime.content import ContentStore
from runtime.errors import Unavailable

CALLS: dict[str, Callable[[ContentStore], Awaitable[object]]] = {
    "put": lambda store: store.put("tenant/job/2", b"text"),
    "get": lambda store: store.get("tenant/job/1", 0, 4),
    "delete": lambda store: store.delete_under("tenant/job/"),
    "list": lambda store: store.names_under("tenant/job/"),
}


@pytest.fixture
async def store(tmp_path: Path) -> ContentStore:
    made = ContentStore(str(tmp_path / "content"))
    await made.put("tenant/job/1", b"text")
    return made


async def test_what_is_gone_is_none_and_is_nothing(store: ContentStore) -> None:
    assert await store.get("tenant/job/1", 1, 2) == b"ex"
    assert await store.names_under("tenant/job/") == ["tenant/job/1"]
    assert await store.delete_under("tenant/job/") == 1
    assert await store.get("tenant/job/1", 1, 2) is None
    assert await store.names_under("tenant/job/") == []
    assert await store.delete_under("tenant/job/") == 0


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("is_mount_point", [True, False])
async def test_a_folder_that_is_away_is_unavailable_until_it_is_back(
    store: ContentStore, tmp_path: Path, call: str, *, is_mount_point: bool
) -> None:
    folder, away = tmp_path / "content", tmp_path / "away"
    folder.rename(away)
    if is_mount_point:
        folder.mkdir()

    with pytest.raises(Unavailable, match="not there"):
        await CALLS[call](store)

    if is_mount_point:
        folder.rmdir()
    away.rename(folder)
    assert await store.get("tenant/job/1", 0, 4) == b"text"
