# SPDX-License-Identifier: Apache-2.0
"""Array unit against plain sums of products; its clocks against docs/blocks/array_unit.md."""

from __future__ import annotations

import itertools
import math
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from sim.batch.array.segments import MIN_CLOCKS, SPACING, Contents, Segment, draw_segment
from sim.common import bench
from sim.common.bench import clock
from sim.common.memories import ReadPort
from sim.common.streams import Beat, Pause, Sink, Source, never, signed

RESULT_FIELDS = ("sums", "seat", "vector", "slice", "last")


class Tiles:
    """The stream's end: offers tiles in order, and shows one two clocks after it was taken, for that clock alone."""

    def __init__(self, dut: Any, contents: Contents, pause: Pause) -> None:
        self.left = 0  # tiles that may be offered
        self.taken: list[int] = []  # clocks
        self._dut, self._contents, self._pause = dut, contents, pause
        self._garbage = [0] * contents.rows
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut, edge = self._dut, RisingEdge(self._dut.clk_i)
        coming: int | None = None
        shown, offered = False, False
        while True:
            offered = self.left > 0 and (offered or not self._pause())
            dut.tile_valid_i.value = int(offered)
            await edge
            if coming is not None:
                dut.tile_i.value = [int.from_bytes(row.tobytes(), "little") for row in self._contents.tile(coming)]
            elif shown:
                dut.tile_i.value = self._garbage
            shown, coming = coming is not None, None
            if offered and dut.tile_ready_o.value:
                coming = len(self.taken)
                self.taken.append(clock())
                self.left -= 1
                offered = False


class Bench:
    """The unit with its memories, a source of segments, a sink of results, and a record of its clocks."""

    def __init__(self, dut: Any, test: str, *pauses: Pause, kind: str = "random") -> None:
        config = bench.config()
        self.dut = dut
        self.rng = bench.rng(test)
        self.rows, self.cols, self.seats = config.rows, config.cols, config.batch
        self.slice_rows = len(dut.res_sums_o)
        self.slices = self.rows // self.slice_rows
        self.vectors = config.acc_vectors
        self.contents = Contents(self.rows, self.cols, int(self.rng.integers(2**32)), kind)
        self.segments: list[Segment] = []
        self.active: list[int] = []  # clocks
        self.starved: list[int] = []
        self.blocked: list[int] = []
        self._pauses = (*pauses, never, never, never)[:3]  # of results, segments, tiles

    async def start(self) -> None:
        """Reset, then everything around the unit."""
        dut = self.dut
        await bench.start(dut)
        clk = dut.clk_i
        self.acts = ReadPort(clk, dut.act_en_o, dut.act_addr_o, dut.act_data_i, self._acts)
        results = {name: getattr(dut, f"res_{name}_o") for name in RESULT_FIELDS}
        self.sink = Sink(clk, dut.res_valid_o, dut.res_ready_i, results, self._pauses[0])
        self.source = Source(clk, dut.seg_valid_i, dut.seg_ready_o, {"segment": dut.seg_i}, self._pauses[1])
        self.tiles = Tiles(dut, self.contents, self._pauses[2])
        cocotb.start_soon(self._watch())

    def _acts(self, address: int) -> int:
        return int.from_bytes(self.contents.unit(address).tobytes(), "little")

    async def _watch(self) -> None:
        edge = RisingEdge(self.dut.clk_i)
        while True:
            await edge
            counted = 0
            for record, signal in (
                (self.active, self.dut.active_o),
                (self.starved, self.dut.starved_o),
                (self.blocked, self.dut.blocked_o),
            ):
                if signal.value:
                    record.append(clock())
                    counted += 1
            assert counted <= 1, "a clock counts twice"

    def draw(self, tiles: int, seats: int, vectors: int) -> Segment:
        """A segment of that shape, of random seats."""
        chosen = self.rng.choice(self.seats, seats, replace=False)
        return draw_segment(self.rng, tiles, [int(seat) for seat in chosen], vectors)

    def put(self, *segments: Segment, with_tiles: bool = True) -> None:
        """Queue segments, and their tiles."""
        for segment in segments:
            self.segments.append(segment)
            self.source.put(segment=segment.pack(self.seats, self.rng))
            if with_tiles:
                self.tiles.left += segment.tiles

    async def check(self) -> list[list[Beat]]:
        """Wait for all results and compare them; the results of each segment."""
        counts = [len(segment.sums) * self.slices for segment in self.segments]
        limit = 1000 + 60 * sum(max(n, segment.clocks) for n, segment in zip(counts, self.segments, strict=True))
        beats = await self.sink.until(sum(counts), limit)
        by_segment, tile = [], 0
        for segment, count, end in zip(self.segments, counts, np.cumsum(counts), strict=True):
            own = beats[end - count : end]
            by_segment.append(own)
            self._compare(segment, self.contents.sums(segment, tile), own)
            tile += segment.tiles
        for _ in range(4 * MIN_CLOCKS):
            await RisingEdge(self.dut.clk_i)
        assert len(self.sink.beats) == sum(counts), "results that no segment asked for"
        assert len(self.active) == self.acts.reads == sum(segment.steps for segment in self.segments)
        assert len(self.tiles.taken) == tile
        return by_segment

    def _compare(self, segment: Segment, sums: np.ndarray, beats: list[Beat]) -> None:
        places = [(seat, vector, part) for seat, vector in segment.sums for part in range(self.slices)]
        expected = sums.reshape(len(places), self.slice_rows)
        for number, (beat, place, values) in enumerate(zip(beats, places, expected, strict=True)):
            payload = beat.payload
            found = [signed(value, 32) for value in payload["sums"]]
            assert found == list(values), f"{segment}: {place}: {found}, expected {list(values)}"
            tags = tuple(payload[name] for name in ("seat", "vector", "slice", "last"))
            last = int(number == len(places) - 1)
            assert tags == (place[0], place[1] + segment.first_vector, place[2], last), f"{segment}: {tags}"


