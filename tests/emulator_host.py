# SPDX-License-Identifier: Apache-2.0
"""The least that a host has to do: rings, loading, commands. Deliberately not the driver: nothing is checked here."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from emulator_program import Images

from gharial.devices.base import Device
from gharial.isa import _registers as reg
from gharial.isa.commands import (
    COMPLETION,
    DECODE_ENTRY,
    DESCRIPTOR,
    ENCODE_ENTRY,
    GREEDY_ENTRY,
    SLOT_ENTRY,
    UNIT_TEMPERATURE,
    Flag,
    Kind,
    Mode,
    Operation,
    decode_result_bytes,
    greedy_result_bytes,
)
from gharial.isa.faults import Fault

RINGS = 2  # log2 of the entries of each
STAGING = 512
HIGH = 1 << 20  # where weights and so on begin, in configurations with memory


class Host:
    """Sends commands to a device one at a time and keeps their completions."""

    def __init__(self, device: Device, ring_log2: int = RINGS) -> None:
        self.device, self.config, self.log2 = device, device.config, ring_log2
        self.images: Images | None = None
        self.entry_address, self.feature_address, self.result_address = STAGING, STAGING + 1024, STAGING + 6144
        self.setup()

    def setup(self) -> None:
        """Rings at address 0 and behind, indices at zero, enabled."""
        self.tail = self.taken = 0
        for register, value in ((reg.CMD_BASE_LO, 0), (reg.CMD_LOG2, self.log2),
                                (reg.CPL_BASE_LO, 64 << self.log2), (reg.CPL_LOG2, self.log2),
                                (reg.CONTROL, 1)):  # fmt: skip
            self.write(register, value)

    def read(self, register: reg.Reg) -> int:
        """A register."""
        return self.device.read_register(register.offset)

    def write(self, register: reg.Reg, value: int) -> None:
        """Set a register."""
        self.device.write_register(register.offset, value)

    def post(self, words: npt.NDArray[np.uint32]) -> None:
        """Put a descriptor into the ring, without ringing."""
        self.device.write_memory(64 * (self.tail % (1 << self.log2)), words.astype("<u4").tobytes())
        self.tail = (self.tail + 1) & 0xFFFFFFFF

    def ring(self) -> None:
        """Ring the doorbell."""
        self.device.ring_doorbell(self.tail)

    def take(self) -> dict[str, int]:
        """The next completion."""
        assert self.device.wait((self.taken + 1) & 0xFFFFFFFF, 0)
        address = (64 << self.log2) + 32 * (self.taken % (1 << self.log2))
        words = np.frombuffer(self.device.read_memory(address, 32), "<u4")
        self.taken = (self.taken + 1) & 0xFFFFFFFF
        self.write(reg.CPL_HEAD, self.taken)
        found = COMPLETION.unpack(words)
        assert found["crc"] == zlib.crc32(words[:7].tobytes())
        return found

    def descriptor(self, operation: int, listed: bytes = b"", address: int | None = None,
                   **fields: int) -> npt.NDArray[np.uint32]:  # fmt: skip
        """A descriptor with its CRCs, the entry list put in place."""
        at = self.entry_address if address is None else address
        if listed:
            self.device.write_memory(at, listed)
        values = {"operation": operation, "entries": len(listed) // 16, "tag": self.tail ^ 0x1000, "entry_lo": at,
                  "body_crc": zlib.crc32(listed), "result_lo": self.result_address,
                  "feature_lo": self.feature_address} | fields  # fmt: skip
        words = DESCRIPTOR.pack(**values)
        if "crc" not in fields:
            words[15] = zlib.crc32(words[:15].tobytes())
        return words

    def send(self, operation: int, listed: bytes = b"", address: int | None = None, **fields: int) -> dict[str, int]:
        """Run one command; its completion."""
        words = self.descriptor(operation, listed, address, **fields)
        tag, index = int(words[1]), self.tail
        self.post(words)
        self.ring()
        done = self.take()
        assert done["index"] == index
        assert done["tag"] == tag or "crc" in fields
        return done

    def done(self, operation: int, entries: bytes = b"", **fields: int) -> dict[str, int]:
        """Run one command that has to succeed."""
        completion = self.send(operation, entries, **fields)
        assert Fault(completion["status"]) == Fault.NONE, (Operation(operation), completion)
        return completion

    def load(self, images: Images) -> None:
        """LOAD all spaces and START."""
        self.images = images
        at = HIGH
        bases: dict[int, int] = {}
        for space, image in enumerate(images.spaces):
            in_place = self.config.in_memory and space in (1, 5)
            if in_place:
                bases[space] = at
                self.device.write_memory(at, image)
                at += (len(image) + 63) // 64 * 64
            size = 4096 if not in_place else 1 << 16
            for offset in range(0, max(len(image), 1), size):
                chunk = image[offset : offset + size]
                address = bases[space] + offset if in_place else STAGING
                if not in_place:
                    self.device.write_memory(address, chunk)
                self.done(Operation.LOAD, address=address, offset=offset, bytes=len(chunk), space=space,
                          body_crc=zlib.crc32(chunk), flags=Flag.IN_PLACE if in_place else 0)  # fmt: skip
        self.state = at
        self.done(Operation.START, **self.start_fields(bases, at))

    def start_fields(self, bases: dict[int, int], state: int) -> dict[str, int]:
        """Where a configuration with memory keeps its things."""
        if not self.config.in_memory:
            return {}
        return {"entry_lo": bases[5], "result_lo": state, "feature_lo": bases[1]}

    def features(self, vectors: Sequence[npt.NDArray[Any]]) -> tuple[list[int], list[int]]:
        """Put each entry's features behind one another; their offsets and CRCs."""
        offsets, crcs, at = [], [], 0
        for each in vectors:
            data = np.ascontiguousarray(each, np.int8).tobytes()
            self.device.write_memory(self.feature_address + at, data)
            offsets.append(at)
            crcs.append(zlib.crc32(data))
            at += (len(data) + 3) // 4 * 4
        return offsets, crcs

    def encode(self, entries: Sequence[dict[str, Any]], operation: int = Operation.ENCODE, check: bool = True,
               **fields: int) -> dict[str, int]:  # fmt: skip
        """ENCODE or GREEDY; an entry has slot, features (vectors, bytes) and what else its record has."""
        offsets, crcs = self.features([e["features"] for e in entries])
        record = GREEDY_ENTRY if operation == Operation.GREEDY else ENCODE_ENTRY
        packed = b"".join(
            record.pack(**({"vectors": len(e["features"]), "offset": o, "crc": c}
                           | {k: v for k, v in e.items() if k != "features"})).tobytes()
            for e, o, c in zip(entries, offsets, crcs, strict=True)
        )  # fmt: skip
        return self.send(operation, packed, **({"flags": Flag.CHECKED if check else 0} | fields))

    def decode(self, entries: Sequence[dict[str, int]], k: int = 1, mode: int = Mode.TOP_K,
               temperature: int = UNIT_TEMPERATURE, **fields: int) -> dict[str, int]:  # fmt: skip
        """DECODE; an entry has the fields of its record."""
        assert self.images is not None
        stride = decode_result_bytes(Mode(mode), k, self.images.header["classes"])
        packed = b"".join(DECODE_ENTRY.pack(**e).tobytes() for e in entries)
        return self.send(Operation.DECODE, packed,
                         **({"k": k, "mode": mode, "temperature": temperature, "stride": stride} | fields))  # fmt: skip

    def decode_result(self, entry: int, k: int, mode: int = Mode.TOP_K) -> dict[str, Any]:
        """What a DECODE of that k and mode wrote for an entry."""
        assert self.images is not None
        classes = self.images.header["classes"]
        size = decode_result_bytes(Mode(mode), k, classes)
        data = self.device.read_memory(self.result_address + entry * size, size)
        found: dict[str, Any] = {"lse": int(np.frombuffer(data, "<i4", 1)[0]),
                                 "named": np.frombuffer(data, "<i2", 4, 4).tolist(),
                                 "count": int(np.frombuffer(data, "<u4", 1, 12)[0])}  # fmt: skip
        if mode == Mode.ALL:
            return found | {"logits": np.frombuffer(data, "<i2", classes, 16).tolist()}
        pairs = np.frombuffer(data, "<u4", k, 16)
        return found | {"classes": (pairs >> 16).tolist(), "logits": _low_halves(pairs)}

    def greedy(self, entries: Sequence[dict[str, Any]], symbols: int = 30, **fields: int) -> dict[str, int]:
        """GREEDY."""
        return self.encode(entries, Operation.GREEDY,
                           **({"k": symbols, "temperature": UNIT_TEMPERATURE, "stride": greedy_result_bytes(symbols)}
                              | fields))  # fmt: skip

    def greedy_result(self, entry: int, symbols: int = 30) -> dict[str, Any]:
        """What a GREEDY of that cap wrote for an entry."""
        size = greedy_result_bytes(symbols)
        words = np.frombuffer(self.device.read_memory(self.result_address + entry * size, size), "<u4")
        count = int(words[0]) & 0xFFFF
        pairs = words[2 : 2 + 2 * count].reshape(-1, 2)
        return {"capped": int(words[0]) >> 16, "joints": int(words[1]), "tokens": (pairs[:, 0] >> 16).tolist(),
                "logits": _low_halves(pairs[:, 0]),
                "lse": pairs[:, 1].view(np.int32).tolist()}  # fmt: skip

    def slots(self, operation: int, slots: Sequence[int | tuple[int, int]], prediction: bool = False,
              offsets: Sequence[int] = (), **fields: int) -> dict[str, int]:  # fmt: skip
        """A slot command; COPY takes pairs."""
        packed = b""
        for index, slot in enumerate(slots):
            first, second = slot if isinstance(slot, tuple) else (slot, 0)
            offset = offsets[index] if offsets else 0
            packed += SLOT_ENTRY.pack(slot=first, second=second, offset=offset).tobytes()
        return self.send(operation, packed, **({"flags": Flag.PREDICTION if prediction else 0} | fields))

    def saved(self, slot: int, prediction: bool = False) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int16]]:
        """A and C part of a live slot, by SAVE."""
        assert self.images is not None
        h, side = self.images.header, "pred" if prediction else "enc"
        assert self.slots(Operation.SAVE, [slot], prediction)["status"] == Fault.NONE
        a, c = h[f"{side}_a_units"] * self.config.cols, h[f"{side}_c_units"] * self.config.cell_unit
        data = self.device.read_memory(self.result_address, a + 2 * c)
        return np.frombuffer(data, np.int8, a), np.frombuffer(data, "<i2", c, a)


def _low_halves(words: npt.NDArray[np.uint32]) -> list[int]:
    """The lower half of each word, signed."""
    return [int(half) for half in (words & 0xFFFF).astype(np.uint16).view(np.int16)]


TOKEN, START, NONE = Kind.TOKEN, Kind.START, Kind.NONE
