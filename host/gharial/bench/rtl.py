# SPDX-License-Identifier: Apache-2.0
"""How well the RTL uses its array: one utterance on the simulated device, by the device's own counters."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from gharial.bench.counted import CountedDevice
from gharial.bench.manifest import read_set
from gharial.bench.observed import Observed, Point, check_sums
from gharial.bench.products import Product, products
from gharial.bench.watch import Progress, Watch
from gharial.compiler.calibrate import audio_features
from gharial.devices.open import device_config, open_device
from gharial.devices.verilator.device import VerilatorDevice
from gharial.devices.verilator.profile import Rows
from gharial.driver import Driver, EncodeEntry, GreedyEntry
from gharial.driver.registers import Counters
from gharial.errors import GharialError
from gharial.features import quantise_features
from gharial.isa.configs import Config
from gharial.model import demo_model, front_end, open_model, vocabulary
from gharial.program import Program

TIMEOUT = 600.0
"""Seconds that a wait may take: a clock of simulation can take long."""


@dataclass(frozen=True)
class Decoded:
    """What greedy decoding of an utterance gave.

    Attributes:
        steps: of each encoder step its tokens, their logits, and log-sum-exps.
        predictions, joints: prediction steps, the start included, and joint evaluations.
    """

    steps: list[tuple[list[int], list[int], list[int]]]
    predictions: int
    joints: int


def bench_rtl(
    config: str,
    model: str | os.PathLike[str] | None = None,
    recording: str | os.PathLike[str] | None = None,
    *,
    progress: Callable[[int, int], object] | None = None,
    note: Callable[[str], object] | None = None,
    clocks: Progress | None = None,
    observe: Callable[[Observed], object] | None = None,
) -> dict[str, Any]:
    """Decode an utterance greedily on the RTL, its commands queued ahead, and again with the encoder alone.

    Clocks count from the doorbell of the first command to the moment the last completion has been taken. Useful
    products are those of the model's shapes, without padding.

    Args:
        config: hardware configuration.
        model: hardware checkpoint or program; None for the shipped demo model.
        recording: audio file; None for the first of the shipped recordings.
        progress, note: as in `open_model`.
        clocks: called with clocks done and clocks expected.
        observe: called with what the run shows beyond its figures, which makes the simulation slower.

    Returns:
        config, model, batch, workload, text; n_encode, n_pred, n_joint; cycles, useful_macs, array_macs_per_cycle,
        utilisation; encode_cycles, encode_utilisation; bytes_read (0: weights are on chip), roofline_cycles,
        roofline_ratio, linear_read_bytes_per_cycle (None); active and stalls {cause: clocks}, which add up to cycles;
        layers [{name, runs, macs, array_cycles}]; checked_against_emulator.

    Raises:
        BadInput: model, recording or configuration cannot be used, or the RTL cannot be simulated here.
        GharialError: the RTL does not compute what the emulator does, or the device failed.
    """
    device = f"verilator:{config}"
    program = open_model(model, device_config(device), progress=progress, note=note)
    path = _first_recording() if recording is None else Path(recording)
    steps = _steps(program, path)
    with _driver(program, "emulator")[0] as driver:
        expected = _greedy(driver, steps)
    made = products(program, steps, expected.predictions, expected.joints)
    driver, counted = _driver(program, device)
    rtl = counted.inner
    assert isinstance(rtl, VerilatorDevice)
    profile = None
    with driver:
        parts = [sum(p.array_cycles for p in made), sum(p.array_cycles for p in made if p.encoder)]
        watch = Watch(lambda: rtl.cycles, clocks, parts)
        counted.waited = watch.look
        if observe is not None:
            rtl.begin_profile(Rows.of(program.layers))
        counted.arm()
        found = _greedy(driver, steps)
        spent = driver.counters().since(counted.before)
        if observe is not None:
            profile = rtl.take_profile()
        _compare(expected, found)
        watch.next()
        counted.arm()
        _encode(driver, steps)
        encoding = driver.counters().since(counted.before)
    if observe is not None and profile is not None:
        check_sums(profile, asdict(spent))
        observe(Observed(profile, (Point("this run", sum(p.macs for p in made), 0, spent.cycles),)))
    name = Path(demo_model() if model is None else model).name
    text = vocabulary(program).text(token for tokens, *_ in found.steps for token in tokens)
    return _summary(program.config, name, path.name, text, len(steps), found, spent, encoding, made)


def _summary(
    config: Config,
    model: str,
    recording: str,
    text: str,
    steps: int,
    decoded: Decoded,
    spent: Counters,
    encoding: Counters,
    made: Sequence[Product],
) -> dict[str, Any]:
    clocks = asdict(spent)
    stalls = {cause: count for cause, count in clocks.items() if cause not in ("cycles", "active")}
    if spent.active + sum(stalls.values()) != spent.cycles:
        raise GharialError(f"the device's counters do not add up: {clocks}")
    macs = sum(product.macs for product in made)
    encoder_macs = sum(product.macs for product in made if product.encoder)
    array = config.rows * config.cols
    return {
        "config": config.name,
        "model": model.removesuffix(".hw.pt").removesuffix(".gprog"),
        "batch": 1,
        "workload": f"greedy decoding of one utterance, {recording}",
        "text": text,
        "n_encode": steps,
        "n_joint": decoded.joints,
        "n_pred": decoded.predictions,
        "cycles": spent.cycles,
        "useful_macs": macs,
        "array_macs_per_cycle": array,
        "utilisation": macs / (array * spent.cycles),
        "encode_cycles": encoding.cycles,
        "encode_utilisation": encoder_macs / (array * encoding.cycles),
        "bytes_read": 0,
        "roofline_cycles": macs / array,
        "roofline_ratio": spent.cycles * array / macs,
        "linear_read_bytes_per_cycle": None,
        "active": spent.active,
        "stalls": stalls,
        "layers": [{"name": p.name, "runs": p.runs, "macs": p.macs, "array_cycles": p.array_cycles} for p in made],
        "checked_against_emulator": True,
    }


def _first_recording() -> Path:
    return read_set(Path(str(files("gharial"))) / "data" / "recordings")[0].path


def _steps(program: Program, recording: Path) -> list[np.ndarray]:
    """Feature vectors of each encoder step, int8 (1..stack, F)."""
    vectors = audio_features(recording, front_end(program))
    features = quantise_features(vectors, program.manifest["features"]["frac_bits"])
    stack = program.header["vectors"]
    return [features[at : at + stack] for at in range(0, len(features), stack)]


def _driver(program: Program, device: str) -> tuple[Driver, CountedDevice]:
    counted = CountedDevice(open_device(device, program.config, program.manifest))
    return Driver(counted, program, timeout=TIMEOUT), counted


def _greedy(driver: Driver, steps: Sequence[np.ndarray]) -> Decoded:
    tickets = [driver.greedy([GreedyEntry(0, step, n & 1, reset=n == 0, prediction=0)]) for n, step in enumerate(steps)]
    # One after the other, as a live host does: what is left to be taken at the end is the last completion alone.
    results = [ticket.result()[0] for ticket in tickets]
    return Decoded(
        [(r.tokens.tolist(), r.logits.tolist(), r.lse.tolist()) for r in results],
        sum(ticket.predictions for ticket in tickets),
        sum(ticket.joints for ticket in tickets),
    )


def _encode(driver: Driver, steps: Sequence[np.ndarray]) -> None:
    tickets = [driver.encode([EncodeEntry(0, step, n & 1, reset=n == 0)]) for n, step in enumerate(steps)]
    for ticket in tickets:
        ticket.result()


def _compare(expected: Decoded, found: Decoded) -> None:
    for step, (wanted, got) in enumerate(zip(expected.steps, found.steps, strict=True)):
        for what, a, b in zip(("tokens", "logits", "log-sum-exps"), wanted, got, strict=True):
            if a != b:
                raise GharialError(f"encoder step {step}: {what} {b} of the RTL, {a} of the emulator")
    for what in ("predictions", "joints"):
        a, b = getattr(expected, what), getattr(found, what)
        if a != b:
            raise GharialError(f"{what}: {b} counted by the RTL, {a} by the emulator")