def amount(short: int, full: int) -> int:
    """How many of something, by the form of the bench."""
    return short if bench.short() else full


def shapes(tb: Bench, count: int, most_tiles: int) -> list[Segment]:
    """Segments of random shapes, with the smallest and the largest among them."""
    out = [
        tb.draw(tiles, seats, vectors)
        for tiles in (1, 2, 3)
        for seats in (1, 2, tb.seats)
        for vectors in {1, tb.vectors}
    ]
    while len(out) < count:
        tiles = int(2 ** tb.rng.uniform(0, math.log2(most_tiles + 1)))
        out.append(tb.draw(tiles, int(tb.rng.integers(1, tb.seats + 1)), int(tb.rng.integers(1, tb.vectors + 1))))
    return [out[index] for index in tb.rng.permutation(len(out))]


async def random_segments(tb: Bench, count: int, most_tiles: int) -> list[list[Beat]]:
    """Run segments of random shapes."""
    await tb.start()
    tb.put(*shapes(tb, count, most_tiles))
    return await tb.check()


@cocotb.test()
async def smallest_to_large(dut: Any) -> None:
    """Sums, order and tags of the results; nothing holds the unit back."""
    await random_segments(Bench(dut, "smallest_to_large"), amount(40, 200), amount(40, 200))


@cocotb.test()
async def extreme_values(dut: Any) -> None:
    """All weights and activations at their limits."""
    tb = Bench(dut, "extreme_values", kind="extreme")
    await tb.start()
    tb.put(*(tb.draw(amount(30, 300), seats, tb.vectors) for seats in (1, tb.seats)))
    await tb.check()


def without_gaps(tb: Bench) -> None:
    """Every clock from the first step to the last was one."""
    assert tb.active == list(range(tb.active[0], tb.active[0] + sum(s.steps for s in tb.segments)))
    assert not tb.starved and not tb.blocked


