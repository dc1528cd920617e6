#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure the clocks of encoder batches and decode commands on the RTL, for `gharial bench capacity`.

    python -m scripts.bench_clocks --config u50 --model base

writes host/gharial/bench/measured/u50-base.json. Every sixth entry of a decode command has a token.

- encode: what the second of two batches adds to the first, on other streams.
- decode_array: what a decode command in the midst of three encoder batches adds to them.
- decode: clocks from fetch to completion of a decode command that an encoder batch begins beside, and for each of its
  segments the longest that encode may have: the threads take turns, and a batch that begins does not compete all along.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gharial.bench.random_model import SHAPES, random_program
from gharial.bench.rtl_streams import K
from gharial.cli.terminal import Progress
from gharial.devices.open import open_device
from gharial.driver import DecodeEntry, Driver, EncodeEntry
from gharial.driver.results import DecodeResult
from gharial.driver.ticket import Ticket
from gharial.isa.commands import Kind
from gharial.isa.configs import config
from gharial.isa.instructions import Opcode
from gharial.program import Program
from gharial.program.code import decode

MEASURED = Path(__file__).resolve().parents[1] / "host" / "gharial" / "bench" / "measured"
TIMEOUT = 3600.0
TOKENS = 6  # every so many entries one has a token: 0.2 in 1.2


class Bench:
    """A device with live streams in all slots that are used here."""

    def __init__(self, program: Program, seats: int) -> None:
        self.program, self.seats = program, seats
        self.driver = Driver(
            open_device(f"verilator:{program.config.name}", program.config, {}), program, timeout=TIMEOUT
        )
        self.random = np.random.default_rng(1)
        self.driver.reset("encoder", range(4 * seats)).result()
        self.driver.reset("prediction", range(seats)).result()

    def features(self) -> np.ndarray:
        """Of one entry."""
        shape = (self.program.header["vectors"], self.program.manifest["features"]["count"])
        return self.random.integers(-64, 65, shape, np.int8)

    def entries(self, first: int, count: int) -> list[EncodeEntry]:
        """An encoder batch."""
        return [EncodeEntry(first + slot, self.features(), 1) for slot in range(count)]

    def encode(self, count: int) -> int:
        """Clocks that a batch adds to one before it."""
        first = self.driver.encode(self.entries(0, count))
        second = self.driver.encode(self.entries(self.seats, count))
        before = self._at(first)
        return self._at(second) - before

    def decode(self, count: int) -> tuple[int, int]:
        """Clocks of a decode command, and those that it takes from encoder batches."""
        begun = self.driver.counters().cycles
        ticket = self.decoding(count)
        encoding = self.driver.encode(self.entries(0, self.seats))
        alone = self._at(ticket) - begun
        encoding.result()
        return alone + self._turns(), self._three(count) - self._three(0)

    def decoding(self, count: int) -> Ticket[DecodeResult]:
        """A decode command."""
        kinds = [Kind.TOKEN if slot % TOKENS == 0 else Kind.NONE for slot in range(count)]
        entries = [DecodeEntry(3 * self.seats + slot, 0, kind, slot, slot, 1) for slot, kind in enumerate(kinds)]
        return self.driver.decode(entries, k=K, named=(self.program.header["blank"],))

    def _three(self, count: int) -> int:
        """Clocks of three encoder batches, with a decode command that comes when the third has a seat."""
        begun = self.driver.counters().cycles
        tickets: list[Ticket[Any]] = [
            self.driver.encode(self.entries(group * self.seats, self.seats)) for group in range(3)
        ]
        if count:
            tickets.append(self.decoding(count))
        for ticket in tickets:
            ticket.result()
        return int(self.driver.counters().cycles) - begun

    def _turns(self) -> int:
        """Clocks of the segments of encode that may come between those of a decode batch, at most."""
        sections = decode(self.program)
        steps = [i for name in ("predict", "joint") for i in sections[name] if i.opcode == Opcode.MATVEC]
        segments = sum(i["row_groups"] for i in steps)
        longest = max(i["col_tiles"] * i.vectors for i in sections["encode"] if i.opcode == Opcode.MATVEC)
        return int(segments * longest * self.seats)

    def _at(self, ticket: Ticket[Any]) -> int:
        ticket.result()
        return int(self.driver.counters().cycles)


def main() -> int:
    """Exit code 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", required=True)
    parser.add_argument("--model", default="base", choices=sorted(SHAPES))
    args = parser.parse_args()
    chosen = config(args.config)
    program = random_program(1, chosen, SHAPES[args.model])
    seats = chosen.batch
    counts = sorted({1, seats // 4, seats // 2, 3 * seats // 4, seats})
    bench = Bench(program, seats)
    found: dict[str, list[list[int]]] = {"encode": [], "decode": [], "decode_array": []}
    progress = Progress(f"{args.config}, {args.model}, measurements")
    for n, count in enumerate(counts):
        progress(n, 2 * len(counts))
        found["encode"].append([count, bench.encode(count)])
    for n, count in enumerate(counts, len(counts)):
        progress(n, 2 * len(counts))
        clocks, taken = bench.decode(count)
        found["decode"].append([count, clocks])
        found["decode_array"].append([count, max(0, taken)])
    progress.close()
    MEASURED.mkdir(exist_ok=True)
    place = MEASURED / f"{args.config}-{args.model}.json"
    place.write_text(json.dumps(found, indent=1) + "\n")
    print(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
