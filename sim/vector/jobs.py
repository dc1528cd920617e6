# SPDX-License-Identifier: Apache-2.0
"""Jobs of the vector unit: what they are, how they are drawn, and what they must do, by the reference's arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle

import numpy as np

from gharial.isa.instructions import Post
from sim.reference import numerics
from sim.reference.numerics import Array

INT32 = 1 << 31
MOST_PARTS = 7
FIELDS = (
    ("thread", 1),
    ("post", 3),
    ("vectors_less_1", 2),
    ("first", 4),
    ("last", 4),
    ("row_groups", 16),
    ("sum_group", 16),
    ("scale_group", 16),
    ("bias_group", 16),
    ("shift", 4),
    ("qh", 4),
    ("i8_high", 7),
    ("i8_signed", 1),
    ("destination", 16),
    ("destination_stride", 16),
    ("second_valid", 1),
    ("second", 16),
    ("cell_source", 16),
    ("cell_destination", 16),
)


@dataclass
class Job:
    """A `vec_job_t`, and the matrix unit's sums for it: int64 (row groups, vectors, rows)."""

    values: dict[str, int]
    acc: Array

    def __getattr__(self, name: str) -> int:
        return self.__dict__["values"][name]

    @property
    def vectors(self) -> int:
        """How many."""
        return self.vectors_less_1 + 1

    def pack(self) -> int:
        """As the packed structure in gharial_pkg has it."""
        word = 0
        for name, bits in FIELDS:
            word = word << bits | self.values[name] & (1 << bits) - 1
        return word

    def results(self) -> list[int]:
        """The matrix unit's results in order, as the bench's port takes them."""
        groups, vectors, rows = self.acc.shape
        quads = rows // 4
        words = np.ascontiguousarray(self.acc.astype("<i4")).tobytes()
        out = []
        for n in range(groups * vectors * quads):
            group, vector, quad = n // (vectors * quads), n // quads % vectors, n % quads
            last = n == groups * vectors * quads - 1
            place = ((last << 16 | quad) << 2 | vector) << 16 | group
            out.append(place << 128 | int.from_bytes(words[16 * n : 16 * n + 16], "little"))
        return out


@dataclass
class Expected:
    """What a job writes: bytes by (activation unit, byte), halfwords by (cell unit, halfword), logits by quads."""

    acts: dict[tuple[int, int], int] = field(default_factory=dict)
    cells: dict[tuple[int, int], int] = field(default_factory=dict)
    logits: list[tuple[int, list[int]]] = field(default_factory=list)


@dataclass
class Seen:
    """Which cases the drawn jobs have come across."""

    k: set[int] = field(default_factory=set)
    units: set[tuple[int, int]] = field(default_factory=set)
    limits: set[str] = field(default_factory=set)

    def limit(self, name: str, values: Array, low: int, high: int) -> None:
        """Note whether values lie beyond the range's ends."""
        if (values < low).any():
            self.limits.add(f"{name} low")
        if (values > high).any():
            self.limits.add(f"{name} high")


