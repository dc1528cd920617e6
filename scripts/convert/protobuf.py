# SPDX-License-Identifier: Apache-2.0
"""The wire format of protocol buffers, as far as weights need it; every length is checked before it is used."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Malformed(ValueError):
    """The bytes are not a message."""


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """The unsigned number at a position, and the position behind it."""
    value = 0
    for index in range(10):
        if at + index >= len(data):
            raise Malformed("a number is cut off")
        byte = data[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise Malformed("a number has more than ten bytes")


def fields(data: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, value) of a message in order: numbers as int, everything else as its bytes."""
    data = memoryview(data)
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if wire == BYTES:
            length, at = varint(data, at)
        elif wire in (FIXED32, FIXED64):
            length = 4 if wire == FIXED32 else 8
        else:
            raise Malformed(f"wire type {wire} is not known")
        if length > len(data) - at:
            raise Malformed(f"a field of {length} bytes is cut off")
        yield number, data[at : at + length]
        at += length


def submessages(data: bytes | memoryview, number: int) -> Iterator[memoryview]:
    """Every value of one length-delimited field."""
    for found, value in fields(data):
        if found == number:
            if isinstance(value, int):
                raise Malformed(f"field {number} holds a number, not bytes")
            yield value


def integers(data: bytes | memoryview, number: int) -> list[int]:
    """Every value of one repeated integer field, packed or not."""
    values: list[int] = []
    for found, value in fields(data):
        if found != number:
            continue
        if isinstance(value, int):
            values.append(value)
            continue
        at = 0
        while at < len(value):
            item, at = varint(value, at)
            values.append(item)
    return values


def text(data: bytes | memoryview, number: int) -> str:
    """The last value of a string field; empty if there is none."""
    found = list(submessages(data, number))
    try:
        return bytes(found[-1]).decode("utf-8") if found else ""
    except UnicodeDecodeError:
        raise Malformed("a name is not UTF-8") from None
