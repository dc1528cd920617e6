# SPDX-License-Identifier: Apache-2.0
"""Hostile and damaged pickles: nothing runs, nothing grows, and the message names what was tried."""

from __future__ import annotations

import os
import pickle
import struct
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import (
    PROTO2,
    PROTO4,
    PROTO5,
    STOP,
    archive,
    complete,
    group,
    integer,
    named,
    storage,
    tensor,
    text,
)

from gharial.checkpoint.torchzip import load
from gharial.checkpoint.unpickle import MAX_DEPTH, MAX_INSTRUCTIONS, unpickle
from gharial.errors import BadInput

CODE = "would run code"


def read(data: bytes) -> Any:
    """The pickle's object, any storage being accepted."""
    return unpickle(data, "m.pt: a/data.pkl", lambda ref: None)


def refused(data: bytes, *parts: str) -> BadInput:
    """Asserts that the pickle is refused with all parts in the message, in little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(BadInput) as caught:
            read(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(data) + (80 << 20)
    message = str(caught.value)
    for part in ("m.pt: a/data.pkl", *parts):
        assert part in message
    complete(caught.value)
    assert len(message) < 1500
    return caught.value


def stack_global(module: str, name: str) -> bytes:
    return text(module) + text(name) + b"\x93"


GADGETS = [
    ("os", "system"),
    ("posix", "system"),
    ("nt", "system"),
    ("subprocess", "Popen"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "getattr"),
    ("__builtin__", "eval"),
    ("builtins", "__import__"),
    ("builtins", "bytearray"),
    ("importlib", "import_module"),
    ("runpy", "run_path"),
    ("torch", "load"),
    ("torch", "hub.load"),
    ("torch._utils", "_rebuild_tensor_v2.__globals__"),
    ("torch._utils", "_rebuild_tensor"),
    ("torch._utils._rebuild_tensor_v2", "__globals__"),
    ("torch.serialization", "load"),
    ("torch", "FloatStorage.from_file"),
    ("collections", "OrderedDict.__init__"),
    ("collections.OrderedDict", "__init__"),
    ("numpy", "load"),
    ("_codecs", "decode"),
    ("Torch._Utils", "_rebuild_tensor_v2"),
    ("torch._utils", " _rebuild_tensor_v2"),
]


@pytest.mark.parametrize(("module", "name"), GADGETS)
def test_names_outside_the_list(module: str, name: str) -> None:
    for head, lookup in ((PROTO2, named(module, name)), (PROTO4, stack_global(module, name))):
        for call in (group(text("true")) + b"R", b")R", b""):
            error = refused(head + lookup + call + STOP, CODE, f"{module}.{name}")
            assert "torch.load" in (error.remedy or "")


class Evil:
    """Makes a file when a careless reader unpickles it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mknod, (str(self.marker),)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_real_exploit_does_not_run(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "marker"
    data = pickle.dumps({"state_dict": Evil(marker)}, protocol)
    pickle.loads(data)
    assert marker.exists(), "the exploit must work, or this test shows nothing"
    marker.unlink()
    (tmp_path / "m.pt").write_bytes(archive(data))
    with pytest.raises(BadInput, match=f"{CODE}.*posix.mknod"):
        load(tmp_path / "m.pt")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("instructions", "name"),
    [
        (b"(ios\nsystem\n", "INST"),
        (b"(" + named("collections", "OrderedDict") + b"o", "OBJ"),
        (named("collections", "OrderedDict") + b")\x81", "NEWOBJ"),
        (named("collections", "OrderedDict") + b")}\x92", "NEWOBJ_EX"),
        (b"\x82\x01", "EXT1"),
        (b"\x83\x01\x00", "EXT2"),
        (b"\x84\x01\x00\x00\x00", "EXT4"),
        (b"}}b", "BUILD"),
        (named("torch._utils", "_rebuild_tensor_v2") + b"}b", "BUILD"),
        (named("collections", "OrderedDict") + b")R(tb", "BUILD"),
    ],
)
def test_instructions_that_make_objects(instructions: bytes, name: str) -> None:
    refused(PROTO4 + instructions + STOP, CODE, name)