class Machine:
    """The vector unit's memories and what a job makes of them.

    Args:
        rows, cols, sum_groups: of the configuration.
        scale_groups, bias_groups: row groups of scales and biases that jobs use.
        cell_units: of the cell memory; the lower half holds c, the upper one outputs of I16.
        sigmoid, tanh: tables, (512, 2).
    """

    def __init__(
        self,
        rng: np.random.Generator,
        rows: int,
        cols: int,
        sum_groups: int,
        scale_groups: int,
        bias_groups: int,
        cell_units: int,
        sigmoid: Array,
        tanh: Array,
    ) -> None:
        self.rng, self.rows, self.cols, self.quads = rng, rows, cols, rows // 4
        self.sigmoid, self.tanh = sigmoid, tanh
        self.k = rng.integers(-8, 24, (scale_groups, rows))
        self.m = rng.integers(1 << 16, 1 << 17, (scale_groups, rows))
        odd = rng.random(self.m.shape)
        self.m[odd < 0.1] = rng.integers(0, 1 << 16, (odd < 0.1).sum())
        self.m[odd < 0.02] = (1 << 17) - 1
        self.m[odd < 0.01] = 0
        self.m[0] = 0  # sums are biases there
        biases = (bias_groups, rows)
        self.bias = rng.integers(-(1 << 30), (1 << 30) + 1, biases) >> rng.integers(0, 30, biases)
        y = np.where(
            rng.random(biases) < 0.7,
            rng.choice(np.array([0, 1, (1 << 15) - 2, (1 << 15) - 1, 1 << 15]), biases),
            self.bias >> 15,
        )
        edge = rng.choice(np.array([-1, 1]), biases) * (
            1024 * y + 512 + rng.integers(-2, 3, biases)
        )  # where y is rounded
        self.bias = np.where(rng.random(biases) < 0.4, edge, self.bias)
        cells = (cell_units, self.quads)
        self.cells = rng.integers(-(1 << 15), 1 << 15, cells) >> rng.integers(0, 14, cells)
        self.cells = np.where(
            rng.random(cells) < 0.2, rng.choice(np.array([-(1 << 15), (1 << 15) - 1]), cells), self.cells
        )
        self.sums = np.zeros((sum_groups, rows), np.int64)
        self.parts = np.full(sum_groups, MOST_PARTS)  # in each sum; so many that it must be started anew
        self.seen = Seen()
        self.decks = {
            name: cycle(rng.permutation(np.arange(low, high)))
            for name, low, high in (("qc", 8, 16), ("qh", 5, 15), ("s", 0, 9))
        }

    def draw(self, groups: int, vectors: int, post: Post, **fixed: int) -> Job:
        """A job of that shape and post-operation, everything else at random but for what is fixed."""
        rng = self.rng
        values = {name: int(rng.integers(0, 1 << bits)) for name, bits in FIELDS}
        values |= {"post": int(post), "vectors_less_1": vectors - 1, "row_groups": groups}
        ends = bool(fixed.get("last", post != Post.NONE and rng.random() < 0.9))
        values["last"] = int(rng.integers(1, 1 << vectors)) if ends else 0
        if post == Post.CELL and values["last"]:
            values["last"] = 1 << int(rng.integers(0, vectors))
        values["shift"] = int(next(self.decks["s"]))
        if post == Post.CELL and ends:
            values["shift"], values["qh"] = int(next(self.decks["qc"])), int(next(self.decks["qh"]))
        values["i8_high"] = int(rng.choice(np.array([127, rng.integers(1, 128)])))
        values["sum_group"] = int(rng.integers(0, len(self.sums) - groups * vectors + 1))
        values["scale_group"] = int(rng.integers(0, len(self.k) - groups + 1))
        if rng.random() < 0.1:
            values["scale_group"], values["first"] = 0, 15
        values["bias_group"] = int(rng.integers(0, len(self.bias) - groups + 1))
        half = len(self.cells) // 2
        room = 6 if rng.random() < 0.5 else half  # often cells that were used just now
        values["cell_source"] = values["cell_destination"] = int(rng.integers(0, room - min(groups, room) + 1))
        if rng.random() < 0.3:  # another slot
            values["cell_destination"] += half // 2 * (1 if values["cell_destination"] + groups < half // 2 else 0)
        units = -(-groups * self.rows // self.cols)  # at most, of one vector
        values["destination_stride"] = int(rng.integers(units, 1 << 13))  # places of one job are apart
        values["second"] = (values["destination"] + int(rng.integers(1 << 15, (1 << 16) - units))) % (1 << 16)
        if post == Post.I16:
            values["destination_stride"] = 4 * groups
            values["cell_destination"] = int(rng.integers(half, 2 * half - 4 * groups * vectors + 1))
        values |= fixed
        values["first"] = values["first"] & (1 << vectors) - 1 | self._to_start(values, vectors)
        acc = self._accumulators(values["scale_group"], groups, vectors)
        if rng.random() < 0.2:  # everything at its ends
            acc = np.where(acc < 0, -INT32, INT32 - 1)
        return Job(values, acc)

    def _to_start(self, values: dict[str, int], vectors: int) -> int:
        """Mask of the vectors whose sums cannot take another part."""
        mask = 0
        for v in range(vectors):
            start = values["sum_group"] + v * values["row_groups"]
            if (self.parts[start : start + values["row_groups"]] >= MOST_PARTS).any():
                mask |= 1 << v
        return mask

    def _accumulators(self, scale_group: int, groups: int, vectors: int) -> Array:
        """Sums of the matrix unit, most of them such that a is of any magnitude or at its limits, some of any value."""
        rng = self.rng
        shape = (groups, vectors, self.rows)
        k = self.k[scale_group : scale_group + groups, None, :]
        a = rng.integers(-(1 << 19), 1 << 19, shape) >> rng.integers(0, 20, shape)
        a = np.where(
            rng.random(shape) < 0.1, rng.choice([-(1 << 17), (1 << 17) - 1], shape) + rng.integers(-1, 2, shape), a
        )
        near = (
            numerics.rsr(a, -k) + rng.integers(-1, 2, shape) * (1 << np.maximum(k - 1, 0)) + rng.integers(-1, 2, shape)
        )
        any_value = rng.integers(-INT32, INT32, shape)
        acc = np.where(rng.random(shape) < 0.1, any_value, np.clip(near, -INT32, INT32 - 1))
        return np.where(rng.random(shape) < 0.01, rng.choice([-INT32, INT32 - 1, 0, -1], shape), acc)

    def forget_sums(self) -> None:
        """Every sum must be started anew."""
        self.parts[:] = MOST_PARTS

    def outputs(self, job: Job) -> Array:
        """y of every row of a job that is one part from the bias, with one vector: (row groups * rows,)."""
        groups = slice(job.scale_group, job.scale_group + job.row_groups)
        start = self.bias[job.bias_group : job.bias_group + job.row_groups]
        a = numerics.sat18(numerics.rsr(job.acc[:, 0], self.k[groups]))
        return numerics.output(start + numerics.rsr(a * self.m[groups], 7)).ravel()

    def run(self, job: Job) -> Expected:
        """Take the job into the memories; what it must write."""
        out = Expected()
        for group in range(job.row_groups):
            for vector in range(job.vectors):
                self._rows(job, group, vector, out)
        return out

    def _rows(self, job: Job, group: int, vector: int, out: Expected) -> None:
        place = job.sum_group + vector * job.row_groups + group
        first, last = job.first >> vector & 1, job.last >> vector & 1
        start = self.bias[job.bias_group + group] if first else self.sums[place]
        k, m, acc = self.k[job.scale_group + group], self.m[job.scale_group + group], job.acc[group, vector]
        self.seen.k |= set(k.tolist())
        a = numerics.rsr(acc, k)
        self.seen.limit("a", a, -(1 << 17), (1 << 17) - 1)
        total = numerics.fits(start + numerics.rsr(numerics.sat18(a) * m, 7), 32, "S")
        if not last:
            self.sums[place] = total
            self.parts[place] = 1 if first else self.parts[place] + 1
            return
        self.seen.limit("y", numerics.rsr(total, 10), -(1 << 15), (1 << 15) - 1)
        y = numerics.output(total)
        if job.post == Post.CELL:
            self._cell(job, group, vector, y, out)
        elif job.post == Post.I16:
            unit = job.cell_destination + vector * job.destination_stride + 4 * group
            for n, value in enumerate(y.tolist()):
                at = (unit + n // self.quads, n % self.quads)
                out.cells[at] = value
                self.cells[at] = value
        elif job.post == Post.I8:
            lo = -127 if job.i8_signed else 0
            values = numerics.i8(y, job.shift, lo, job.i8_high)
            self._bytes(job.destination + vector * job.destination_stride, group * self.rows, values, out)
        elif job.post == Post.LOGIT:
            out.logits += [(group * self.quads + n, y[4 * n : 4 * n + 4].tolist()) for n in range(self.quads)]

    def _cell(self, job: Job, group: int, vector: int, y: Array, out: Expected) -> None:
        c = self.cells[job.cell_source + group]
        new, h = numerics.cell(self.sigmoid, self.tanh, y.reshape(-1, 4), c, job.shift, job.qh)
        self.seen.units.add((job.shift, job.qh))
        self.seen.limit("c", new, -(1 << 15) + 1, (1 << 15) - 2)
        self.seen.limit("h", h, -126, 126)
        self.cells[job.cell_destination + group] = new
        out.cells |= {(job.cell_destination + group, n): value for n, value in enumerate(new.tolist())}
        self._bytes(job.destination + vector * job.destination_stride, group * self.quads, h, out)
        if job.second_valid:
            self._bytes(job.second, group * self.quads, h, out)

    def _bytes(self, unit: int, offset: int, values: Array, out: Expected) -> None:
        for n, value in enumerate(values.tolist(), offset):
            out.acts[(unit + n // self.cols) % (1 << 16), n % self.cols] = value

    def images(self) -> tuple[list[int], list[int], list[int]]:
        """Words of scales, biases and cells, as the memories have them."""
        scales = (self.m | (self.k & 63) << 17).astype("<u4").reshape(-1, 4)
        return _words(scales), _words(self.bias.astype("<i4").reshape(-1, 4)), _words(self.cells.astype("<i2"))


def _words(rows: np.ndarray) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in rows]
