# SPDX-License-Identifier: Apache-2.0
"""Weight stream against a memory's contents; its clocks against docs/blocks/weight_stream.md."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from sim.batch.stream.read_ports import Pace, ReadPorts
from sim.common import bench
from sim.common.bench import clock
from sim.common.streams import Pause, Source, never

PACES = {
    "free": [Pace()],
    "late": [Pace(latency=(80, 90))],
    "uneven": [Pace(0.3, 0.3, (2, 30))],
    "out_of_step": [Pace(latency=(2, 2)), Pace(0.9, 0.0, (100, 150)), Pace(0.0, 0.6, (2, 60))],
}


class Bench:
    """The stream with a memory, a source of segments and a taker of tiles, which compares them."""

    def __init__(self, dut: Any, test: str, paces: list[Pace], pause: Pause = never) -> None:
        config = bench.config()
        self.dut = dut
        self.rng = bench.rng(test)
        self.rows, self.cols = len(dut.tile_o), len(dut.tile_o[0].value) // 8
        self.tile_bytes = self.rows * self.cols
        self.ahead = config.ahead
        self.expected: list[int | None] = []  # tiles; None: contents do not matter
        self.taken: list[int] = []  # clocks
        self.bytes = 0
        self.errors: list[int] = []  # addresses told
        self._paces, self._pause = paces, pause

    async def start(self) -> None:
        """Reset, then everything around the stream."""
        dut = self.dut
        await bench.start(dut)
        self.memory = ReadPorts(dut, self.rng, self._paces)
        self.slice_bytes = self.tile_bytes // self.memory.count
        self.slice_beats = self.slice_bytes // self.memory.width
        self.base = 2 ** int(self.rng.integers(20, 63)) + int(self.rng.integers(0, 2**10)) * min(self.slice_bytes, 4096)
        dut.base_i.value = self.base
        payload = {"tile": dut.seg_tile_i, "tiles": dut.seg_tiles_i}
        self.source = Source(dut.clk_i, dut.seg_valid_i, dut.seg_ready_o, payload)
        cocotb.start_soon(self._take())
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        edge = RisingEdge(self.dut.clk_i)
        while True:
            await edge
            self.bytes += int(self.dut.bytes_o.value)
            if self.dut.error_o.value:
                self.errors.append(int(self.dut.error_addr_o.value))

    async def _take(self) -> None:
        """Take tiles, and look at each two clocks after it was taken."""
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        before: list[int | None] = [None, None]  # tiles taken one and two clocks ago
        while True:
            ready = not self._pause()
            dut.tile_ready_i.value = int(ready)
            await edge
            if before[1] is not None:
                self._compare(before[1])
            before = [None, before[0]]
            if ready and dut.tile_valid_o.value:
                assert len(self.taken) < len(self.expected), "a tile that no segment has"
                before[0] = self.expected[len(self.taken)]
                self.taken.append(clock())

    def _compare(self, tile: int) -> None:
        found = b"".join(int(row).to_bytes(self.cols, "little") for row in self.dut.tile_o.value)
        wanted = self.memory.read(self.base + tile * self.tile_bytes, self.tile_bytes)
        assert found == wanted, f"tile {tile}: differs at byte {next(n for n, b in enumerate(found) if b != wanted[n])}"

    def put(self, tile: int, tiles: int) -> None:
        """Queue a segment."""
        self.source.put(tile=tile, tiles=tiles)
        self.expected += range(tile, tile + tiles)

    def put_random(self, tiles: int, longest: int) -> None:
        """Queue segments of so many tiles in all, none of them twice."""
        while tiles:
            count = min(tiles, int(self.rng.integers(1, longest + 1)))
            first = int(self.rng.integers(0, 2**24 - count))
            if not set(range(first, first + count)).intersection(self.expected):
                self.put(first, count)
                tiles -= count

    async def until(self, tiles: int, limit: int = 200_000) -> None:
        """Wait until so many tiles have been taken and looked at.

        Raises:
            AssertionError: they did not come within `limit` clocks.
        """
        for _ in range(limit):
            if len(self.taken) >= tiles:
                await ClockCycles(self.dut.clk_i, 4)
                return
            await RisingEdge(self.dut.clk_i)
        raise AssertionError(f"{len(self.taken)} of {tiles} tiles after {limit} clocks")

    def check_requests(self, tiles: list[int]) -> None:
        """Each port asked for its slices of these tiles, in order, in bursts as long as may be."""
        burst = min(self.slice_beats, 256, 4096 // self.memory.width)
        for number, port in enumerate(self.memory.ports):
            wanted = [
                (self.base + tile * self.tile_bytes + number * self.slice_bytes + at * self.memory.width, burst)
                for tile in tiles
                for at in range(0, self.slice_beats, burst)
            ]
            assert port.bursts == wanted


def amount(tb: Bench, short: int, full: int) -> int:
    """Tiles for a test: fewer of large ones."""
    count = short if bench.short() else full
    return max(count * 4 // max(tb.slice_beats, 4), 8)


@cocotb.test()
@cocotb.parametrize(pace=list(PACES), often=[0.0, 0.5])
async def every_tile(dut: Any, pace: str, often: float) -> None:
    """Tiles come in order and whole, whatever the memory's pace and whenever they are taken."""
    pauses = bench.rng(f"pauses{pace}{often}")
    tb = Bench(dut, f"every_tile{pace}{often}", PACES[pace], lambda: bool(pauses.random() < often))
    await tb.start()
    tb.put_random(amount(tb, 60, 300), 12)
    await tb.until(len(tb.expected))
    tb.check_requests([tile for tile in tb.expected if tile is not None])
    assert tb.memory.outstanding == 0 and dut.idle_o.value
    assert tb.bytes == len(tb.expected) * tb.tile_bytes == tb.memory.beats * tb.memory.width
    assert not tb.errors


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """A beat a clock at every port, also between segments: a tile in as many clocks as its slice has beats."""
    latency = 3 * bench.config().ahead // 4
    tb = Bench(dut, "full_rate", [Pace(latency=(latency, latency))])
    await tb.start()
    tb.put_random(amount(tb, 60, 200), 6) if tb.slice_beats > 1 else tb.put(1000, 60)
    await tb.until(len(tb.expected))
    gaps = np.diff(tb.taken)
    if tb.slice_beats * tb.ahead >= latency + 8:
        assert set(gaps) == {tb.slice_beats}, gaps
    # From a segment to its first tile: the requests, the memory, the beats.
    first = tb.memory.ports[0].clocks[0]
    assert first - tb.source.taken[0] == 3
    assert tb.taken[0] - first == latency + tb.slice_beats + 1


