# SPDX-License-Identifier: Apache-2.0
"""The host of the command block's bench: posts each command to the block and to the reference device, and knows what
every slot must hold.

The reference device computes; what the block's slots hold after a step is drawn instead (sim.batch.commands.engine), so
contents are compared with what is known here, and completions with the reference's.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from gharial.devices.base import Device
from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION, DESCRIPTOR, SLOT_ENTRY, Flag, Kind, Operation
from gharial.isa.header import HEADER, ProgramSpace
from gharial.program import Program
from sim.batch.commands.engine import Engine, Orders, Slot
from sim.common import bench
from sim.common.axi import PACES, AxiLiteHost, AxiMemory

LOG2 = 4
RINGS, HEAP = 0, 8192
STATE, WEIGHTS, EMBEDDING = 1 << 20, 2 << 20, 3 << 20
CHUNK = 192 << 10
DUMP = 224 << 10
FAR = [0, 1, *range(22, 32)]  # bits of an address that is refused if one of them is changed
PATIENCE = 400_000
STREAMS = (Operation.ENCODE, Operation.DECODE, Operation.GREEDY)
MOVES = (Operation.RESET, Operation.FREE, Operation.COPY, Operation.SAVE, Operation.RESTORE)
Contents = dict[Slot, bytes]
UNSAID = {"cycles_lo", "cycles_hi", "crc"}


@dataclass
class Posted:
    """A command that both have been told; `saves`: where SAVE writes what."""

    fields: dict[str, int]
    wanted: dict[str, int]
    saves: list[tuple[int, bytes]]
    results: list[tuple[int, int]]
    address: int
    completion: int


class Host:
    """See the head of this file. `twin`: the device that says what completions must be."""

    def __init__(self, dut: Any, rng: np.random.Generator, twin: Device, program: Program) -> None:
        self.dut, self.rng, self.twin, self.program = dut, rng, twin, program
        self.memory = AxiMemory(dut, rng, bytearray(bench.config().window_bytes))
        self.lite = AxiLiteHost(dut, "s_axil")
        self.header = HEADER.unpack(np.frombuffer(program.sections["code"], "<u4", HEADER.words))
        self.serial = self.results = 0  # results: words that a command writes at least
        self._orders: dict[int, Orders] = {}
        self.engine = Engine(dut, rng, self.memory, lambda number: self._orders[number])
        self.contents: Contents = {}
        self.history: list[Contents] = []  # before each command that is on its way, and after the last
        self.pending: list[Posted] = []
        self.tail = self.taken = 0
        self.at = HEAP

    def pace(self, name: str = "") -> None:
        """Let the memory behave so from now on; any way without a name."""
        self.memory.pace(PACES[name or str(self.rng.choice(["free", "uneven", "late", "addresses", "data"]))])

    async def write(self, register: reg.Reg, value: int) -> None:
        """A register of the block."""
        await self.lite.write(register.offset, value)

    async def read(self, register: reg.Reg) -> int:
        """A register of the block."""
        return (await self.lite.read(register.offset))[0]

    async def setup(self) -> None:
        """Rings, indices at zero, enabled, on both."""
        self.tail = self.taken = 0
        self.pending, self.at = [], HEAP
        self.history = [dict(self.contents)]
        for register, value in (
            (reg.CMD_BASE_LO, RINGS),
            (reg.CMD_LOG2, LOG2),
            (reg.CPL_BASE_LO, RINGS + (64 << LOG2)),
            (reg.CPL_LOG2, LOG2),
            (reg.CONTROL, 1),
        ):
            await self.write(register, value)
            self.twin.write_register(register.offset, value)

    async def load(self) -> None:
        """The program, by LOAD and START, on both."""
        for space in ProgramSpace:
            image = self.program.sections[space.name.lower()]
            base = {ProgramSpace.WEIGHTS: WEIGHTS, ProgramSpace.EMBEDDING: EMBEDDING}.get(space)
            self.place(image, base or CHUNK)
            await self.chunk(space, 0, image, base or CHUNK, 0 if base is None else int(Flag.IN_PLACE))
        done = await self.do(Operation.START, **self.places())
        assert done["status"] == 0, done

    def places(self) -> dict[str, int]:
        """START's addresses."""
        return {"entry_lo": EMBEDDING, "result_lo": STATE, "feature_lo": WEIGHTS}

    async def chunk(self, space: int, offset: int, data: bytes, address: int, flags: int, **fields: int) -> Any:
        """One LOAD; its completion."""
        values = {"entry_lo": address, "offset": offset, "bytes": len(data), "space": space, "flags": flags,
                  "body_crc": zlib.crc32(data)}  # fmt: skip
        return await self.do(Operation.LOAD, **(values | fields))

    # Memory

    def place(self, data: bytes, address: int | None = None) -> int:
        """Put bytes into both memories; on the heap without an address."""
        if address is None:
            address = self.room(len(data))
        self.memory.mem[address : address + len(data)] = data
        self.twin.write_memory(address, data)
        return address

    def room(self, size: int) -> int:
        """Room on the heap."""
        size = -(-size // 4) * 4 + 8
        assert self.at + size <= CHUNK, "too much for the heap"
        self.at += size
        return self.at - size

    def slot_bytes(self, prediction: bool) -> int:
        """Of a saved slot."""
        kind, config = "pred" if prediction else "enc", bench.config()
        return self.header[f"{kind}_a_units"] * config.cols + self.header[f"{kind}_c_units"] * config.cell_unit * 2

    # Commands

    def post(
        self, operation: int, listed: bytes = b"", told: bytes | None = None, damage: bool = False, **fields: int
    ) -> dict[str, int]:
        """One command into both rings; the twin runs it at once, and what it says is what is wanted of the block.

        Args:
            operation, fields: of the descriptor.
            listed: entries.
            told: entries that the twin is told instead: a fault that the engine is to find.
            damage: some bits of the descriptor are changed.
        """
        self.serial = (self.serial + 1) & 0xFFFF
        values = {"operation": operation, "tag": int(self.rng.integers(1 << 32)), "entries": len(listed) // 16}
        values |= {"temperature": self.serial, "result_lo": DUMP}
        if listed:
            values |= {"entry_lo": self.place(listed), "body_crc": zlib.crc32(listed)}
        words = DESCRIPTOR.pack(**(values | fields))
        if damage:
            word = int(self.rng.choice([0, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14]))
            bits = [*range(16)] if word == 6 else FAR if word == 4 else [*range(32)]  # what is saved overwrites nothing
            words[word] ^= np.uint32(1 << int(self.rng.choice(bits)))
        if "crc" not in fields:
            words[-1] = zlib.crc32(words[:-1].tobytes())
        address = RINGS + 64 * (self.tail % (1 << LOG2))
        self.place(words.tobytes(), address)
        if told is not None:
            values["body_crc"] = zlib.crc32(told)
            self.twin.write_memory(values["entry_lo"], told)
            other = DESCRIPTOR.pack(**(values | fields))
            other[-1] = zlib.crc32(other[:-1].tobytes())
            self.twin.write_memory(address, other.tobytes())
        self.tail += 1
        self.twin.ring_doorbell(self.tail)
        at = RINGS + (64 << LOG2) + 32 * ((self.tail - 1) % (1 << LOG2))
        wanted = COMPLETION.unpack(np.frombuffer(self.twin.read_memory(at, 32), "<u4"))
        self.twin.write_register(reg.CPL_HEAD.offset, self.tail)
        fields = DESCRIPTOR.unpack(words)
        posted = Posted(fields, wanted, [], [], address, at)
        self._effects(posted, told is not None, damage)
        self.pending.append(posted)
        self.history.append(dict(self.contents))
        return wanted

    def _effects(self, posted: Posted, doomed: bool, damaged: bool) -> None:
        """What the command does to slots and memory."""
        f, good = posted.fields, posted.wanted["status"] == 0
        operation, at = f["operation"], f["entry_lo"]
        # The block may begin a command that is refused here: it has not seen an older one fail.
        count = f["entries"] if f["entries"] <= bench.config().max_entries and not f["entry_hi"] else 0
        known = at + 16 * count <= len(self.memory.mem)
        listed = [self.memory.words(at + 16 * n, 4) for n in range(count)] if known else []
        if operation in STREAMS:
            draw = lambda slot: self.rng.bytes(self.slot_bytes(slot[0]))  # noqa: E731
            stores = [[(slot, draw(slot)) for slot in destinations(operation, words)] for words in listed]
            orders = Orders(f, listed, stores, (posted.wanted["predictions"], posted.wanted["joints"]))
            if doomed:
                code = tuple(posted.wanted[key] for key in ("status", "unit", "detail", "entry"))
                orders.fault = code  # type: ignore[assignment]
            elif good and operation != Operation.ENCODE and listed and not damaged:
                count = int(self.rng.integers(self.results, 5))
                orders.results = [(f["result_lo"] + 4 * n, int(self.rng.integers(1 << 32))) for n in range(count)]
            posted.results = orders.results
            self._orders[self.serial] = orders
            if good:
                self.contents |= {slot: image for stored in stores for slot, image in stored}
        elif good and operation in MOVES:
            base = f["result_lo"] | f["result_hi"] << 32
            self._moved(Operation(operation), bool(f["flags"] & Flag.PREDICTION), listed, base, posted)
        self._forget()

    def _forget(self) -> None:
        """Contents of slots that the reference device has freed."""
        machine: Any = self.twin._machine  # type: ignore[attr-defined]
        store = getattr(machine, "slots", None)
        if store is None:
            self.contents.clear()
        for prediction, number in list(self.contents):
            if number not in (store.prediction if prediction else store.encoder):
                del self.contents[prediction, number]

    def _moved(self, operation: Operation, prediction: bool, listed: Any, base: int, posted: Posted) -> None:
        size = self.slot_bytes(prediction)
        for words in listed:
            first, second = (prediction, words[0] & 0xFFFF), (prediction, words[1] & 0xFFFF)
            if operation == Operation.RESET:
                self.contents[first] = bytes(size)
            elif operation == Operation.FREE:
                self.contents.pop(first, None)
            elif operation == Operation.COPY:
                self.contents[second] = self.contents[first]
            elif operation == Operation.SAVE:
                posted.saves.append((base + words[2], self.contents[first]))
            else:
                self.contents[first] = bytes(self.memory.mem[base + words[2] : base + words[2] + size])

    def written(self, posted: Posted) -> set[Slot]:
        """Destination slots of a command, those of kind none too."""
        f = posted.fields
        listed = [self.memory.words(f["entry_lo"] + 16 * n, 4) for n in range(f["entries"])]
        if f["operation"] in STREAMS:
            found = {slot for words in listed for slot in destinations(f["operation"], words)}
            return found | (
                {(True, words[1] >> 16) for words in listed} if f["operation"] == Operation.DECODE else set()
            )
        prediction = bool(f["flags"] & Flag.PREDICTION)
        if f["operation"] in MOVES and f["operation"] != Operation.SAVE:
            return {(prediction, words[f["operation"] == Operation.COPY] & 0xFFFF) for words in listed}
        return set()

    async def ring(self) -> None:
        """Let the block begin with what was posted."""
        await self.write(reg.CMD_TAIL, self.tail)

    async def wait(self, completions: int) -> None:
        """Until so many are there, or the block halts."""
        edge = RisingEdge(self.dut.clk_i)
        for _ in range(PATIENCE):
            if int(self.dut.completions_o.value) >= completions or self.dut.halted_o.value:
                return
            await edge
        raise AssertionError(f"{int(self.dut.completions_o.value)} of {completions} completions")

    def completion(self, posted: Posted) -> dict[str, int]:
        """As the block wrote it."""
        raw = bytes(self.memory.mem[posted.completion : posted.completion + 32])
        found = COMPLETION.unpack(np.frombuffer(raw, "<u4"))
        assert found["crc"] == zlib.crc32(raw[:-4])
        return found

    async def flush(self) -> list[dict[str, int]]:
        """Wait for all, and compare."""
        await self.ring()
        await self.wait(self.tail)
        assert not self.dut.halted_o.value, hex(await self.read(reg.STATUS))
        found = []
        for posted in self.pending:
            completion = self.completion(posted)
            unsaid = UNSAID | ({"predictions", "joints"} if completion["status"] else set())
            said, wanted = ({k: v for k, v in c.items() if k not in unsaid} for c in (completion, posted.wanted))
            assert said == wanted, f"{posted.fields}\nfound  {said}\nwanted {wanted}"
            for address, data in posted.results:
                assert self.memory.words(address, 1) == [data], hex(address)
            found.append(completion)
        for at, posted in enumerate(self.pending):
            if not any(p.saves or p.results for p in self.pending[at + 1 :]) or not posted.saves:
                for address, image in posted.saves:
                    assert bytes(self.memory.mem[address : address + len(image)]) == image, hex(address)
        self.pending, self.at = [], HEAP
        self.history = [dict(self.contents)]
        self.taken = self.tail
        await self.write(reg.CPL_HEAD, self.taken)
        return found

    async def do(self, operation: int, listed: bytes = b"", **fields: int) -> dict[str, int]:
        """One command, waited for."""
        self.post(operation, listed, **fields)
        return (await self.flush())[-1]

    async def live(self, slots: Sequence[Slot]) -> dict[Slot, bytes | None]:
        """What the block's slots hold, by SAVE; None: not live. The twin is not asked; rings are begun anew."""
        found: dict[Slot, bytes | None] = {}
        for prediction, number in slots:
            size = self.slot_bytes(prediction)
            listed, to = self.room(16), self.room(size)
            self.memory.mem[listed : listed + 16] = SLOT_ENTRY.pack(slot=number).tobytes()
            words = DESCRIPTOR.pack(operation=Operation.SAVE, entries=1, entry_lo=listed, result_lo=to, tag=number,
                                    flags=int(prediction))  # fmt: skip
            words[-1] = zlib.crc32(words[:-1].tobytes())
            address = RINGS + 64 * (self.tail % (1 << LOG2))
            self.memory.mem[address : address + 64] = words.tobytes()
            at = RINGS + (64 << LOG2) + 32 * (self.tail % (1 << LOG2))
            self.tail += 1
            await self.ring()
            await self.wait(self.tail)
            assert not self.dut.halted_o.value
            status = self.memory.words(at + 4, 1)[0] & 0xFF
            assert status in (0, 3), status
            found[prediction, number] = None if status else bytes(self.memory.mem[to : to + size])
            await self.write(reg.CPL_HEAD, self.tail)
        await self.reset()
        return found

    async def reset(self) -> None:
        """Soft reset of both, then rings anew."""
        await self.write(reg.CONTROL, 2)
        for _ in range(3000):
            if not await self.read(reg.STATUS) & 6:
                break
            await ClockCycles(self.dut.clk_i, 10)
        else:
            raise AssertionError("the soft reset does not end")
        self.twin.reset()
        await self.setup()


def destinations(operation: int, words: Sequence[int]) -> list[Slot]:
    """Slots that an entry of ENCODE, DECODE or GREEDY stores."""
    if operation == Operation.DECODE:
        return [] if words[0] >> 21 & 3 == Kind.NONE else [(True, words[1] >> 16)]
    encoder = [(False, words[0] & 0xFFFF)]
    return encoder + ([(True, words[3] & 0xFFFF)] if operation == Operation.GREEDY else [])
