"""Page bodies in compressed segments, through obstore: a folder, S3, GCS or Azure by URL."""

import contextlib
from pathlib import Path

import obstore
import zstandard
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from runtime.errors import Unavailable

COMPRESSION_LEVEL = 1
MARKER = "pagetoll-content"
"""A file by which a folder is known to be the store, and not the place where it is mounted."""


class ContentStore:
    """Segments are written whole before the transaction that names them; orphans are harmless."""

    def __init__(self, place: str) -> None:
        """`place` is a folder's path, or a URL with a scheme that obstore knows."""
        self.place = place
        self._is_folder = "://" not in place
        if not self._is_folder:
            self._store: ObjectStore = from_url(place)
            return
        self._store = LocalStore(Path(place), mkdir=True)
        # A gateway may have to do with reading: those that write have made it then.
        with contextlib.suppress(OSError):
            (Path(place) / MARKER).touch()

    async def put(self, name: str, segment: bytes) -> None:
        """Writes a segment whole; raises Unavailable when the store does not take it."""
        await self._must_be_there()
        try:
            await obstore.put_async(self._store, name, segment)
        except (BaseError, OSError) as error:
            raise Unavailable("the content store does not take a segment") from error

    async def get(self, name: str, offset: int, length: int) -> bytes | None:
        """A part of a segment; None when it is gone (retention may run beside a reader)."""
        try:
            part = await obstore.get_range_async(self._store, name, start=offset, length=length)
        except FileNotFoundError:
            await self._must_be_there()
            return None
        except (BaseError, OSError) as error:
            raise Unavailable("the content store does not answer") from error
        return bytes(part)

    async def delete_under(self, prefix: str) -> int:
        """Deletes every segment below a prefix; how many there were. Repeating it is harmless."""
        await self._must_be_there()
        deleted = 0
        try:
            async for batch in obstore.list(self._store, prefix=prefix):
                names = [item["path"] for item in batch]
                await obstore.delete_async(self._store, names)
                deleted += len(names)
        except FileNotFoundError:
            return deleted
        except (BaseError, OSError) as error:
            raise Unavailable("the content store does not answer") from error
        return deleted

    async def names_under(self, prefix: str) -> list[str]:
        """The names of the segments below a prefix."""
        await self._must_be_there()
        try:
            return [
                item["path"]
                async for batch in obstore.list(self._store, prefix=prefix)
                for item in batch
            ]
        except (BaseError, OSError) as error:
            raise Unavailable("the content store does not answer") from error

    async def _must_be_there(self) -> None:
        """A folder that is not mounted is empty: nobody may take that for content that is gone."""
        if not self._is_folder:
            return
        try:
            await obstore.head_async(self._store, MARKER)
        except (BaseError, OSError) as error:
            raise Unavailable("the content store's folder is not there") from error


def compress(data: bytes) -> bytes:
    """One zstd frame. Thread-safe: each call has its own compressor."""
    return zstandard.ZstdCompressor(level=COMPRESSION_LEVEL).compress(data)


def expanded_bytes(frame: bytes) -> int:
    """How long the data of a frame of ours is."""
    return zstandard.get_frame_parameters(frame).content_size


def expand(frame: bytes, *, bytes_max: int) -> bytes:
    """The data of a frame of ours; raises ValueError when it is damaged or too long."""
    try:
        # The library heeds max_output_size only where a frame does not state its size.
        if expanded_bytes(frame) > bytes_max:
            raise ValueError("a stored page is too long")
        return zstandard.ZstdDecompressor().decompress(frame, max_output_size=bytes_max)
    except zstandard.ZstdError as error:
        raise ValueError("a stored page is damaged") from error
