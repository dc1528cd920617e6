# SPDX-License-Identifier: Apache-2.0
"""Slot numbers and who has them, and the state of one slot to keep or to carry to another device."""

from __future__ import annotations

import heapq
import struct
import zlib
from dataclasses import dataclass

from gharial.errors import BadInput, BadRequest, GharialError


class SlotPool:
    """Numbers of the slots of one kind. It says who may use a slot; what is in it only the device knows.

    Args:
        kind: "encoder" or "prediction".
        count: slots 0 .. count - 1.
    """

    def __init__(self, kind: str, count: int) -> None:
        self.kind = kind
        self.count = count
        self._free = list(range(count))  # a heap: low numbers first
        self._taken: set[int] = set()

    @property
    def free(self) -> int:
        """Slots that are left."""
        return len(self._free)

    def allocate(self, count: int) -> tuple[int, ...]:
        """Numbers of that many slots, which nobody else has.

        Raises:
            GharialError: fewer are left; then none is taken.
        """
        if count < 0 or count > len(self._free):
            raise GharialError(
                f"no {self.kind} slot is left: needed {count}, found {len(self._free)} of {self.count}\n"
                "end a stream, or use a device with more slots"
            )
        slots = tuple(heapq.heappop(self._free) for _ in range(count))
        self._taken.update(slots)
        return slots

    def check(self, slots: tuple[int, ...]) -> None:
        """Raise BadRequest if one of them was not given out, or is named twice."""
        if len(set(slots)) < len(slots) or not self._taken.issuperset(slots):
            raise BadRequest(f"{self.kind} slots {slots[:8]}: one is not allocated, or is named twice")

    def release(self, slots: tuple[int, ...]) -> None:
        """Take numbers back.

        Raises:
            BadRequest: as `check`; then none is taken back.
        """
        self.check(slots)
        for slot in slots:
            self._taken.remove(slot)
            heapq.heappush(self._free, slot)


_HEAD = struct.Struct("<4sBBxxIII")
_MAGIC = b"GHST"
_VERSION = 1
_KINDS = ("encoder", "prediction")


@dataclass(frozen=True)
class SlotImage:
    """The state of one slot. Good for any device that runs the same program, and for no other.

    Attributes:
        kind: "encoder" or "prediction".
        program_id: of the program it belongs to.
        layout_id: CRC-32 of its code, which says where in a slot everything lies.
        data: the slot's A part, then its C part.
    """

    kind: str
    program_id: int
    layout_id: int
    data: bytes

    def to_bytes(self) -> bytes:
        """The image as bytes, with a checksum."""
        head = _HEAD.pack(_MAGIC, _VERSION, _KINDS.index(self.kind), self.program_id, self.layout_id, len(self.data))
        body = head + self.data
        return body + struct.pack("<I", zlib.crc32(body))

    @classmethod
    def from_bytes(cls, data: bytes) -> SlotImage:
        """What `to_bytes` made.

        Raises:
            BadInput: it is no such image, or was damaged.
        """
        if len(data) < _HEAD.size + 4:
            raise BadInput("not the state of a slot", found=f"{len(data)} bytes")
        magic, version, kind, program_id, layout_id, length = _HEAD.unpack_from(data)
        if magic != _MAGIC or version != _VERSION or kind >= len(_KINDS):
            raise BadInput("not the state of a slot, or of another version", found=data[:6])
        if len(data) != _HEAD.size + length + 4 or zlib.crc32(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
            raise BadInput("the state of a slot was damaged", remedy="save it again")
        return cls(_KINDS[kind], program_id, layout_id, data[_HEAD.size : -4])
