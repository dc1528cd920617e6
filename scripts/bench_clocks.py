#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure the clocks of encoder batches and decode commands on the RTL, for `gharial bench capacity`.

    python -m scripts.bench_clocks --config u50 --model base

writes host/gharial/bench/measured/u50-base.json. Every sixth entry of a decode command has a token.

- encode: what the second of two batches adds to the first, on other streams.
- decode: from the doorbell of a decode command to its results, while encoder batches compute; up to four batches of
  entries in it.
- decode_alone: the same while no encoder batch is there.
- decode_array: what a decode command in the midst of three encoder batches adds to them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gharial.bench.capacity import MOST_BATCHES
from gharial.bench.random_model import SHAPES, random_program
from gharial.bench.rtl_streams import K
from gharial.cli.terminal import Progress
from gharial.devices.open import open_device
from gharial.devices.verilator.device import VerilatorDevice
from gharial.driver import DecodeEntry, Driver, EncodeEntry
from gharial.driver.results import DecodeResult
from gharial.driver.ticket import Ticket
from gharial.errors import GharialError
from gharial.isa.commands import Kind
from gharial.isa.configs import config
from gharial.program import Program

MEASURED = Path(__file__).resolve().parents[1] / "host" / "gharial" / "bench" / "measured"
TIMEOUT = 3600.0
UNDER_WAY = 5000  # steps of the array, by which encoder batches are taken to be at work
LOOK = 64  # clocks between looks at a result
NOTHING = b"\xa5" * 4  # where a result is to come
TOKENS = 6  # every so many entries one has a token: 0.2 in 1.2


class Bench:
    """A device with live streams in all slots that are used here."""

    def __init__(self, program: Program, seats: int) -> None:
        self.program, self.seats = program, seats
        device = open_device(f"verilator:{program.config.name}", program.config, {})
        assert isinstance(device, VerilatorDevice)
        self.device = device
        self.driver = Driver(device, program, timeout=TIMEOUT)
        self.random = np.random.default_rng(1)
        self.driver.reset("encoder", range((3 + MOST_BATCHES) * seats)).result()
        self.driver.reset("prediction", range(MOST_BATCHES * seats)).result()

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

    def decode(self, count: int) -> int:
        """Clocks from the doorbell of a decode command to its last entry's result, in the midst of encoder batches.

        Its completion would come later: encoder batches before it have to be through.
        """
        encoding = [self.driver.encode(self.entries(group * self.seats, self.seats)) for group in range(2)]
        before = self.driver.counters().active
        while self.driver.counters().active - before < UNDER_WAY:
            self.device.advance(UNDER_WAY)
        begun = self.device.cycles
        ticket = self.decoding(count)
        took = self._until_result(count) - begun
        if encoding[1].done:
            raise GharialError(f"{count} decode entries outlast two encoder batches")
        for other in encoding:
            other.result()
        ticket.result()
        return took

    def decode_alone(self, count: int) -> int:
        """Clocks from the doorbell of a decode command to its last result, on a device that has nothing else."""
        begun = self.device.cycles
        ticket = self.decoding(count)
        took = self._until_result(count) - begun
        ticket.result()
        return took

    def decode_array(self, count: int) -> int:
        """Clocks that a decode command takes from encoder batches."""
        return max(0, self._three(count) - self._three(0))

    def _until_result(self, count: int) -> int:
        """The clock at which the last result of the command is there that was sent last, one of so many entries."""
        rings = self.driver._rings
        assert rings is not None
        sent = rings.in_flight[-1]
        last = sent.result + (count - 1) * (sent.piece.result_bytes // count)
        self.device.write_memory(last, NOTHING)
        while self.device.read_memory(last, len(NOTHING)) == NOTHING:
            self.device.advance(LOOK)
        return int(self.device.cycles)

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
    found: dict[str, list[list[int]]] = {"encode": [], "decode": [], "decode_alone": [], "decode_array": []}
    more = [seats * n for n in range(2, MOST_BATCHES + 1)]
    jobs = [
        *(("encode", n) for n in counts),
        *((what, n) for what in ("decode", "decode_alone") for n in counts + more),
        *(("decode_array", n) for n in counts),
    ]
    progress = Progress(f"{args.config}, {args.model}, measurements")
    for done, (what, count) in enumerate(jobs):
        progress(done, len(jobs))
        found[what].append([count, getattr(bench, what)(count)])
    progress.close()
    MEASURED.mkdir(exist_ok=True)
    place = MEASURED / f"{args.config}-{args.model}.json"
    place.write_text(json.dumps(found, indent=1) + "\n")
    print(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
