# SPDX-License-Identifier: Apache-2.0
"""Instructions of the finish unit: how they are drawn and cut into segments, and what the reference makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gharial.isa.configs import Config
from gharial.isa.instructions import Post
from sim.reference.numerics import Array
from sim.vector.jobs import Expected, Job, Machine

ADDRESS_BITS = 20  # of activation and cell units
CELL_UNITS = 1 << 14
C_UNITS = 64  # of a seat's, from the first on, are for c; the upper half of a seat's cells is for I16


def fields(seats: int) -> tuple[tuple[str, int], ...]:
    """`segment_t` of seat_pkg: names and bits."""
    act = ADDRESS_BITS
    return (
        *(("thread", 1), ("ends", 1), ("seats", seats), ("first_vector", 2), ("vectors_less_1", 2)),
        *(("tile", 24), ("col_tiles", 16), ("source", act), ("source_stride", 16), ("source_shift", 5)),
        *(("first", 4), ("last", 4), ("sum_group", 16), ("sum_stride", 16), ("scale_group", 16), ("bias_group", 16)),
        *(("post", 3), ("group", 16), ("shift", 4), ("qh", 4), ("i8_high", 7), ("i8_signed", 1)),
        *(("destination", act), ("destination_stride", 16), ("destination_shift", 5)),
        *(("second_valid", 1), ("second", act), ("second_shift", 5), ("cell_unit", act), ("cell_shift", 5)),
    )


@dataclass
class Segment:
    """One row group of an instruction, for its seats and the vectors done now; `number` counts instructions."""

    number: int
    word: int
    group: int
    vectors: range
    jobs: dict[int, Job]

    def results(self, slices: int) -> Iterator[tuple[int, int, int, bool, bytes]]:
        """The array unit's results: seat, vector, slice, last of the segment, sums as little-endian int32."""
        for seat, job in self.jobs.items():
            for vector in self.vectors:
                for n, rows in enumerate(job.acc[self.group, vector].reshape(slices, -1)):
                    last = n == slices - 1 and vector == self.vectors[-1] and seat == max(self.jobs)
                    yield seat, vector, n, last, rows.astype("<i4").tobytes()


@dataclass
class Instruction:
    """A MATVEC for some seats: fields with addresses of seat 0, and the same for each seat as the vector unit's job."""

    values: dict[str, int]
    jobs: dict[int, Job]

    def segments(self, config: Config, number: int, rng: np.random.Generator) -> list[Segment]:
        """Pass by pass over the vectors, group by group."""
        values, out = self.values, []
        vectors, groups = values["vectors_less_1"] + 1, values["row_groups"]
        sequence = [(v, g) for v in range(0, vectors, config.acc_vectors) for g in range(groups)]
        for n, (vector, group) in enumerate(sequence):
            count = min(config.acc_vectors, vectors - vector)
            here = {name: int(rng.integers(0, 1 << bits)) for name, bits in fields(1)} | values
            here |= {"ends": n == len(sequence) - 1, "seats": sum(1 << seat for seat in self.jobs), "group": group}
            here |= {"first_vector": vector, "vectors_less_1": count - 1, "sum_stride": groups}
            here["sum_group"] += vector * groups + group
            here["scale_group"] += group
            here["bias_group"] += group
            here["destination"] += vector * values["destination_stride"]
            if values["post"] == Post.I16:
                here["cell_unit"] += vector * values["destination_stride"]
            word = 0
            for name, bits in fields(config.batch):
                word = word << bits | here[name] & (1 << bits) - 1
            out.append(Segment(number, word, group, range(vector, vector + count), self.jobs))
        return out


