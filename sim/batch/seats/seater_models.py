# SPDX-License-Identifier: Apache-2.0
"""Around the seater: command block and threads. The threads look at what each seat holds, and leave something else."""

from __future__ import annotations

import zlib
from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from gharial.isa.commands import Kind, Operation
from sim.common import bench
from sim.common.bench import clock
from sim.sequencer.packing import HEADER, pack, unpack

from . import places as at
from .places import Places
from .seat_ports import SeatPorts
from .seater_program import (
    BAD_OPCODE,
    ENC_SLOTS,
    FEATURES,
    MEMORY,
    PRED_SLOTS,
    SEQUENCER,
    Command,
    Layout,
    Program,
    Slots,
    check_decode,
    entry_words,
)
from .wide_memory import Pace, WideMemory

CHECKSUM, HOST = 6, 1
WORKS = 8
PATIENCE = 60_000  # clocks in which something must come of what is waited for


class Bench:
    """The seater in its place, and everything that it talks to.

    Attributes:
        slots: what they hold.
        ends: of each command that has ended: fault, unit, detail, entry.
        loose: bus errors may hit any batch: what seats hold then is not looked at.
        run_clocks: what each thread takes for a batch at least, beside its looking.
        waits: of each thread: clocks from the end of a batch, or the start, until the next one could run.
    """

    def __init__(self, dut: Any, test: str, failures: float = 0.0) -> None:
        self.dut, self.rng = dut, bench.rng(test)
        self.places = Places.of(bench.config())
        self.layout = Layout.random(self.places, self.rng)
        self.mem = bytearray(self.rng.bytes(MEMORY))
        self.program = Program(self.layout, self.rng, self.mem, failures)
        self.slots = Slots(self.layout)
        self.blank: set[tuple[bool, int]] = set()
        self.busy: dict[tuple[bool, int], int] = {}  # and the bank that is stored
        self.ends: dict[int, tuple[int, int, int, int]] = {}
        self.works: dict[int, Command] = {}
        self.bad_features: set[int] = set()
        self.loose = False
        self.run_clocks = 0, 0
        self.waits: tuple[list[int], list[int]] = [], []
        self._counts: dict[int, list[int]] = {}
        self._faults: dict[int, tuple[int, int, int, int]] = {}
        self._entries: dict[int, list[int]] = {}
        self._edge = RisingEdge(dut.clk_i)

    async def start(self, pace: Pace, pause: float = 0.2) -> None:
        """Reset, then all models."""
        dut = self.dut
        await bench.start(dut)
        self.ports = SeatPorts(dut, self.places, self.rng, pause)
        self.memory = WideMemory(dut, self.rng, self.mem, pace)
        self.memory.start()
        dut.header_i.value = pack(HEADER, self.layout.header)
        dut.places_i.value = pack(
            at.PLACES,
            {
                "enc_slots": self.layout.address(False, 0),
                "pred_slots": self.layout.address(True, 0),
                "enc_stride": self.layout.stride(False),
                "pred_stride": self.layout.stride(True),
            },
        )
        for task in (self._entry_port(), self._slot_port(), self._feature_port(), self._end_port()):
            cocotb.start_soon(task)
        for decode in (False, True):
            cocotb.start_soon(self._thread(decode))
        await ClockCycles(dut.clk_i, 4)

    async def give(self, command: Command) -> None:
        """Hand a command over, when a name is free."""
        for _ in range(PATIENCE):
            if len(self.works) < WORKS:
                break
            await self._edge
        name = next(n for n in range(WORKS) if n not in self.works)
        self.works[name] = command
        self._counts[name] = [0, 0]
        for n, entry in enumerate(command.entries):
            self._entries[(command.first + n) % (1 << 16)] = entry_words(command, entry)
            if entry.get("reset"):
                self.slots.zero_banks(entry["encoder"], command.number)
        values = {
            "work": name,
            "operation": command.operation,
            "checked": int(command.checked),
            "first": command.first,
            "count": len(command.entries),
            "features": FEATURES,
            "result": command.result,
            "result_stride": command.stride,
        }
        self.dut.work_i.value = pack(at.WORK, values | command.fields)
        self.dut.work_valid_i.value = 1
        await self._edge
        for _ in range(PATIENCE):
            if self.dut.work_ready_o.value:
                break
            await self._edge
        self.dut.work_valid_i.value = 0

    async def drain(self) -> None:
        """Wait until all commands have ended."""
        for _ in range(PATIENCE):
            if not self.works and self.dut.seater_idle_o.value:
                return
            await self._edge
        raise AssertionError(f"commands do not end: {[command.number for command in self.works.values()]}")

    def reset_some(self) -> None:
        """RESET of some slots, while nothing is on its way."""
        program = self.program
        for prediction, count, live in ((False, ENC_SLOTS, program.enc_live), (True, PRED_SLOTS, program.pred_live)):
            for slot in range(count):
                if self.rng.random() < 0.3:
                    self.blank.add((prediction, slot))
                    self.slots.zero(prediction, slot)
                    if not prediction:
                        self.slots.zero_banks(slot, program.commands - 1)
                    live.add(slot)

    def check_memory(self) -> None:
        """Every slot in use is in memory as it should be; nothing is busy."""
        assert not self.busy
        for slot in self.program.enc_live:
            if (False, slot) not in self.blank:
                self._check_slot(False, slot, *self._whole(slot))
        for slot in self.program.pred_live:
            if (True, slot) not in self.blank:
                self._check_slot(True, slot, *self.slots.predictions[slot])

    def _whole(self, slot: int) -> tuple[bytes, bytes]:
        a, c = self.slots.encoders[slot]
        cells = bytearray(c)
        for bank in range(2):
            cells[self.layout.bank(bank)] = self.slots.bank(slot, bank, self.program.commands)
        return a, bytes(cells)

    def _check_slot(self, prediction: bool, slot: int, a: bytes, c: bytes) -> None:
        first = self.layout.address(prediction, slot)
        assert self.mem[first : first + len(a)] == a, f"A part, prediction {prediction}, slot {slot}"
        assert self.mem[first + len(a) :][: len(c)] == c, f"C part, prediction {prediction}, slot {slot}"

    # The command block.

    async def _pause(self, most: int) -> None:
        clocks = int(self.rng.integers(0, most + 1))
        if clocks:
            await ClockCycles(self.dut.clk_i, clocks)

    async def _asked(self, valid: Any, ready: Any, value: Any) -> int:
        """What is asked at a port, taken after a while."""
        await self._edge  # what was taken at this one may still show
        while not valid.value:
            await self._edge
        await self._pause(3)
        ready.value = 1
        await self._edge
        assert valid.value
        asked = int(value.value)
        ready.value = 0
        return asked

    async def _answer(self, got: Any) -> None:
        got.value = 1
        await self._edge
        got.value = 0

    async def _entry_port(self) -> None:
        dut = self.dut
        while True:
            index = await self._asked(dut.entry_valid_o, dut.entry_ready_i, dut.entry_index_o)
            await self._pause(4)
            dut.entry_i.value = sum(word << 32 * n for n, word in enumerate(self._entries[index]))
            await self._answer(dut.entry_got_i)

    async def _slot_port(self) -> None:
        dut = self.dut
        while True:
            ask = unpack(at.ASK, await self._asked(dut.slot_valid_o, dut.slot_ready_i, dut.slot_o))
            key = bool(ask["prediction"]), ask["slot"]
            told = {"blank": int(key in self.blank), "busy": int(key in self.busy), "bank": self.busy.get(key, 0)}
            if ask["op"] == at.TAKE:
                self.busy[key] = ask["bank"]
                if ask["zeros"]:
                    self.blank.add(key)
            if ask["op"] == at.LEAVE:
                del self.busy[key]
                self.blank.discard(key)
            await self._pause(2)
            dut.slot_i.value = pack(at.TOLD, told)
            await self._answer(dut.slot_got_i)

    async def _feature_port(self) -> None:
        dut = self.dut
        while True:
            ask = unpack(at.READ, await self._asked(dut.feature_valid_o, dut.feature_ready_i, dut.feature_o))
            await self._pause(5)
            for n in range(ask["words"]):
                address = ask["addr"] + 4 * n
                if address in self.bad_features:
                    dut.data_error_addr_i.value = address
                    await self._answer(dut.data_error_i)
                    break
                dut.data_i.value = int.from_bytes(self.mem[address : address + 4], "little")
                dut.data_valid_i.value = 1
                await self._edge
                while not dut.data_ready_o.value:
                    await self._edge
                dut.data_valid_i.value = 0
                if self.rng.random() < 0.1:
                    await self._pause(3)

    async def _end_port(self) -> None:
        dut = self.dut
        while True:
            end = unpack(at.ENDED, await self._asked(dut.done_valid_o, dut.done_ready_i, dut.done_o))
            name = end["work"]
            command = self.works[name]
            self._counts[name][0] += end["predictions"]
            self._counts[name][1] += end["joints"]
            if end["fault"]:
                self._faults.setdefault(command.number, tuple(end[k] for k in ("fault", "unit", "detail", "entry")))  # type: ignore[arg-type]
            if end["last"]:
                fault = self._faults.get(command.number, (0, 0, 0, 0))
                self.ends[command.number] = fault
                if not self.loose:
                    self._check_end(command, fault, self._counts[name])
                del self.works[name]

    def _check_end(self, command: Command, fault: tuple[int, int, int, int], counts: list[int]) -> None:
        if command.bad_entry is not None:
            entry = command.entries[command.bad_entry]
            first = FEATURES + entry["offset"]
            size = entry["vectors"] * self.layout.header["feature_units"] * self.places.unit_bytes
            assert fault == (CHECKSUM, HOST, zlib.crc32(self.mem[first : first + size]), command.bad_entry)
        elif command.bad_batch is not None:
            index = command.bad_batch[1] * self.places.seats
            assert fault == (BAD_OPCODE, SEQUENCER, 77, index), f"{fault}"
        else:
            assert fault == (0, 0, 0, 0), f"command {command.number}: {fault}"
            assert counts == [command.predictions, command.joints]

    # The threads.

    async def _thread(self, decode: bool) -> None:
        """Takes batches, up to two ahead, and works them off one after another."""
        dut = self.dut
        kind = "decode" if decode else "encode"
        valid, ready, batch = (getattr(dut, f"{kind}_{name}") for name in ("valid_o", "ready_i", "o"))
        waiting: deque[dict[str, int]] = deque()
        fields = at.batch_fields(self.places.seats)

        fetched = dut.decode_fetched_o if decode else dut.encode_fetched_o

        async def work() -> None:
            while True:
                since = clock()
                while not waiting or not int(fetched.value) >> waiting[0]["side"] & 1:
                    await self._edge
                self.waits[decode].append(clock() - since)
                await self._run(decode, waiting[0])
                waiting.popleft()

        cocotb.start_soon(work())
        while True:
            if len(waiting) < 2:
                waiting.append(unpack(fields, await self._asked(valid, ready, batch)))
            else:
                await self._edge

    async def _run(self, decode: bool, batch: dict[str, int]) -> None:
        dut, seats = self.dut, self.places.seats
        command = self.works[batch["work"]]
        side, index = batch["side"], batch["index"]
        entries = command.entries[index : index + seats]
        assert batch["operation"] == command.operation and index % seats == 0 and entries
        assert batch["seats"] == (1 << len(entries)) - 1
        if command.bad_entry is not None:
            assert index + len(entries) <= command.bad_entry, "a batch runs behind bad features"
        if decode:
            assert command.bad_batch is None or command.bad_batch[0] or index // seats < command.bad_batch[1]
            check_decode(command, batch, entries)
        else:
            wanted = sum(entry["vectors"] << 3 * s for s, entry in enumerate(entries))
            assert batch["vectors"] == wanted
        predictions = joints = 0
        for seat, entry in enumerate(entries):
            if decode:
                ran = await self._decode_seat(command, entry, side, seat)
                predictions += ran
                joints += 1
            else:
                await self._encode_seat(command, entry, side, seat)
        await self._pause(int(self.rng.choice([3, 300])))
        if self.run_clocks[decode]:
            await ClockCycles(dut.clk_i, self.run_clocks[decode])
        done = {"side": side, "predictions": predictions, "joints": joints}
        if command.bad_batch == (decode, index // seats):
            done |= {"fault": BAD_OPCODE, "unit": SEQUENCER, "detail": 77}
        command.predictions += predictions
        command.joints += joints
        name = "decoded" if decode else "encoded"
        getattr(dut, f"{name}_i").value = pack(at.RAN, done)
        getattr(dut, f"{name}_valid_i").value = 1
        await self._edge
        while not getattr(dut, f"{name}_ready_o").value:
            await self._edge
        getattr(dut, f"{name}_valid_i").value = 0

    async def _read(self, region: int, cells: int, side: int, seat: int, prediction: bool) -> tuple[bytes, bytes]:
        kind = "pred" if prediction else "enc"
        a_units, c_units = self.layout.header[f"{kind}_a_units"], self.layout.header[f"{kind}_c_units"]
        a = await self.ports.read_acts(self.places.act(region, side, seat), a_units)
        return a, await self.ports.read_cells(self.places.cell(cells, side, seat), c_units)

    async def _encode_seat(self, command: Command, entry: dict[str, Any], side: int, seat: int) -> None:
        places, layout, header = self.places, self.layout, self.layout.header
        slot, size = entry["encoder"], header["feature_units"] * places.unit_bytes
        first = FEATURES + entry["offset"]
        features = self.mem[first : first + entry["vectors"] * size].ljust(header["vectors"] * size, b"\0")
        unit = places.act(at.SCRATCH, side, seat, header["feature_unit"])
        found = await self.ports.read_acts(unit, header["vectors"] * header["feature_units"])
        assert self.loose or found == features, f"features of command {command.number}, seat {seat}"
        if entry["reset"]:
            self.slots.zero(False, slot)
        a, c = await self._read(at.ENC, at.CELL_ENC, side, seat, False)
        if not self.loose:
            old_a, old_c = self.slots.encoders[slot]
            first, end = layout.bank(0).start, layout.bank(1).stop
            assert a == old_a, f"A part for command {command.number}, slot {slot}"
            assert (c[:first], c[end:]) == (old_c[:first], old_c[end:]), f"C part, command {command.number}, {slot}"
        new = self.rng.bytes(len(a)), bytearray(self.rng.bytes(len(c)))
        bank = bytes(new[1][layout.bank(0)])  # what section encode makes lies in bank 0's place
        new[1][layout.bank(1)] = c[layout.bank(1)]
        await self.ports.write_acts(places.act(at.ENC, side, seat), new[0])
        await self.ports.write_cells(places.cell(at.CELL_ENC, side, seat), bytes(new[1]))
        self.slots.encoders[slot] = new[0], bytes(new[1])
        self.slots.set_bank(slot, entry["bank"], command.number, bank)

    async def _decode_seat(self, command: Command, entry: dict[str, Any], side: int, seat: int) -> int:
        places, layout = self.places, self.layout
        greedy = command.operation == Operation.GREEDY
        start = bool(entry["reset"]) if greedy else entry["kind"] == Kind.START
        none = not greedy and entry["kind"] == Kind.NONE
        joint = greedy or not entry["no_joint"]
        if joint:
            units = layout.header["joint_enc_units"]
            found = await self.ports.read_cells(places.cell(at.CELL_JOINT, side, seat), units)
            if not self.loose:
                wanted = self.slots.bank(entry["encoder"], entry["bank"], command.number)
                assert found == wanted, f"bank of command {command.number}, slot {entry['encoder']}"
        slot = entry["destination"]
        source = slot if greedy or start else entry["source"]
        if start:
            self.slots.zero(True, slot)
        a, c = await self._read(at.PRED, at.CELL_PRED, side, seat, True)
        if not self.loose:
            old_a, old_c = self.slots.predictions[source]
            where = layout.joint_pred() if none else slice(None)
            assert none or a == old_a, f"A part for command {command.number}, prediction slot {source}"
            assert (none and not joint) or c[where] == old_c[where], f"C part, command {command.number}, {source}"
        if none or (greedy and not start and self.rng.random() < 0.3):
            return 0
        new = self.rng.bytes(len(a)), self.rng.bytes(len(c))
        await self.ports.write_acts(places.act(at.PRED, side, seat), new[0])
        await self.ports.write_cells(places.cell(at.CELL_PRED, side, seat), new[1])
        self.slots.predictions[slot] = new
        return 1
