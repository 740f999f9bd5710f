"""Proves an export without a database: every hash, every seal, the signature, the balance."""

import hashlib
from collections import Counter
from typing import BinaryIO, NoReturn
from uuid import UUID

import msgspec

from accounting import export_lines
from accounting.export_lines import (
    FORMAT,
    PURPOSE,
    EndLine,
    EntryLine,
    HeaderLine,
    Line,
    SealLine,
    Sums,
)
from runtime import signing

LINE_BYTES_MAX = 1_048_576

_DECODER = msgspec.json.Decoder(Line)


class Rejected(Exception):
    """Why a file is not the true export; `line` is where it was seen, counted from 1."""

    def __init__(self, why: str, *, line: int) -> None:
        super().__init__(f"Line {line}: {why}")
        self.line = line


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader knows from elsewhere: the public key, and heads kept earlier by number."""

    public_key: str | None = None
    heads: dict[int, str] = {}
    unsigned: bool = False
    """Whether a file without a signature may pass: it proves sums and chain, not who wrote it."""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What a file has proved."""

    tenant_id: UUID
    seal_no: int
    head: str
    sealed: int
    unsealed: int
    balance: Sums
    public_key: str | None
    signed: bool


class Verifier:
    """Takes a file's lines one by one; the first that is wrong raises Rejected."""

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._missing_heads = dict(expected.heads)
        self._written = hashlib.sha256()
        self._lines = 0
        self._header: HeaderLine | None = None
        self._end: EndLine | None = None
        self._seal_no = 0
        self._head = ""
        self._sealed = 0
        self._waiting: list[tuple[int, bytes]] = []
        self._known: set[int] = set()
        self._accounts: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()

    def take(self, raw: bytes) -> None:
        """The next line, with its newline."""
        if self._end is not None:
            self._reject("something follows the end", at=self._lines + 2)
        line = self._decode(raw)
        if isinstance(line, EndLine):
            self._take_end(line, raw)
            return
        self._lines += 1
        self._written.update(raw)
        if (self._lines == 1) != isinstance(line, HeaderLine):
            self._reject("the header stands first, and only there")
        match line:
            case HeaderLine():
                self._take_header(line)
            case EntryLine():
                self._take_entry(line, raw)
            case SealLine():
                self._take_seal(line)

    def result(self) -> Verified:
        """What is proved once all lines were taken."""
        header = self._header
        if header is None or self._end is None:
            self._reject("the file is cut off: its end is missing")
        if self._missing_heads:
            self._reject(f"there is no seal {min(self._missing_heads)}, whose head is known")
        return Verified(
            tenant_id=header.tenant_id,
            seal_no=self._seal_no,
            head=self._head,
            sealed=self._sealed,
            unsealed=len(self._waiting),
            balance=header.balance,
            public_key=header.public_key,
            signed=self._end.signature is not None,
        )

    def _decode(self, raw: bytes) -> Line:
        if not raw.endswith(b"\n"):
            self._reject("the line is cut off or longer than any of ours", at=self._lines + 1)
        try:
            return _DECODER.decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            self._reject(f"the line is none of an export: {error}", at=self._lines + 1)

    def _take_header(self, header: HeaderLine) -> None:
        if header.format != FORMAT:
            self._reject(f"the format is {header.format!r}, not {FORMAT!r}")
        key = self._expected.public_key
        if key is not None and header.public_key != key:
            self._reject("the public key is not the one you named")
        self._header = header
        self._head = export_lines.origin(header.tenant_id)
        if self._missing_heads.pop(0, self._head) != self._head:
            self._reject("the chain does not begin where you say")

    def _take_entry(self, entry: EntryLine, raw: bytes) -> None:
        assert self._header is not None
        if entry.tenant_id != self._header.tenant_id:
            self._reject(f"entry {entry.entry_id} is another tenant's")
        if entry.entry_id in self._known:
            self._reject(f"entry {entry.entry_id} stands here for the second time")
        if self._waiting and entry.entry_id < self._waiting[-1][0]:
            self._reject(f"entry {entry.entry_id} is out of order")
        if entry.amount <= 0:
            self._reject(f"entry {entry.entry_id} moves nothing")
        self._known.add(entry.entry_id)
        self._waiting.append((entry.entry_id, raw))
        self._accounts[entry.credit] += entry.amount
        self._accounts[entry.debit] -= entry.amount
        self._kinds[entry.kind] += entry.amount

    def _take_seal(self, seal: SealLine) -> None:
        self._check_links(seal)
        if seal.head != export_lines.seal_head(seal, (raw for _, raw in self._waiting)):
            self._reject(f"seal {seal.seal_no} is not the hash of its entries")
        if self._missing_heads.pop(seal.seal_no, seal.head) != seal.head:
            self._reject(f"the head of seal {seal.seal_no} is not the one you kept")
        self._seal_no, self._head, self._sealed = seal.seal_no, seal.head, seal.entries_so_far
        self._waiting = []

    def _check_links(self, seal: SealLine) -> None:
        if seal.seal_no != self._seal_no + 1 or seal.prev_head != self._head:
            self._reject(f"seal {seal.seal_no} does not follow seal {self._seal_no}")
        counted = len(self._waiting), self._sealed + len(self._waiting)
        if not self._waiting or (seal.entries, seal.entries_so_far) != counted:
            self._reject(f"seal {seal.seal_no} has not as many entries as it says")
        if (seal.first_entry, seal.last_entry) != (self._waiting[0][0], self._waiting[-1][0]):
            self._reject(f"seal {seal.seal_no} does not begin or end where it says")

    def _take_end(self, end: EndLine, raw: bytes) -> None:
        header = self._header
        at = self._lines + 1
        if header is None:
            self._reject("there is no header", at=at)
        if raw != msgspec.json.encode(end) + b"\n":
            self._reject("the last line is not written as an export writes it", at=at)
        if end.lines != self._lines or end.sha256 != self._written.hexdigest():
            self._reject("the lines before are not those that were exported", at=at)
        self._check_signature(header, end, at)
        if (header.seal_no, header.head) != (self._seal_no, self._head):
            self._reject("the chain does not end where the header says", at=at)
        if self._sums() != header.balance or self._accounts["charged"] != (
            header.balance.charged - header.balance.refunded
        ):
            self._reject(f"the entries add up to {self._sums()}, not to {header.balance}", at=at)
        self._end = end

    def _check_signature(self, header: HeaderLine, end: EndLine, at: int) -> None:
        if end.signature is None:
            if not self._expected.unsigned or header.public_key is not None:
                self._reject("the export is not signed", at=at)
            return
        key = header.public_key or ""
        signed = signing.is_signed(key, PURPOSE, self._written.digest(), end.signature.signature)
        if not signed or end.signature.key_id != signing.key_id(key):
            self._reject("the signature is not that of the public key", at=at)

    def _sums(self) -> Sums:
        return Sums(
            available=self._accounts["available"],
            held=self._accounts["held"],
            charged=self._kinds["charge"],
            refunded=self._kinds["refund"],
            expired=self._accounts["expired"],
            granted=self._kinds["grant"],
            adjusted_out=self._kinds["adjust_out"],
        )

    def _reject(self, why: str, *, at: int | None = None) -> NoReturn:
        raise Rejected(why, line=self._lines if at is None else at)


def verify(file: BinaryIO, expected: Expected) -> Verified:
    """Reads an export once, keeping a seal's lines; raises Rejected at the first wrong line."""
    verifier = Verifier(expected)
    while raw := file.readline(LINE_BYTES_MAX):
        verifier.take(raw)
    return verifier.result()
