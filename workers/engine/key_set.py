"""A set of sixteen-byte keys in a third of the memory that Python's own takes."""

from collections.abc import Iterable

KEY_BYTES = 16
_PLAIN_KEYS = 65_536
_SHARDS = 256
_SMALLEST_SLOTS = 8
_EMPTY = bytes(KEY_BYTES)


class KeySet:
    """Keys that are hashes already, so that their own bytes say where they stand.

    24 to 48 bytes a key, against about 110 in a set of bytes. It is cut into shards because the
    one that grows is written anew, which for a million keys would stop an event loop. The first
    keys are in a plain set, which is quicker: the links that every page of a site has are there.
    """

    def __init__(self, keys: Iterable[bytes] = (), *, plain: int = _PLAIN_KEYS) -> None:
        """`plain`: how many keys come first."""
        self._plain = plain
        self._first: set[bytes] = set()
        self._shards = [_Shard() for _ in range(_SHARDS)]
        self._in_shards = 0
        for key in keys:
            self.add(key)

    def __len__(self) -> int:
        return len(self._first) + self._in_shards

    def __contains__(self, key: bytes) -> bool:
        return key in self._first or (self._in_shards > 0 and self._shards[key[0]].holds(key))

    def add(self, key: bytes) -> bool:
        """Whether it is new; raises ValueError for what is no key of sixteen bytes."""
        if len(key) != KEY_BYTES or key == _EMPTY:
            raise ValueError("a key is sixteen bytes, not all of them zero")
        if key in self:
            return False
        if len(self._first) < self._plain:
            self._first.add(key)
        else:
            self._shards[key[0]].add(key)
            self._in_shards += 1
        return True

    def discard(self, key: bytes) -> None:
        if key in self._first:
            self._first.discard(key)
        else:
            self._in_shards -= self._shards[key[0]].discard(key)


class _Shard:
    """Open addressing with linear probing in one block of bytes, at most two thirds full."""

    __slots__ = ("_count", "_slots", "_table")

    def __init__(self) -> None:
        self._slots = _SMALLEST_SLOTS
        self._table = bytearray(self._slots * KEY_BYTES)
        self._count = 0

    def holds(self, key: bytes) -> bool:
        place = self._place(key)
        return self._table[place : place + KEY_BYTES] == key

    def add(self, key: bytes) -> None:
        """Of a key that it does not hold."""
        if 3 * (self._count + 1) > 2 * self._slots:
            self._grow()
        self._put(key)

    def discard(self, key: bytes) -> bool:
        """Those that stand behind it move up, so that the next search meets no gap."""
        place = self._place(key)
        if self._table[place : place + KEY_BYTES] != key:
            return False
        self._clear(place)
        while (behind := self._after(place)) != _EMPTY:
            place = (place + KEY_BYTES) % len(self._table)
            self._clear(place)
            self._put(behind)
        return True

    def _place(self, key: bytes) -> int:
        """Where the key is, or where it would be put."""
        table, end = self._table, self._slots * KEY_BYTES
        place = int.from_bytes(key[1:9], "little") % self._slots * KEY_BYTES
        while (found := table[place : place + KEY_BYTES]) != key and found != _EMPTY:
            place += KEY_BYTES
            if place == end:
                place = 0
        return place

    def _after(self, place: int) -> bytes:
        place = (place + KEY_BYTES) % len(self._table)
        return bytes(self._table[place : place + KEY_BYTES])

    def _put(self, key: bytes) -> None:
        place = self._place(key)
        self._table[place : place + KEY_BYTES] = key
        self._count += 1

    def _clear(self, place: int) -> None:
        self._table[place : place + KEY_BYTES] = _EMPTY
        self._count -= 1

    def _grow(self) -> None:
        table = self._table
        self._slots *= 2
        self._table = bytearray(self._slots * KEY_BYTES)
        self._count = 0
        for place in range(0, len(table), KEY_BYTES):
            key = bytes(table[place : place + KEY_BYTES])
            if key != _EMPTY:
                self._put(key)
