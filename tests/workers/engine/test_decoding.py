"""Content codings: every form that sites send, and every bomb."""

import gzip
import os
import zlib

import pytest
import zstandard

from workers.engine.decoding import ACCEPT_ENCODING, BodyDecoder
from workers.engine.outcomes import FetchFailed

MEBIBYTE = 1024 * 1024
LIMIT = 10 * MEBIBYTE
TEXT = b"".join(b"line %d of a page\n" % number for number in range(9000))


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def wide_zstandard(data):
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(data) + packer.flush()


def decode(encoding, data, *, step=65536, **options):
    decoder = BodyDecoder(encoding, **{"limit_bytes": LIMIT, **options})
    parts = [decoder.feed(data[at : at + step]) for at in range(0, len(data), step)]
    decoder.finish()
    return b"".join(parts)


FORMS = {
    "nothing": (None, TEXT),
    "identity": ("identity", TEXT),
    "gzip": ("gzip", gzip.compress(TEXT)),
    "x-gzip": ("X-GZip", gzip.compress(TEXT)),
    "gzip members": ("gzip", gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:])),
    "gzip with padding": ("gzip", gzip.compress(TEXT) + b"\0" * 100),
    "deflate": ("deflate", zlib.compress(TEXT)),
    "raw deflate": ("deflate", raw_deflate(TEXT)),
    "zstd": ("zstd", zstandard.compress(TEXT)),
    "zstd frames": ("zstd", zstandard.compress(TEXT[:99]) + zstandard.compress(TEXT[99:])),
    "two codings": ("zstd, gzip", gzip.compress(zstandard.compress(TEXT))),
}


@pytest.mark.parametrize("step", [1, 7, 65536])
@pytest.mark.parametrize(("encoding", "data"), FORMS.values(), ids=FORMS)
def test_every_form_is_decoded_however_it_is_cut(encoding, data, step):
    assert decode(encoding, data, step=step) == TEXT


@pytest.mark.parametrize("encoding", [None, "gzip", "deflate", "zstd", "gzip, gzip"])
def test_an_empty_body_stays_empty(encoding):
    assert decode(encoding, b"") == b""


BIG = b"\0" * (64 * MEBIBYTE)
BOMBS = {
    "gzip": ("gzip", gzip.compress(BIG)),
    "deflate": ("deflate", zlib.compress(BIG)),
    "zstd": ("zstd", zstandard.compress(BIG)),
    "double gzip": ("gzip, gzip", gzip.compress(gzip.compress(BIG))),
    "double zstd": ("zstd, zstd", zstandard.compress(zstandard.compress(BIG))),
    "filler between": ("gzip, gzip", gzip.compress(gzip.compress(b"") * (4 * MEBIBYTE), 1)),
    "plain": (None, b"x" * (LIMIT + 1)),
}


@pytest.mark.parametrize(("encoding", "data"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_too_large(encoding, data):
    with pytest.raises(FetchFailed) as failure:
        decode(encoding, data)
    assert (failure.value.reason, failure.value.detail) == ("limit_reached", "too_large")


def test_no_call_gives_much_more_than_the_limit():
    decoder = BodyDecoder("zstd", limit_bytes=LIMIT, cut=True)
    data = os.urandom(MEBIBYTE) + BIG
    assert decoder.feed(zstandard.compress(data)) == data[:LIMIT]


def test_a_ratio_over_200_is_a_bomb_only_beyond_one_mebibyte():
    below = gzip.compress(b"\0" * MEBIBYTE)
    assert len(decode("gzip", below)) == MEBIBYTE > 200 * len(below)
    with pytest.raises(FetchFailed, match="larger"):
        decode("gzip", gzip.compress(b"\0" * (2 * MEBIBYTE)))


@pytest.mark.parametrize("encoding", ["gzip, gzip, gzip", ",".join(["gzip"] * 200)])
def test_more_than_two_codings_are_too_large(encoding):
    with pytest.raises(FetchFailed) as failure:
        BodyDecoder(encoding, limit_bytes=LIMIT)
    assert failure.value.detail == "too_large"


BROKEN = {
    "not gzip": ("gzip", b"<html>"),
    "not zstd": ("zstd", b"<html>"),
    "not deflate": ("deflate", b"\xff" * 99),
    "wide window": ("zstd", wide_zstandard(os.urandom(MEBIBYTE))),
    "bad checksum": ("gzip", gzip.compress(TEXT)[:-8] + b"\0" * 8),
}


@pytest.mark.parametrize(("encoding", "data"), BROKEN.values(), ids=BROKEN)
def test_a_body_that_is_not_what_it_says_is_refused(encoding, data):
    with pytest.raises(FetchFailed) as failure:
        decode(encoding, data)
    assert (failure.value.reason, failure.value.detail) == ("upstream_error", "encoding")


@pytest.mark.parametrize("encoding", ["br", "compress", "gzip, br"])
def test_a_coding_without_a_bounded_decoder_is_refused_and_never_asked_for(encoding):
    assert encoding.rpartition(" ")[2] not in ACCEPT_ENCODING
    with pytest.raises(FetchFailed) as failure:
        BodyDecoder(encoding, limit_bytes=LIMIT)
    assert failure.value.detail == "encoding"


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(TEXT)[:-9]),
        ("zstd", zstandard.compress(TEXT)[:-9]),
        ("deflate", zlib.compress(TEXT)[:-5]),
        ("gzip", b"\x1f"),
    ],
)
def test_a_body_that_stops_midway_is_truncated(encoding, data):
    with pytest.raises(FetchFailed) as failure:
        decode(encoding, data)
    assert failure.value.detail == "truncated"
    assert failure.value.retryable


@pytest.mark.parametrize(("encoding", "data"), FORMS.values(), ids=FORMS)
def test_a_body_may_be_cut_at_the_limit(encoding, data):
    decoder = BodyDecoder(encoding, limit_bytes=1000, cut=True)
    assert decoder.feed(data) == TEXT[:1000]
    assert decoder.full
    decoder.finish()