@cocotb.test()
@cocotb.parametrize(seats=["one", "all", "some"], vectors=["one", "most"])
async def full_rate(dut: Any, seats: str, vectors: str) -> None:
    """A step every clock, between seats, tiles and segments, where results keep up and tiles are there."""
    tb = Bench(dut, f"full_rate{seats}{vectors}")
    await tb.start()
    for _ in range(amount(6, 30)):
        count = {"one": 1, "all": tb.seats, "some": int(tb.rng.integers(1, tb.seats + 1))}[seats]
        each = 1 if vectors == "one" else tb.vectors
        # So many tiles that a segment has MIN_CLOCKS and its results are out before the next one's come.
        least = max(-(-MIN_CLOCKS // (count * each)), tb.slices + -(-SPACING // (count * each)))
        tb.put(tb.draw(least + int(tb.rng.integers(0, 3)), count, each))
    await tb.check()
    without_gaps(tb)


@cocotb.test()
async def starts_and_ends(dut: Any) -> None:
    """When the first step comes, how far apart segments start, and when a sum's results come after its last step."""
    tb = Bench(dut, "starts_and_ends")
    await tb.start()
    for tiles in (20, 1, 15, 16, 17, 40):
        tb.put(tb.draw(tiles, 1, 1))
    by_segment = await tb.check()
    assert tb.active[0] - tb.source.taken[0] == 4
    starts, position, free = [], 0, 0
    for segment, beats in zip(tb.segments, by_segment, strict=True):
        starts.append(tb.active[position])
        position += segment.steps
        assert beats[0].clock == max(free, tb.active[position - 1] + 10 + int(math.log2(tb.cols))), f"{segment}"
        free = beats[-1].clock + 1 + max(0, SPACING - tb.slices)
        assert beats[-1].clock - beats[0].clock == tb.slices - 1
    assert list(np.diff(starts)) == [segment.clocks for segment in tb.segments[:-1]]
    # Behind a segment of one step there is a clock in which the next one has yet to be taken.
    stretches = [segment.clocks - segment.steps - (segment.steps == 1) for segment in tb.segments[:-1]]
    assert len(tb.blocked) == sum(stretches)


@cocotb.test()
@cocotb.parametrize(often=[0.1, 0.5, 0.95])
async def back_pressure(dut: Any, often: float) -> None:
    """Results are taken, segments and tiles come at random clocks: nothing is lost, nothing changes while it waits."""
    pace = bench.rng(f"pace{often}")
    tb = Bench(
        dut,
        f"back_pressure{often}",
        lambda: bool(pace.random() < often),
        lambda: bool(pace.random() < 0.3),
        lambda: bool(pace.random() < 0.4),
    )
    await random_segments(tb, amount(30, 80), 30)


@cocotb.test()
async def spacing(dut: Any) -> None:
    """Who reads a sum for a result has SPACING clocks to write it back, whatever waits behind it."""
    pace = bench.rng("spacing pace")
    state = {"paused": False, "clocks": 0}

    def bursts() -> bool:
        state["clocks"] += 1
        if state["clocks"] < 1200:  # results of several segments wait, and then come as fast as they may
            return state["clocks"] < 600
        if pace.random() < 0.03:
            state["paused"] = not state["paused"]
        return state["paused"]

    tb = Bench(dut, "spacing", bursts)
    by_segment = await random_segments(tb, amount(60, 300), 6)
    least = min(
        later.clock - earlier.clock
        for one, other in itertools.pairwise(by_segment)
        for earlier in one[-tb.slices :]
        for later in other[: tb.slices]
        if earlier.payload["slice"] == later.payload["slice"]
    )
    assert least == max(SPACING, tb.slices), least


@cocotb.test()
async def waits_are_counted(dut: Any) -> None:
    """Without a tile the unit starves; with no result taken it is blocked once its memory is full; both pass."""
    held = {"back": True}
    tb = Bench(dut, "waits_are_counted", lambda: held["back"])
    await tb.start()
    tb.put(*(tb.draw(3, tb.seats, tb.vectors) for _ in range(8)), with_tiles=False)
    for _ in range(100):
        await RisingEdge(dut.clk_i)
    assert not tb.active and not tb.blocked and len(tb.starved) > 80
    tb.tiles.left = 8 * 3
    for _ in range(400):
        await RisingEdge(dut.clk_i)
    sums = tb.seats * tb.vectors
    ring = 2 ** math.ceil(math.log2(2 * sums))
    # One sum waits in the register behind the ring, and what of another one has but one slice at the output.
    segments_done, rest = divmod(ring + 1 + int(tb.slices == 1), sums)
    assert len(tb.active) == 3 * sums * segments_done + 2 * sums + rest
    assert tb.blocked[-1] >= clock() - 1 and len(tb.blocked) > 200
    held["back"] = False
    await tb.check()


@cocotb.test()
async def reset_forgets(dut: Any) -> None:
    """A reset in the middle of segments leaves nothing of them."""
    tb = Bench(dut, "reset_forgets")
    await tb.start()
    tb.put(*(tb.draw(9, tb.seats, tb.vectors) for _ in range(2)))
    for _ in range(60):
        await RisingEdge(dut.clk_i)
    tb.tiles.left = 0
    dut.rst_i.value = 1
    for _ in range(2):
        await RisingEdge(dut.clk_i)
    dut.rst_i.value = 0
    await RisingEdge(dut.clk_i)
    for record in (tb.active, tb.starved, tb.blocked, tb.sink.beats, tb.segments, tb.tiles.taken):
        record.clear()
    tb.acts.reads = 0
    tb.put(tb.draw(5, 2, 1), tb.draw(4, 3, 1))
    await tb.check()
