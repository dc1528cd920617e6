#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links to boards without a board: recordings over each, and a fault at every place of some frames.

`python -m scripts.bench_links` prints two tables. The first: the shipped recordings through a pseudo-terminal, a UDP
socket and the character devices of a card, with the emulator behind each; transcripts must be the emulator's, and a
frame over UART must take two round trips and 1500 bytes at most. The second: the frames of a small stream, once for
each byte, packet or transfer that is lost, changed, doubled, late or fails. Each time the stream must come out right:
by itself, or after an error that names what went wrong and a recovery. A quarter of an hour, mostly waiting; one core.
"""

from __future__ import annotations

import argparse
import errno
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sim.links.bridges import Bus, EtherServer, UartServer
from sim.links.cards import ERESTARTSYS, Kernel

import gharial
from gharial.bench.random_model import random_features, random_program
from gharial.checkpoint import ModelDims
from gharial.devices.base import Device
from gharial.devices.emulator import open_emulator
from gharial.devices.litex import LitexDevice
from gharial.devices.litex.etherbone import EtherboneBridge
from gharial.devices.litex.uart import UartBridge
from gharial.devices.xdma import device as xdma
from gharial.driver import Driver, GreedyEntry
from gharial.errors import DeviceError
from gharial.isa.configs import config
from gharial.model import open_model
from gharial.program import Program
from gharial.recognise import recogniser
from scripts.bench import markdown

RECORDINGS = Path(gharial.__file__).parent / "data" / "recordings"
BAUD = 1_000_000
MOST_BYTES, MOST_TRIPS = 1500, 2

SMALL = ModelDims(
    features=12, hidden=10, pre_layers=2, post_layers=2, stack=2, pred_hidden=7, pred_layers=2, joint=9, classes=11
)
FRAMES = 2
TRIES = 3
SOON = 0.1  # seconds in which a bridge answers here
FAULTY_S = 1.0  # and a driver gives up

Link = tuple[Device, Any]  # the host's side and the other


@contextmanager
def uart(program: Program, answer_s: float) -> Iterator[Link]:
    """A board at a pseudo-terminal."""
    server = UartServer(Bus(open_emulator(program.config)))
    server.start()
    name = f"litex:uart:{server.path}"
    yield LitexDevice(name, program.config, UartBridge(server.path, BAUD, answer_s)), server
    server.stop()


@contextmanager
def ethernet(program: Program, answer_s: float) -> Iterator[Link]:
    """A board at a UDP socket."""
    server = EtherServer(Bus(open_emulator(program.config)))
    server.start()
    bridge = EtherboneBridge(server.HOST, server.port, answer_s)
    yield LitexDevice(f"litex:eth:{server.HOST}:{server.port}", program.config, bridge), server
    server.stop()


@contextmanager
def card(program: Program, answer_s: float) -> Iterator[Link]:
    """A card behind character devices."""
    del answer_s
    with tempfile.TemporaryDirectory() as folder:
        kernel = Kernel(Path(folder), open_emulator(program.config))
        with patch.object(xdma, "os", kernel.module):
            yield xdma.open_xdma(0, program.config, Path(folder)), kernel
        kernel.close()


LINKS = {"UART": uart, "Ethernet": ethernet, "XDMA": card}


# Recordings


def recordings(name: str) -> dict[str, Any]:
    """All shipped recordings over a link, against the emulator; and what a frame takes over UART."""
    program = open_model(None, config("ecp5-85f"))
    files = sorted(RECORDINGS.glob("*.flac"))
    with gharial.Recogniser(program) as plain:
        wanted = [plain.transcribe(file) for file in files]
    with LINKS[name](program, 5.0) as (device, other):
        began = time.perf_counter()
        with Driver(device, program) as driver:
            row = {"link": name, "loading_s": round(time.perf_counter() - began, 2)}
            row |= _frame(driver, other) if isinstance(other, UartServer) else {"bytes": "", "trips": ""}
        if isinstance(other, Kernel):
            same = _card_transcripts(program, other, files)
        else:
            with gharial.Recogniser(program, device.name) as board:
                same = [board.transcribe(file) for file in files]
    right = sum(
        (a.text, [t.confidence for t in a.tokens]) == (b.text, [t.confidence for t in b.tokens])
        for a, b in zip(same, wanted, strict=True)
    )
    return row | {"recordings": len(files), "same": right}


def _card_transcripts(program: Program, kernel: Kernel, files: list[Path]) -> list[gharial.Transcript]:
    def opened(*_: object) -> Device:
        return xdma.open_xdma(0, program.config, kernel.folder)

    with patch.object(recogniser, "open_device", opened), gharial.Recogniser(program) as board:
        return [board.transcribe(file) for file in files]


def _frame(driver: Driver, server: UartServer) -> dict[str, Any]:
    """Most bytes and round trips of a frame, one stream."""
    program = driver.program
    shape = program.header["vectors"], program.manifest["features"]["count"]
    random = np.random.default_rng(1)
    most = [0, 0]
    for step in range(64):
        driver.device.read_register(0)  # an answer: whatever was sent before has arrived
        before = server.received + server.sent, server.reads
        x = random.integers(-90, 90, shape).astype(np.int8)
        driver.greedy([GreedyEntry(0, x, step & 1, step == 0, prediction=0)]).result()
        driver.device.read_register(0)
        spent = server.received + server.sent - before[0] - 20, server.reads - before[1] - 2
        most = [max(pair) for pair in zip(most, spent, strict=True)]
    return {"bytes": most[0], "trips": most[1]}


# Faults


@dataclass
class Outcome:
    """What became of the streams: those that came out by themselves, after errors, or not at all."""

    healed: int = 0
    recovered: int = 0
    wrong: int = 0
    errors: Counter[str] | None = None


Frame = tuple[list[int], list[int], list[int]]


def stream(driver: Driver, steps: np.ndarray) -> list[Frame]:
    """Greedy frames of a stream, one at a time."""
    found = []
    for step, x in enumerate(steps):
        (r,) = driver.greedy([GreedyEntry(0, x, step & 1, step == 0, prediction=0)]).result()
        found.append((r.tokens.tolist(), r.logits.tolist(), r.lse.tolist()))
    return found


def attempt(driver: Driver, steps: np.ndarray, wanted: list[Frame], outcome: Outcome) -> None:
    """A stream with a fault on its way, and again until it is through."""
    assert outcome.errors is not None
    for number in range(TRIES):
        try:
            right = stream(driver, steps) == wanted
        except DeviceError as error:
            outcome.errors[type(error).__name__] += 1
            driver.recover()
            continue
        if not right:
            outcome.wrong += 1
        elif number:
            outcome.recovered += 1
        else:
            outcome.healed += 1
        return
    outcome.wrong += 1


Sweep = Callable[[Driver, Any, Callable[[], None]], None]


def bytes_of(side: str, change: Callable[[int], int | None]) -> Sweep:
    """A fault at every byte of the frames, to the board or to the host."""

    def sweep(driver: Driver, server: UartServer, run: Callable[[], None]) -> None:
        count = "received" if side == "to_board" else "sent"
        start = getattr(server, count)
        run()
        for place in range(getattr(server, count) - start):
            hit = getattr(server, count) + place
            setattr(server, side, lambda n, value, hit=hit: change(value) if n == hit else value)
            run()
        setattr(server, side, None)

    return sweep


def packets_of(side: str, what: str) -> Sweep:
    """A fault at every packet of the frames."""

    def sweep(driver: Driver, server: EtherServer, run: Callable[[], None]) -> None:
        count = "received" if side == "to_board" else "answered"
        start = getattr(server, count)
        run()
        for place in range(getattr(server, count) - start):
            hit, held = getattr(server, count) + place, list[bytes]()

            def fault(number: int, data: bytes, hit: int = hit, held: list[bytes] = held) -> list[bytes]:
                if number != hit:
                    return [data, held.pop()] if held else [data]
                if what == "late":
                    held.append(data)
                return [data, data] if what == "doubled" else []

            setattr(server, side, fault)
            run()
        setattr(server, side, lambda number, data: [data])

    return sweep


def transfers_of(number: int, times: int) -> Sweep:
    """Every DMA transfer of the frames fails so often."""

    def sweep(driver: Driver, kernel: Kernel, run: Callable[[], None]) -> None:
        start = len(kernel.transfers)
        run()
        for place in range(len(kernel.transfers) - start):
            kernel.after, kernel.failing = place, [number] * times
            run()
            kernel.failing = []

    return sweep


SWEEPS: tuple[tuple[str, str, Sweep], ...] = (
    ("UART", "byte to the host lost", bytes_of("to_host", lambda value: None)),
    ("UART", "byte to the host changed", bytes_of("to_host", lambda value: value ^ 0x10)),
    ("UART", "byte to the board lost", bytes_of("to_board", lambda value: None)),
    ("UART", "byte to the board changed", bytes_of("to_board", lambda value: value ^ 0x10)),
    *(
        ("Ethernet", f"packet {'to the board' if side == 'to_board' else 'to the host'} {what}", packets_of(side, what))
        for side in ("to_board", "to_host")
        for what in ("lost", "doubled", "late")
    ),
    ("XDMA", "transfer fails once: EIO", transfers_of(errno.EIO, 1)),
    ("XDMA", "transfer moves nothing, once", transfers_of(0, 1)),
    ("XDMA", "transfer fails for good: EIO", transfers_of(errno.EIO, 3)),
    ("XDMA", "transfer fails for good: the driver's limit", transfers_of(ERESTARTSYS, 3)),
)


def faults(link: str, what: str, sweep: Sweep) -> dict[str, Any]:
    """One row of the second table."""
    program = random_program(1, config("tiny"), SMALL, blank_bias=1.0)
    steps = random_features(2, FRAMES * SMALL.stack, SMALL).astype(np.int8).reshape(FRAMES, SMALL.stack, -1)
    with Driver(open_emulator(program.config), program) as plain:
        wanted = stream(plain, steps)
    outcome = Outcome(errors=Counter())
    with (
        LINKS[link](program, SOON) as (device, other),
        Driver(device, program, timeout=FAULTY_S) as driver,
    ):
        sweep(driver, other, lambda: attempt(driver, steps, wanted, outcome))
        driver.recover()
    told = ", ".join(f"{count} {name}" for name, count in sorted((outcome.errors or {}).items()))
    row = {"link": link, "fault": what, "streams": outcome.healed + outcome.recovered + outcome.wrong}
    return row | {"by itself": outcome.healed, "recovered": outcome.recovered, "wrong": outcome.wrong, "errors": told}


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as a table, their keys above it."""
    return markdown([tuple(rows[0]), *(tuple(str(cell) for cell in row.values()) for row in rows)])


def main(argv: list[str] | None = None) -> int:
    """Print both tables; 1 where a transcript is wrong or a frame takes too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(LINKS), help="one link alone")
    only = parser.parse_args(argv).only
    rows = [recordings(name) for name in LINKS if only in (None, name)]
    print(table(rows), flush=True)
    swept = []
    for link, what, sweep in SWEEPS:
        if only in (None, link):
            swept.append(faults(link, what, sweep))
            print(f"{link}: {what}", file=sys.stderr, flush=True)
    print(table(swept))
    bad = any(row["same"] != row["recordings"] for row in rows) or any(row["wrong"] for row in swept)
    over = any(row["bytes"] and (row["bytes"] > MOST_BYTES or row["trips"] > MOST_TRIPS) for row in rows)
    return int(bad or over)


if __name__ == "__main__":
    sys.exit(main())