def test_nested_getattr() -> None:
    # getattr(getattr(builtins, ...), ...): the classic way around a list of names.
    inner = named("builtins", "getattr") + group(named("builtins", "dict"), text("get")) + b"R"
    refused(
        PROTO2 + named("builtins", "getattr") + group(inner, text("__self__")) + b"R" + STOP, CODE, "builtins.getattr"
    )


@pytest.mark.parametrize("value", [b"N", integer(3), text("os.system"), b"]", b")"])
def test_calls_of_what_is_no_function(value: bytes) -> None:
    refused(PROTO2 + value + b")R" + STOP, CODE, "calls an object")


def test_name_that_is_computed() -> None:
    refused(PROTO4 + text("os") + integer(3) + b"\x93" + STOP, CODE, "computes")


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (("collections", "OrderedDict"), group(b"]")),
        (("builtins", "bytes"), group(integer(1 << 40))),
        (("__builtin__", "bytes"), group(text("a"))),
        (("torch", "FloatStorage"), b")"),
        (("torch", "FloatStorage"), group(integer(1 << 40))),
        (("_codecs", "encode"), group(text("a"), text("rot13"))),
        (("_codecs", "encode"), group(text("€"), text("latin1"))),
        (("_codecs", "encode"), b")"),
        (("torch._utils", "_rebuild_tensor_v2"), b")"),
        (("torch._utils", "_rebuild_parameter"), group(b"N", b"N", b"N")),
    ],
)
def test_allowed_names_with_other_arguments(function: tuple[str, str], arguments: bytes) -> None:
    refused(PROTO2 + named(*function) + arguments + b"R" + STOP)


@pytest.mark.parametrize("kind", ["ComplexFloatStorage", "QInt8Storage", "UntypedStorage"])
def test_other_element_types(kind: str) -> None:
    error = refused(PROTO2 + storage("0", 1, kind) + STOP, "element type that is not supported", f"torch.{kind}")
    assert CODE not in str(error)


# Tensors

FOUR = storage("0", 4)


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (0, (5,), (1,)),
        (1, (4,), (1,)),
        (4, (1,), (1,)),
        (0, (2, 3), (3, 1)),
        (0, (2, 2), (3, 1)),
        (-1, (1,), (1,)),
        (0, (-1,), (1,)),
        (3, (2,), (-1,)),
        (0, (1000, 1000), (0, 0)),
        (0, (5,), (0,)),
        (0, (1 << 40,), (0,)),
        (0, (1 << 62, 1 << 62), (0, 0)),
        (0, (0, 1 << 62), (1, 1)),
        (0, (2,), (1 << 62,)),
        (1 << 62, (1,), (1,)),
        (5, (0,), (1,)),
        (0, (1,) * 9, (1,) * 9),
        (0, (2, 2), (1,)),
    ],
)
def test_views_outside_their_storage(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    refused(PROTO2 + tensor(FOUR, offset, shape, strides) + STOP, "does not fit its storage")


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [(0, (4,), (1,)), (0, (2, 2), (1, 2)), (3, (), ()), (1, (2, 1), (2, 9)), (4, (0, 3), (3, 1)), (0, (2, 2), (1, 1))],
)
def test_views_inside_their_storage(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    ref = read(PROTO2 + tensor(FOUR, offset, shape, strides) + STOP)
    assert (ref.offset, ref.shape, ref.strides) == (offset, shape, strides)


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (group(FOUR, storage("0", 5)), "in two ways"),
        (group(FOUR, storage("0", 4, "IntStorage")), "in two ways"),
        (storage("0", -1), "damaged storage"),
        (group(text("storage"), named("torch", "FloatStorage"), text("0"), text("cpu"), text("4")) + b"Q", "damaged"),
        (group(text("storage"), text("FloatStorage"), text("0"), text("cpu"), integer(4)) + b"Q", "without an element"),
        (group(text("module"), integer(1)) + b"Q", "outside itself"),
        (text("/etc/passwd") + b"Q", "outside itself"),
        (FOUR, "bare storage"),
        (named("torch", "FloatStorage"), "leaves a class"),
        (named("torch._utils", "_rebuild_tensor_v2") + group(*[b"N"] * 6) + b"R", "damaged tensor"),
        (tensor(FOUR, 0, (4,), (1,), b"}" + text("a") + b"Ns"), "hooks or metadata"),
        (tensor(FOUR, 0, (9,), (1,)).replace(integer(9), b"\x88"), "size or stride that is no integer"),
        (tensor(FOUR, 0, (9,), (1,)).replace(integer(9), text("4")), "size or stride that is no integer"),
        (tensor(FOUR, 9, (1,), (1,)).replace(integer(9), b"N"), "size or stride that is no integer"),
        (tensor(FOUR, 0, (9,), (1,)).replace(group(integer(9)), b"]"), "size or stride that is no integer"),
    ],
)
def test_damaged_tensors(pickled: bytes, message: str) -> None:
    refused(PROTO2 + pickled + STOP, message)


