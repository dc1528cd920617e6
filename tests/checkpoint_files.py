# SPDX-License-Identifier: Apache-2.0
"""Checkpoint files for the tests, good and bad: zip archives by hand, pickles instruction by instruction."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from gharial.checkpoint import load_hardware
from gharial.errors import BadInput

DEMO = Path(__file__).resolve().parent.parent / "host/gharial/data/demo/demo-small.hw.pt"

PROTO2, PROTO4, PROTO5 = b"\x80\x02", b"\x80\x04", b"\x80\x05"
STOP = b"."


def text(value: str) -> bytes:
    """BINUNICODE."""
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def integer(value: int) -> bytes:
    """BININT, or LONG1 where that is too short."""
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def named(module: str, name: str) -> bytes:
    """GLOBAL."""
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def group(*items: bytes) -> bytes:
    """A tuple."""
    return b"(" + b"".join(items) + b"t"


def storage(key: str, numel: int, kind: str = "FloatStorage") -> bytes:
    """A reference to the storage data/`key`."""
    return group(text("storage"), named("torch", kind), text(key), text("cpu"), integer(numel)) + b"Q"


def tensor(source: bytes, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], tail: bytes = b"") -> bytes:
    """A view on the storage `source`; `tail` is put behind the usual arguments."""
    hooks = named("collections", "OrderedDict") + b")R"
    sizes = group(*map(integer, shape)), group(*map(integer, strides))
    return (
        named("torch._utils", "_rebuild_tensor_v2")
        + group(source, integer(offset), *sizes, b"\x89", hooks + tail)
        + b"R"
    )


def archive(
    pickled: bytes,
    storages: Mapping[str, bytes] | None = None,
    extra: Mapping[str, bytes | None] | None = None,
    folder: str = "archive",
    compression: int = zipfile.ZIP_STORED,
) -> bytes:
    """A torch zip with this data.pkl; `extra` members replace or add to the usual ones, None drops one."""
    members: dict[str, bytes | None] = {"data.pkl": pickled, "byteorder": b"little", "version": b"3\n"}
    members |= {f"data/{key}": data for key, data in (storages or {}).items()}
    members |= extra or {}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, data in members.items():
            if data is not None:
                file.writestr(f"{folder}/{name}", data)
    return buffer.getvalue()


GOOD = archive(PROTO2 + tensor(storage("0", 2), 0, (2,), (1,)) + STOP, {"0": struct.pack("<2f", 1, 2)})
"""A small good checkpoint: one tensor of two floats."""


def patched(data: bytes, signature: bytes, offset: int, value: bytes) -> bytes:
    """`data` with the bytes at `offset` of the last record of this signature replaced."""
    at = data.rindex(signature) + offset
    return data[:at] + value + data[at + len(value) :]


def demo() -> dict[str, Any]:
    """The demo checkpoint as torch reads it, to be changed and saved again."""
    # Our own file, so torch may run its pickle; it cannot read protocol 5 otherwise.
    checkpoint: dict[str, Any] = torch.load(DEMO, weights_only=False)
    return checkpoint


def saved(folder: Path, change: Callable[[dict[str, Any]], Any] | None = None, protocol: int = 5) -> Path:
    """Path of the demo checkpoint saved after `change`, which edits it in place or returns another object."""
    checkpoint = demo()
    result = change(checkpoint) if change is not None else None
    path = folder / "changed.hw.pt"
    torch.save(checkpoint if result is None else result, path, pickle_protocol=protocol)
    return path


def refused(path: Path, *parts: str) -> BadInput:
    """Asserts that the checkpoint is refused with all parts in a message of at most three lines."""
    with pytest.raises(BadInput) as caught:
        load_hardware(path)
    message = str(caught.value)
    for part in (str(path), *parts):
        assert part in message
    complete(caught.value)
    return caught.value


def complete(error: BadInput) -> None:
    """Asserts that a refusal says where, what was found, what was expected and what to do, in three lines."""
    assert None not in (error.where, error.found, error.expected, error.remedy), error
    assert len(str(error).split("\n")) == 3
