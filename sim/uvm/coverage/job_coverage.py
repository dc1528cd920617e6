# SPDX-License-Identifier: Apache-2.0
"""Samples the jobs that the sequencer hands out."""

from __future__ import annotations

from gharial.isa.configs import Config
from sim.uvm.coverage.group import CoverGroup
from sim.uvm.job.items import Fields

POSTS = {0: "sums", 1: "CELL", 2: "I16", 4: "LOGIT"}
THREADS = ("encode", "decode")
MIN_CLOCKS = 16  # a job's least (docs/blocks/matrix_unit.md)


def few(count: int, what: str) -> str:
    """1 what, 2 whats, more whats."""
    return f"1 {what}" if count == 1 else f"{count if count == 2 else 'more'} {what}s"


class JobCoverage:
    """Groups on jobs.

    Args:
        groups: all groups.
        config: the hardware configuration; says where scratch ends and state begins.

    Attributes:
        pad_unit: first embedding unit behind the tokens' rows, of the current program.
    """

    def __init__(self, groups: dict[str, CoverGroup], config: Config) -> None:
        self._groups = groups
        self.pad_unit = 0
        self._state = 2 * config.scratch_units
        self._sources: dict[tuple[int, int], list[int]] = {}  # thread and place of a sum: where its parts came from
        self._thread: int | None = None

    def product(self, job: tuple[Fields, Fields]) -> None:
        """A MATVEC."""
        matrix, vector = job
        vectors, thread = matrix["vectors_less_1"] + 1, vector["thread"]
        self._groups["products"].hit(f"{few(matrix['row_groups'], 'row group')}, {few(matrix['col_tiles'], 'tile')}")
        self._groups["vectors"].hit(f"product of, {vectors}")
        clocks = matrix["row_groups"] * matrix["col_tiles"] * vectors
        self._groups["pace"].hit("shorter than 16 clocks" if clocks < MIN_CLOCKS else "longer")
        if self._thread is not None:
            self._groups["threads"].hit(f"{THREADS[self._thread]}, {THREADS[thread]}")
        self._thread = thread
        self._groups["instructions"].hit(f"{THREADS[thread]}, {POSTS[vector['post']]}")
        if vector["second_valid"] and vector["last"]:
            self._groups["instructions"].hit("CELL with a second destination")
        for v in range(vectors):
            self._part(v, matrix, vector)

    def _part(self, v: int, matrix: Fields, vector: Fields) -> None:
        """A part of vector v's sums."""
        place = (vector["thread"], vector["sum"] + v * vector["row_groups"])
        if vector["first"] >> v & 1:
            self._sources[place] = []
        sources = self._sources.get(place)
        if sources is None:
            return
        sources.append(matrix["source"] + v * matrix["stride"])
        if not vector["last"] >> v & 1:
            return
        del self._sources[place]
        if len(sources) == 1:
            self._groups["parts"].hit("x alone")
            return
        # A layer's own h lies where the new one goes, where a step is in place; or it is all that comes from a slot.
        homes = {vector["destination"]} | ({vector["second"]} if vector["second_valid"] else set())
        state = [source >= self._state for source in sources]
        own = state if sum(state) == 1 else [source in homes for source in sources]
        if sum(own) == 1 and own[0]:
            self._groups["parts"].hit("h, then x" if len(own) == 2 else "h, then several x")
        elif sum(own) == 1 and own[-1]:
            self._groups["parts"].hit("x, then h")

    def other(self, job: Fields) -> None:
        """A LOOKUP or JOINT."""
        kind = (
            "joint" if job["joint"] else "start" if job["zero"] else "token" if job["unit"] < self.pad_unit else "pad"
        )
        self._groups["instructions"].hit(kind)