def test_views_again_and_again() -> None:
    # Each view is sound; together they would be copied into 64 times the storage.
    big = storage("0", 1 << 20) + b"q\x00"
    views = b"".join(tensor(b"h\x00", 0, (1 << 20,), (1,)) for _ in range(63))
    refused(PROTO2 + group(tensor(big, 0, (1 << 20,), (1,)), views) + STOP, "again and again")


# Bombs


def test_nesting() -> None:
    assert read(PROTO4 + b"]" * MAX_DEPTH + b"a" * (MAX_DEPTH - 1) + STOP)
    refused(PROTO4 + b"]" * (MAX_DEPTH + 2) + b"a" * (MAX_DEPTH + 1) + STOP, "nests deeper")
    refused(PROTO4 + b"]" * 90_000 + b"a" * 89_999 + STOP, "nests deeper")
    refused(PROTO4 + b")" + b"\x85" * 90_000 + STOP, "nests deeper")


def test_nesting_through_a_shared_object() -> None:
    # A part that was met at a shallow place counts at the deep one too.
    deep = b"]" * 40 + b"a" * 39 + b"q\x00"
    refused(PROTO4 + b"(" + deep + b"]" * 40 + b"h\x00" + b"a" * 40 + b"t" + STOP, "nests deeper")


@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
def test_doubling(kind: str) -> None:
    # Thirty levels of [x, x]: 120 bytes that stand for 2**30 nodes.
    level = {
        "list": b"q\x00](h\x00h\x00e",
        "tuple": b"q\x00h\x00\x86",
        "dict": b"q\x00}(K\x00h\x00K\x01h\x00u",
    }[kind]
    refused(PROTO4 + b"(" + b"N" + level * 30 + b"t" + STOP, "far larger than the file")


def test_repeated_text() -> None:
    big = text("x" * 1_000_000) + b"q\x00"
    refused(PROTO4 + b"(" + big + b"h\x00" * 1000 + b"t" + STOP, "far larger than the file")


def test_doubled_tuple_as_key() -> None:
    # Its hash would take 2**30 steps.
    key = b"N" + b"q\x00h\x00\x86" * 30
    refused(PROTO4 + b"}" + key + b"Ns" + STOP, "neither text nor an integer")


def test_keys_with_one_hash() -> None:
    # Multiples of 2**61 - 1 all hash to 0, so a dict of them takes quadratic time.
    keys = b"".join(integer(k * (2**61 - 1)) + b"N" for k in range(1, 100))
    refused(PROTO4 + b"}(" + keys + b"u" + STOP, "neither text nor an integer")


def test_object_that_contains_itself() -> None:
    refused(PROTO4 + b"]q\x00h\x00a" + STOP, "contains itself")
    refused(PROTO4 + b"}q\x00K\x01h\x00s" + STOP, "contains itself")
    refused(PROTO4 + b"]q\x00(h\x00ta" + STOP, "contains itself")


def test_too_many_instructions() -> None:
    refused(PROTO4 + b"(" + b"N" * (MAX_INSTRUCTIONS + 10) + b"t" + STOP, "too long")
    refused(PROTO4 + b"(" + b"}" * (MAX_INSTRUCTIONS + 10) + b"t" + STOP, "too long")