class SeatMachine(Machine):
    """The finish unit's memories and what instructions make of them; sums of all seats, one seat after the other."""

    def __init__(self, rng: np.random.Generator, config: Config, sigmoid: Array, tanh: Array) -> None:
        most = 64 if config.rows < 256 else 24  # groups; loading them takes a clock a row
        groups = min(most, config.scale_bytes // 4 // config.rows), min(most, config.bias_bytes // 4 // config.rows)
        sums = config.batch * config.sum_groups
        super().__init__(rng, config.rows, config.cols, sums, *groups, CELL_UNITS, sigmoid, tanh)
        self.config = config
        self.seat_bits = (config.batch - 1).bit_length()
        self.cell_shift = CELL_UNITS.bit_length() - 1 - self.seat_bits

    def instruction(
        self,
        groups: int,
        vectors: int,
        post: Post,
        seats: Sequence[int] | None = None,
        half: int | None = None,
        **fixed: int,
    ) -> Instruction:
        """An instruction of that shape and post-operation, everything else at random but for what is fixed.

        Args:
            seats: ascending; at random if not given.
            half: keep to that half of sum groups and cells, and to that thread.
        """
        rng, config = self.rng, self.config
        if seats is None:
            seats = np.flatnonzero(rng.random(config.batch) < rng.choice([0.2, 0.6, 1.0])).tolist()
            seats = seats or [int(rng.integers(0, config.batch))]
        values = {"post": int(post), "vectors_less_1": vectors - 1, "row_groups": groups}
        values["thread"] = int(rng.integers(0, 2)) if half is None else half
        values |= {name: int(rng.integers(0, 1 << bits)) for name, bits in fields(1) if name not in values}
        ends = bool(fixed.get("last", post != Post.NONE and rng.random() < 0.9))
        values["last"] = int(rng.integers(1, 1 << vectors)) if ends else 0
        if post == Post.CELL and values["last"]:
            values["last"] = 1 << int(rng.integers(0, vectors))
        values["shift"] = int(next(self.decks["s"]))
        if post == Post.CELL and ends:
            values["shift"], values["qh"] = int(next(self.decks["qc"])), int(next(self.decks["qh"]))
        values["i8_high"] = int(rng.choice(np.array([127, rng.integers(1, 128)])))
        values["scale_group"] = int(rng.integers(0, len(self.k) - groups + 1))
        if rng.random() < 0.1:
            values["scale_group"], values["first"] = 0, 15
        values["bias_group"] = int(rng.integers(0, len(self.bias) - groups + 1))
        values |= self._sums(groups * vectors, half) | self._cells(groups, vectors, post, half)
        values |= self._activations(groups, vectors, max(seats), post) | fixed
        starts = [self._to_start(self._of_seat(values, seat), vectors) for seat in seats]
        values["first"] = (values["first"] | int(np.bitwise_or.reduce(starts))) & (1 << vectors) - 1
        jobs = {}
        for seat in seats:
            acc = self._accumulators(values["scale_group"], groups, vectors)
            if rng.random() < 0.2:  # everything at its ends
                acc = np.where(acc < 0, -(1 << 31), (1 << 31) - 1)
            jobs[seat] = Job(self._of_seat(values, seat), acc)
        return Instruction(values, jobs)

    def _sums(self, count: int, half: int | None) -> dict[str, int]:
        rng, most = self.rng, self.config.sum_groups
        if half is not None:
            return {"sum_group": half * (most // 2) + int(rng.integers(0, most // 2 - count + 1))}
        room = min(most, 2 * count) if rng.random() < 0.7 else most  # often sums that were used just now
        return {"sum_group": int(rng.integers(0, room - count + 1))}

    def _cells(self, groups: int, vectors: int, post: Post, half: int | None) -> dict[str, int]:
        rng, seat_units = self.rng, 1 << self.cell_shift
        if post == Post.I16:
            unit = int(rng.integers(seat_units // 2, seat_units - 4 * groups * vectors + 1))
            return {"cell_unit": unit, "cell_shift": self.cell_shift, "destination_stride": 4 * groups}
        room = (6 if half is None and rng.random() < 0.5 else C_UNITS) // (1 if half is None else 2)
        unit = (half or 0) * (C_UNITS // 2) + int(rng.integers(0, room - min(groups, room) + 1))
        return {"cell_unit": unit, "cell_shift": self.cell_shift}

    def _activations(self, groups: int, vectors: int, last_seat: int, post: Post) -> dict[str, int]:
        """Places of one instruction are apart: first and second destination have half of all units each."""
        rng, space = self.rng, 1 << ADDRESS_BITS - 1
        units = -(-groups * self.rows // self.cols)  # at most, of one vector
        stride = int(rng.integers(units, units + 1000))
        shifts = ((vectors - 1) * stride + units - 1).bit_length(), (units - 1).bit_length()
        first, second = (int(rng.integers(shift, ADDRESS_BITS - self.seat_bits)) for shift in shifts)
        at = int(rng.integers(0, 1 << ADDRESS_BITS))
        later = int(rng.integers(0, space - (last_seat << second) - units + 1))
        out = {"destination": at, "destination_shift": first, "second_shift": second}
        out["second"] = (at + space + later) % (1 << ADDRESS_BITS)
        return out if post == Post.I16 else out | {"destination_stride": stride}

    def _of_seat(self, values: dict[str, int], seat: int) -> dict[str, int]:
        """Fields of one seat's job, addresses its own."""
        cell = values["cell_unit"] + (seat << values["cell_shift"])
        return values | {
            "sum_group": seat * self.config.sum_groups + values["sum_group"],
            "destination": values["destination"] + (seat << values["destination_shift"]),
            "second": values["second"] + (seat << values["second_shift"]),
            "cell_source": cell,
            "cell_destination": cell,
        }

    def segment(self, segment: Segment) -> Iterator[tuple[int, Expected]]:
        """Take a segment into the memories: for each seat, what it must write."""
        for seat, job in segment.jobs.items():
            out = Expected()
            for vector in segment.vectors:
                self._rows(job, segment.group, vector, out)
            yield seat, out

    def _bytes(self, unit: int, offset: int, values: Array, out: Expected) -> None:
        for n, value in enumerate(values.tolist(), offset):
            out.acts[(unit + n // self.cols) % (1 << ADDRESS_BITS), n % self.cols] = value

    def loads(self, tables: Iterable[Array]) -> dict[int, list[int]]:
        """Words of each space: scales, biases, tables."""
        scales = (self.m | (self.k & 63) << 17).ravel()
        words = {2: scales, 3: self.bias.ravel(), 4: np.concatenate(list(tables)).ravel()}
        return {space: [value & 0xFFFFFFFF for value in array.tolist()] for space, array in words.items()}

    def c_words(self) -> Iterator[tuple[int, int]]:
        """Cell units that hold c, and their words."""
        for seat in range(self.config.batch):
            for unit in range(seat << self.cell_shift, (seat << self.cell_shift) + C_UNITS):
                yield unit, int.from_bytes(self.cells[unit].astype("<i2").tobytes(), "little")
