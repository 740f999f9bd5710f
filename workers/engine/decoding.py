"""Content codings undone in small steps, so that no body grows beyond its limit."""

import zlib
from typing import Protocol

import zstandard

from workers.engine.outcomes import FetchFailed

ACCEPT_ENCODING = "gzip, deflate, zstd"  # only what can be stopped midway; no brotli

CODINGS_LIMIT = 2
RATIO_LIMIT = 200
RATIO_JUDGED_ABOVE_BYTES = 1024 * 1024
STEP_BYTES = 64 * 1024
SLACK_BETWEEN_BYTES = 1024 * 1024
ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# A block of 4 bytes can stand for 128 KiB: this many bytes give at most 8 MiB at once.
ZSTD_STEP_BYTES = 256

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = 16 + zlib.MAX_WBITS
_ZLIB_METHOD = 8


class Decoder(Protocol):
    """Undoes one coding; `budget` is how many bytes it may still give."""

    finished: bool

    def feed(self, data: bytes, budget: int) -> bytes: ...


class BodyDecoder:
    """Undoes the codings of one body, chunk by chunk.

    Raises FetchFailed: `limit_reached/too_large` over `limit_bytes`, over 200 times the bytes
    received (beyond 1 MiB) or for more than two codings; `upstream_error/encoding` for others.
    With `cut` a body over `limit_bytes` ends there, and `full` says so.
    """

    def __init__(
        self, content_encoding: str | None, *, limit_bytes: int, cut: bool = False
    ) -> None:
        names = [name.strip().lower() for name in (content_encoding or "").split(",")]
        codings = [name for name in names if name not in ("", "identity")]
        if len(codings) > CODINGS_LIMIT:
            raise _too_large()
        self.full = False
        self._cut = cut
        self._limit = limit_bytes
        self._received = 0
        self._stages = [_decoder(coding) for coding in reversed(codings)]  # the last is outermost
        self._given = [0] * len(self._stages)
        self._passed = 0

    def feed(self, chunk: bytes) -> bytes:
        """What `chunk` adds to the body; nothing may be fed after an error."""
        self._received += len(chunk)
        data = self._run(0, chunk) if self._stages else chunk
        self._passed += len(data)
        if self._is_bomb() or (self._passed > self._limit and not self._cut):
            raise _too_large()
        over = self._passed - self._limit
        if over >= 0 and self._cut:
            self.full = True
            return data[: len(data) - over]
        return data

    def finish(self) -> None:
        """Raises FetchFailed `upstream_error/truncated` where a coded body stops midway."""
        if self._received and not self.full and not all(stage.finished for stage in self._stages):
            raise FetchFailed(
                "upstream_error", "truncated", message="The body ended too early.", retryable=True
            )

    def _is_bomb(self) -> bool:
        return (
            self._passed > RATIO_JUDGED_ABOVE_BYTES and self._passed > self._received * RATIO_LIMIT
        )

    def _run(self, position: int, data: bytes) -> bytes:
        """Every stage is bounded: one between may not swell for the next to swallow."""
        stage, is_last = self._stages[position], position + 1 == len(self._stages)
        # What a stage between gives is not the body: it may be a little longer than that.
        limit = self._limit if is_last else self._limit + SLACK_BETWEEN_BYTES
        pieces: list[bytes] = []
        while self._given[position] <= limit and self._given[-1] <= self._limit:
            budget = limit - self._given[position] + 1
            try:
                piece = stage.feed(data, min(STEP_BYTES, budget))
            except (zlib.error, zstandard.ZstdError):
                raise _bad_encoding() from None
            if not piece:
                return b"".join(pieces)
            self._given[position] += len(piece)
            pieces.append(piece if is_last else self._run(position + 1, piece))
            data = b""
        if self._cut and self._given[-1] > self._limit:
            return b"".join(pieces)
        raise _too_large()


class _Inflate:
    """gzip with any number of members, or deflate in its zlib or raw form (RFC 1950 to 1952)."""

    def __init__(self, *, gzip: bool) -> None:
        self.finished = False
        self._gzip = gzip
        self._member: zlib._Decompress | None = None
        self._waiting = b""

    def feed(self, data: bytes, budget: int) -> bytes:
        self._waiting += data
        while True:
            member = self._member or self._begin()
            if member is None:
                return b""
            # Asked even when nothing waits: zlib keeps output back that was over the budget.
            piece = member.decompress(self._waiting, budget)
            self._waiting = member.unconsumed_tail
            if member.eof:
                self._waiting, self._member, self.finished = member.unused_data, None, True
            if piece or not self._waiting:
                return piece

    def _begin(self) -> "zlib._Decompress | None":
        if len(self._waiting) < len(_GZIP_MAGIC):
            return None
        if self.finished and not (self._gzip and self._waiting.startswith(_GZIP_MAGIC)):
            self._waiting = b""  # what follows the body is padding, as browsers see it
            return None
        self.finished = False
        self._member = zlib.decompressobj(self._window_bits())
        return self._member

    def _window_bits(self) -> int:
        if self._gzip:
            return _GZIP_WBITS
        header = int.from_bytes(self._waiting[:2], "big")
        is_zlib = header % 31 == 0 and (header >> 8) & 0x0F == _ZLIB_METHOD
        return zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS


class _Zstandard:
    """Frames of Zstandard (RFC 8878) that need no window over 8 MiB."""

    def __init__(self) -> None:
        self.finished = False
        self._codec = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._waiting = b""

    def feed(self, data: bytes, budget: int) -> bytes:
        # This decoder knows no budget, so it is given so little that it cannot give much.
        del budget
        self._waiting += data
        position, piece = 0, b""
        while position < len(self._waiting) and not piece:
            step = self._waiting[position : position + ZSTD_STEP_BYTES]
            position += len(step)
            frame = self._frame or self._codec.decompressobj()
            piece = frame.decompress(step)
            self._frame = None if frame.eof else frame
            self.finished = frame.eof
            position -= len(frame.unused_data) if frame.eof else 0
        self._waiting = self._waiting[position:]
        return piece


def _decoder(coding: str) -> Decoder:
    if coding in ("gzip", "x-gzip"):
        return _Inflate(gzip=True)
    if coding == "deflate":
        return _Inflate(gzip=False)
    if coding == "zstd":
        return _Zstandard()
    raise _bad_encoding()


def _too_large() -> FetchFailed:
    return FetchFailed("limit_reached", "too_large")


def _bad_encoding() -> FetchFailed:
    return FetchFailed(
        "upstream_error", "encoding", message="The body's content coding cannot be undone."
    )