@cocotb.test()
async def asks_as_far_as_there_is_room(dut: Any) -> None:
    """With no tile taken each port has asked for `ahead` tiles, then for none; those go one a clock."""
    tb = Bench(dut, "asks_as_far_as_there_is_room", [Pace()], lambda: held["back"])
    held = {"back": True}
    await tb.start()
    tb.put(77, tb.ahead + 4)
    await ClockCycles(dut.clk_i, 40 + tb.slice_beats * (tb.ahead + 2))
    for port in tb.memory.ports:
        assert sum(beats for _, beats in port.bursts) == tb.ahead * tb.slice_beats
    held["back"] = False
    await tb.until(tb.ahead + 4)
    assert set(np.diff(tb.taken[: tb.ahead])) == {1}


@cocotb.test()
async def errors_are_told(dut: Any) -> None:
    """An error response is told with its burst's address, tiles go on coming, and others are as they were."""
    tb = Bench(dut, "errors_are_told", PACES["uneven"])
    await tb.start()
    tb.put_random(amount(tb, 60, 200), 5)
    tiles = [tile for tile in tb.expected if tile is not None]
    burst = min(tb.slice_beats, 256, 4096 // tb.memory.width) * tb.memory.width
    chosen = tb.rng.choice(np.arange(1, len(tiles), 2), 4, replace=False)
    wanted = set()
    for place in chosen:
        port = int(tb.rng.integers(0, tb.memory.count))
        start = tb.base + tiles[place] * tb.tile_bytes + port * tb.slice_bytes
        offset = int(tb.rng.integers(0, tb.slice_beats)) * tb.memory.width
        tb.memory.errors.add((port, start + offset))
        wanted.add(start + offset // burst * burst)
    await tb.until(len(tiles))
    assert set(tb.errors) == wanted and len(tb.errors) == len(wanted)


@cocotb.test()
async def errors_at_all_ports(dut: Any) -> None:
    """Errors of all ports in one clock are told one after another."""
    tb = Bench(dut, "errors_at_all_ports", [Pace()])
    await tb.start()
    tb.put(5, 4)
    starts = [tb.base + 6 * tb.tile_bytes + port * tb.slice_bytes for port in range(tb.memory.count)]
    tb.memory.errors |= set(enumerate(starts))
    await tb.until(4)
    await ClockCycles(dut.clk_i, tb.memory.count + 4)
    assert tb.errors == starts


@cocotb.test()
async def hold_forgets(dut: Any) -> None:
    """After a hold, at any time and for a clock or more, nothing of what was asked for before shows."""
    tb = Bench(dut, "hold_forgets", PACES["uneven"])
    await tb.start()
    for _ in range(amount(tb, 32, 200) // 8 + 1):
        tb.put_random(2 * tb.ahead, 9)
        await ClockCycles(dut.clk_i, int(tb.rng.integers(1, 60 + 4 * tb.slice_beats)))
        tb.source.stop()
        dut.hold_i.value = 1
        await ClockCycles(dut.clk_i, int(tb.rng.choice([1, 2, 20])))
        dut.hold_i.value = 0
        await ClockCycles(dut.clk_i, 3)
        tb.expected, tb.taken = [], []
        asked = [len(port.bursts) + (port.held is not None) for port in tb.memory.ports]
        tb.source = Source(
            dut.clk_i, dut.seg_valid_i, dut.seg_ready_o, {"tile": dut.seg_tile_i, "tiles": dut.seg_tiles_i}
        )
        while tb.memory.outstanding or any(port.held is not None for port in tb.memory.ports):
            assert not dut.seg_ready_o.value and not dut.tile_valid_o.value
            await RisingEdge(dut.clk_i)
        await ClockCycles(dut.clk_i, 2)
        assert dut.idle_o.value
        assert [len(port.bursts) for port in tb.memory.ports] == asked
        tb.put_random(3, 3)
        await tb.until(3)


@cocotb.test()
async def silence_is_survived(dut: Any) -> None:
    """A port that does not answer holds up tiles, and idle, but neither a hold nor what comes when it answers again."""
    tb = Bench(dut, "silence_is_survived", [Pace()])
    await tb.start()
    tb.put(9, 2 * tb.ahead)
    await tb.until(1)
    tb.memory.ports[0].silent = True
    await ClockCycles(dut.clk_i, 40 + tb.slice_beats * tb.ahead)
    count = len(tb.taken)
    await ClockCycles(dut.clk_i, 100)
    assert len(tb.taken) == count and not dut.idle_o.value
    tb.source.stop()
    dut.hold_i.value = 1
    await ClockCycles(dut.clk_i, 200)
    assert not dut.idle_o.value and tb.memory.ports[0].waiting
    tb.memory.ports[0].silent = False
    for _ in range(20 + 4 * tb.slice_beats * tb.ahead):
        await RisingEdge(dut.clk_i)
    assert dut.idle_o.value
    dut.hold_i.value = 0
    await ClockCycles(dut.clk_i, 3)
    tb.expected, tb.taken = [], []
    tb.source = Source(dut.clk_i, dut.seg_valid_i, dut.seg_ready_o, {"tile": dut.seg_tile_i, "tiles": dut.seg_tiles_i})
    tb.put(500, 3)
    await tb.until(3)