@pytest.mark.parametrize("code", [b"X\xff\xff\xff\x7f", b"B\xff\xff\xff\xff", b"\x8a\xff"])
@pytest.mark.parametrize("tail", [b"", b"abc"])
def test_lengths_beyond_the_end(code: bytes, tail: bytes) -> None:
    refused(PROTO4 + code + tail, "cut short")


@pytest.mark.parametrize("code", [b"\x8d", b"\x8e", b"\x95"])
@pytest.mark.parametrize("size", [1 << 30, 1 << 62, (1 << 64) - 1])
def test_lengths_of_64_bits(code: bytes, size: int) -> None:
    refused(PROTO4 + code + struct.pack("<Q", size) + b"abc", "cut short")


def test_memo_index_takes_no_memory() -> None:
    assert read(PROTO4 + b"Nr\xff\xff\xff\xff" + STOP) is None


def test_wide_text_is_bounded() -> None:
    # One character outside the basic plane makes Python keep four bytes for each.
    data = PROTO4 + text("a" * 4_000_000 + "😀") + STOP
    tracemalloc.start()
    try:
        assert len(read(data)) == 4_000_001
        assert tracemalloc.get_traced_memory()[1] < 8 * len(data)
    finally:
        tracemalloc.stop()


# Damage


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not start"),
        (b"(dp0\n.", "does not start"),
        (b"\x80\x01N.", "unknown protocol"),
        (b"\x80\x06N.", "unknown protocol"),
        (b"\x80", "cut short"),
        (PROTO2, "cut short"),
        (PROTO2 + PROTO2 + b"N.", "unknown protocol"),
        (PROTO2 + b"N", "cut short"),
        (PROTO2 + b".", "unfinished"),
        (PROTO2 + b"NN.", "unfinished"),
        (PROTO2 + b"N(.", "unfinished"),
        (PROTO2 + b"N.N", "after its end"),
        (PROTO2 + b"t.", "lacks the mark"),
        (PROTO2 + b"a.", "takes more"),
        (PROTO2 + b"N(a.", "takes more"),
        (PROTO2 + b"R.", "takes more"),
        (PROTO2 + b"NNa.", "no list"),
        (PROTO2 + b"N(NNu.", "no dict"),
        (PROTO2 + b"}(Nu.", "without a value"),
        (PROTO2 + b"}NNs.", "neither text nor an integer"),
        (PROTO2 + b"}\x88Ns.", "neither text nor an integer"),
        (PROTO2 + b"}G" + struct.pack(">d", float("nan")) + b"Ns.", "neither text nor an integer"),
        (PROTO2 + b"}K\x01NsK\x01Ns.", "twice"),
        (PROTO2 + b"h\x00.", "never stored"),
        (PROTO2 + b"j\x00\x00\x00\x10.", "never stored"),
        (PROTO2 + b"X\x01\x00\x00\x00\xff.", "not UTF-8"),
        (PROTO2 + b"X\x03\x00\x00\x00\xed\xa0\x80.", "not UTF-8"),
        (PROTO2 + b"cos\nsystem", "end of line"),
        (PROTO2 + b"c" + b"a" * 1000 + b"\n", "end of line"),
        (PROTO2 + named("collections", "OrderedDict") + b"NR.", "no tuple"),
        # Instructions that pickles may have and checkpoints have not.
        *[(PROTO5 + bytes([code]), f"0x{code:02x}") for code in b"012IFLVSTUPdglp\x8b\x8f\x90\x91\x96\x97\x98\x00\xff"],
    ],
)
def test_damaged_pickles(data: bytes, message: str) -> None:
    refused(data, message)


def test_message_stays_printable_and_short() -> None:
    name = "\x1b]0;x\x07" + "a" * 100
    error = refused(PROTO4 + stack_global("os\n\n\n\n" + name, name) + STOP, CODE)
    assert all(line.isprintable() for line in str(error).split("\n"))


def test_integers_of_any_size() -> None:
    for value in (0, -1, 2**62, -(2**2030), 2**2030):
        assert read(PROTO2 + integer(value) + STOP) == value


def test_no_module_is_imported() -> None:
    before = set(sys.modules)
    refused(PROTO2 + named("antigravity", "geohash") + STOP, CODE)
    refused(PROTO4 + stack_global("this", "s") + STOP, CODE)
    assert set(sys.modules) == before
