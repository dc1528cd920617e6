# SPDX-License-Identifier: Apache-2.0
"""What stands behind the command block in its bench: takes work, seats its entries in order, stores their slots and
ends them at any time and in any order. It computes nothing: what it stores is drawn, and known to the host.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, Lock, RisingEdge

from gharial.isa.commands import Operation
from gharial.isa.faults import Fault, Unit
from sim.common.axi import AxiMemory
from sim.common.streams import Source
from sim.sequencer.packing import Fields, pack, unpack

WORK: Fields = (
    *(("work", 3), ("operation", 8), ("checked", 1), ("first", 16), ("count", 16), ("features", 64)),
    *(("k", 8), ("mode", 2), ("named", 3), ("named_class", 64), ("temperature", 16)),
    *(("result", 64), ("result_stride", 32)),
)
DONE: Fields = (
    *(("work", 3), ("last", 1), ("fault", 8), ("unit", 8), ("detail", 32), ("entry", 16)),
    *(("predictions", 16), ("joints", 16)),
)
ASK: Fields = (("op", 2), ("prediction", 1), ("slot", 16), ("zeros", 1), ("bank", 1))
READ: Fields = (("addr", 64), ("words", 27))
WRITE: Fields = (("addr", 64), ("data", 32))
PLACES: Fields = (
    *(
        ("weights", 64),
        ("embedding", 64),
        ("enc_slots", 64),
        ("pred_slots", 64),
        ("enc_stride", 32),
        ("pred_stride", 32),
    ),
)
LOOK, TAKE, LEAVE = range(3)
SEATS = 4
Slot = tuple[bool, int]  # of the prediction network, number


@dataclass
class Orders:
    """What the host knows of a command that comes as work: found by its temperature, which numbers commands.

    Attributes:
        fields: of its descriptor.
        entries: words of its entries.
        stores: slots that it stores, entry by entry: what each is to hold, and whether it is blank before.
        counts: predictions, joints.
        fault: how it ends, if not well: fault, unit, detail, entry.
        results: words that are to be written: address, data.
    """

    fields: dict[str, int]
    entries: list[list[int]]
    stores: list[list[tuple[Slot, bytes]]]
    counts: tuple[int, int] = (0, 0)
    fault: tuple[int, int, int, int] | None = None
    results: list[tuple[int, int]] = field(default_factory=list)


class Engine:
    """The stub.

    Args:
        dut: the command block.
        rng: of all that is drawn.
        memory: the device memory, into which slots are stored.
        orders: of the work with a number.
        slow: clocks that a batch takes at most.
    """

    def __init__(
        self, dut: Any, rng: np.random.Generator, memory: AxiMemory, orders: Callable[[int], Orders], slow: int = 600
    ) -> None:
        self.dut, self.rng, self.memory, self.orders, self.slow = dut, rng, memory, orders, slow
        self.stuck = False  # works are taken, nothing ends
        self.reads = 0.3  # how often features are read
        self.busy = 0
        self._storing: dict[int, tuple[bool, bool]] = {}  # of busy encoder slots: blank, bank that is stored
        self.told: list[tuple[Slot, bool]] = []  # slots that were blank when they were taken
        self._begin()
        cocotb.start_soon(self._resets())

    def chance(self, p: float) -> bool:
        """Yes, with this probability."""
        return bool(self.rng.random() < p)

    def _begin(self) -> None:
        dut = self.dut
        self._tasks: list[Any] = []
        self._entries, self._slots, self._features = Lock(), Lock(), Lock()
        self._taken: set[Slot] = set()
        self._works: deque[dict[str, int]] = deque()
        pause = lambda: self.chance(0.3)  # noqa: E731
        self._done = Source(dut.clk_i, dut.done_valid_i, dut.done_ready_o, {"done": dut.done_i}, pause)
        self._results = Source(
            dut.clk_i, dut.result_valid_i, dut.result_ready_o,
            {"result": dut.result_i, "work": dut.result_work_i}, pause)  # fmt: skip
        self._spawn(self._accept())
        self._spawn(self._seat())

    def _spawn(self, work: Any) -> None:
        self._tasks.append(cocotb.start_soon(work))

    async def _resets(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        dut.engine_idle_i.value = 1
        while True:
            await edge
            if not dut.engine_reset_o.value:
                continue
            for task in self._tasks:
                task.cancel()
            self._done.stop()
            self._results.stop()
            for name in ("entry_valid_i", "slot_valid_i", "feature_valid_i", "data_ready_i", "work_ready_i"):
                getattr(dut, name).value = 0
            self.busy = 0
            dut.engine_busy_i.value = 0
            await edge
            self._begin()

    async def _accept(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        held = None
        while True:
            ready = self.chance(0.4) and len(self._works) < 4
            dut.work_ready_i.value = int(ready)
            await edge
            if not dut.work_valid_o.value:
                assert held is None, "work was withdrawn"
                continue
            word = int(dut.work_o.value)
            assert held in (None, word), "work changed before it was taken"
            held = None if ready else word
            if ready:
                self._works.append(unpack(WORK, word))
                self.busy += 1
                dut.engine_busy_i.value = 1

    async def _seat(self) -> None:
        """One work after another, its entries in batches; batches end by themselves."""
        edge = RisingEdge(self.dut.clk_i)
        while True:
            while not self._works or self.stuck:
                await edge
            work = self._works.popleft()
            orders = self.orders(work["temperature"])
            self._check(work, orders)
            batches = -(-work["count"] // SEATS)
            left = [batches]
            for batch in range(batches):
                numbers = range(batch * SEATS, min(work["count"], (batch + 1) * SEATS))
                stores = []
                for number in numbers:
                    words = await self._entry((work["first"] + number) & 0xFFFF)
                    assert words == orders.entries[number], (number, words, orders.entries[number])
                    if work["operation"] != Operation.DECODE and self.chance(self.reads):
                        error = await self._read_features(work, words)
                        if error is not None and orders.fault is None:
                            orders.fault = (Fault.BUS_READ, Unit.MEMORY, error, number)
                    for slot, image in orders.stores[number]:
                        while (await self._ask(LOOK, slot))[1]:
                            await ClockCycles(self.dut.clk_i, int(self.rng.integers(1, 40)))
                        blank, busy = await self._ask(TAKE, slot)
                        assert not busy and slot not in self._taken, slot
                        self._taken.add(slot)
                        self.told.append((slot, blank))
                        stores.append((slot, image))
                self._spawn(self._batch(work, orders, stores, left, batch))

    def _check(self, work: dict[str, int], orders: Orders) -> None:
        """Everything that work says is what the descriptor says."""
        f = orders.fields
        assert work["count"] == f["entries"] and work["operation"] == f["operation"]
        assert work["checked"] == f["flags"] >> 1 & 1
        for key in ("k", "mode"):
            assert work[key] == f[key], key
        assert work["named"] == f["named"] & 7
        assert work["named_class"] == f["named_23"] << 32 | f["named_01"]
        assert work["features"] == f["feature_hi"] << 32 | f["feature_lo"]
        assert work["result"] == f["result_hi"] << 32 | f["result_lo"] and work["result_stride"] == f["stride"]

    async def _batch(self, work: dict[str, int], orders: Orders, stores: Any, left: list[int], batch: int) -> None:
        while self.stuck:
            await RisingEdge(self.dut.clk_i)
        await ClockCycles(self.dut.clk_i, int(self.rng.integers(1, self.slow)))
        for slot, image in stores:
            address = self.address(slot)
            if orders.fault is None:
                self.memory.mem[address : address + len(image)] = image
            assert slot in self._taken
            self._taken.discard(slot)
            _, busy = await self._ask(LEAVE, slot)
            assert busy, slot
        if batch == 0:
            for address, data in orders.results:
                self._results.put(result=pack(WRITE, {"addr": address, "data": data}), work=work["work"])
        await self._results.drain()
        left[0] -= 1
        last = left[0] == 0
        done = {"work": work["work"], "last": int(last)}
        if last:
            done |= {"predictions": orders.counts[0], "joints": orders.counts[1]}
        if orders.fault is not None and (last or self.chance(0.5)):
            done |= dict(zip(("fault", "unit", "detail", "entry"), orders.fault, strict=True))
        self._done.put(done=pack(DONE, done))
        await self._done.drain()
        self.busy -= last
        self.dut.engine_busy_i.value = int(self.busy > 0)

    def address(self, slot: Slot) -> int:
        """Where a slot lies, as the block says."""
        places = unpack(PLACES, int(self.dut.places_o.value))
        kind = "pred" if slot[0] else "enc"
        return places[f"{kind}_slots"] + slot[1] * places[f"{kind}_stride"]

    async def _request(self, valid: Any, ready: Any, payload: Any, value: int) -> None:
        edge = RisingEdge(self.dut.clk_i)
        payload.value = value
        valid.value = 1
        await edge
        while not ready.value:
            await edge
        valid.value = 0

    async def _until(self, got: Any) -> None:
        edge = RisingEdge(self.dut.clk_i)
        await edge
        while not got.value:
            await edge

    async def _entry(self, index: int) -> list[int]:
        dut = self.dut
        async with self._entries:
            await self._request(dut.entry_valid_i, dut.entry_ready_o, dut.entry_index_i, index)
            await self._until(dut.entry_got_o)
            word = int(dut.entry_o.value)
        return [word >> 32 * n & 0xFFFFFFFF for n in range(4)]

    async def _ask(self, op: int, slot: Slot) -> tuple[bool, bool]:
        dut = self.dut
        async with self._slots:
            bits = {"zeros": 0, "bank": 0}
            if op == TAKE and not slot[0]:
                bits = {name: int(self.chance(0.5)) for name in bits}
            ask = pack(ASK, {"op": op, "prediction": int(slot[0]), "slot": slot[1], **bits})
            await self._request(dut.slot_valid_i, dut.slot_ready_o, dut.slot_i, ask)
            await self._until(dut.slot_got_o)
            told = int(dut.slot_o.value)
        blank, busy, bank = (bool(told >> n & 1) for n in (2, 1, 0))
        if busy and not slot[0]:
            assert (blank, bank) == self._storing[slot[1]], slot
        if op == TAKE and not slot[0]:
            self._storing[slot[1]] = blank or bool(bits["zeros"]), bool(bits["bank"])
        return blank, busy

    async def _read_features(self, work: dict[str, int], words: list[int]) -> int | None:
        """Some of them; the address of an error response."""
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        count = int(self.rng.integers(1, 9))
        address = work["features"] + words[1]
        wanted = self.memory.words(address, count)
        async with self._features:
            read = pack(READ, {"addr": address, "words": count})
            await self._request(dut.feature_valid_i, dut.feature_ready_o, dut.feature_i, read)
            found = []
            while len(found) < count:
                dut.data_ready_i.value = ready = int(self.chance(0.7))
                await edge
                if dut.data_valid_o.value and ready:
                    found.append(int(dut.data_o.value))
                if dut.data_error_o.value:
                    dut.data_ready_i.value = 0
                    return int(dut.data_error_addr_o.value)
            dut.data_ready_i.value = 0
        assert found == wanted
        return None
