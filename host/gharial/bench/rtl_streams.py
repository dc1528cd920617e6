# SPDX-License-Identifier: Apache-2.0
"""How well the RTL of a configuration with weights in memory uses its array and its memory: many streams in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gharial.bench.counted import CountedDevice
from gharial.bench.observed import Observed, Point, check_sums
from gharial.bench.products import Product, products
from gharial.bench.random_model import SHAPES, random_program
from gharial.bench.streams import WORKLOADS, Command, Traffic
from gharial.bench.watch import Progress, Watch
from gharial.devices.open import device_config, open_device
from gharial.devices.verilator.device import VerilatorDevice
from gharial.devices.verilator.profile import Profile, Rows
from gharial.driver import Driver, EncodeEntry
from gharial.driver.registers import Counters
from gharial.driver.results import DecodeResult
from gharial.driver.ticket import Ticket
from gharial.errors import BadInput, GharialError
from gharial.isa.configs import Config
from gharial.model import open_model
from gharial.program import Program

TIMEOUT = 3600.0
"""Seconds that a wait for one command may take: clocks of a large array in simulation take long."""

K = 4
"""Classes listed of each joint."""

AHEAD = 8
"""Commands that wait in the ring, so that the device never waits for one."""

ENCODED, MIXED = 12, 40
"""Encoder batches of a run, where nothing else is said: alone, and in the mix."""
SAVED = 4
"""Streams whose states are compared at the end."""


@dataclass(frozen=True)
class Ran:
    """What a run of a workload on a device took.

    Attributes:
        encodes, joints, predictions: entries.
        batches: encoder batches.
        spent: clocks by the device's counters.
        bytes_read: by the device from its memory.
        profile: of its clocks, if it was asked for.
    """

    encodes: int
    joints: int
    predictions: int
    batches: int
    spent: Counters
    bytes_read: int
    profile: Profile | None


def bench_streams(
    config: Config,
    model: str | os.PathLike[str] | None = None,
    *,
    batch: int | None = None,
    workload: str = "encode",
    batches: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    note: Callable[[str], object] | None = None,
    observe: Callable[[Observed], object] | None = None,
) -> dict[str, Any]:
    """Run batches of many streams on the RTL, beside the emulator, which has to give the same.

    Clocks count from the doorbell of the first command to the moment the last completion has been taken. The workloads
    "mix" and "ragged" are run after their encoder steps alone have been, which give `encode_utilisation`.

    Args:
        config: hardware configuration, with weights in memory.
        model: name of a shape (`SHAPES`; random weights), checkpoint or program; None for "base".
        batch: entries of a command; None for the configuration's seats.
        workload: one of `WORKLOADS`.
        batches: encoder batches; None for `ENCODED`, and `MIXED` in the mix. What the mix leaves to decode after its
            last encoder batch runs alone, so a short mix says little about a long one.
        seed: of weights, features and tokens.
        progress: called with clocks done and clocks expected.
        note: as in `open_model`.
        observe: called with what the run shows beyond its figures, which makes the simulation slower.

    Returns:
        The object of `gharial bench rtl --json`.

    Raises:
        BadInput: an argument is out of range, or the RTL cannot be simulated here.
        GharialError: the RTL does not compute what the emulator does, or the device failed.
    """
    if workload not in WORKLOADS:
        raise BadInput("unknown workload", "--workload", workload, " or ".join(WORKLOADS))
    size = config.batch if batch is None else batch
    if not 1 <= size <= config.batch:
        raise BadInput("batch is out of range", "--batch", size, f"1..{config.batch} ({config.name})")
    count = (MIXED if workload == "mix" else ENCODED) if batches is None else batches
    ragged = workload == "ragged"
    device_config(f"verilator:{config.name}")  # refuses what cannot be simulated before anything takes long
    shape = "base" if model is None else str(model)
    alone = count if workload == "encode" else min(count, ENCODED)
    known = SHAPES.get(shape)
    program = random_program(seed, config, known) if known else open_model(model, config, note=note)
    with _rtl(program) as (driver, counted, rtl):
        linear = rtl.linear_read(_weight_bytes(program, 1, 0, 0))
        mixed = workload != "encode"
        parts = [alone * _expected(program, linear, size, False)]
        if mixed:
            parts.append(count * _expected(program, linear, size, True))
        watch = Watch(lambda: rtl.cycles, progress, parts)
        counted.waited = watch.look
        watched = observe is not None
        first = Traffic(program, size, alone, False, seed, ragged=ragged)
        encoding = _run(driver, counted, rtl, program, first, watch, watched and not mixed)
        measured = encoding
        if mixed:
            second = Traffic(program, size, count, True, seed, ragged=ragged)
            measured = _run(driver, counted, rtl, program, second, watch, watched)
    found = _summary(program, Path(shape).name, size, workload, encoding, measured, linear)
    if observe is not None and measured.profile is not None:
        check_sums(measured.profile, asdict(measured.spent))
        points = [_point("this run", program, size, measured)]
        if mixed:
            points.append(_point("encoder alone", program, size, encoding))
        observe(Observed(measured.profile, tuple(points)))
    return found


@contextmanager
def _rtl(program: Program) -> Iterator[tuple[Driver, CountedDevice, VerilatorDevice]]:
    rtl = open_device(f"verilator:{program.config.name}", program.config, program.manifest)
    assert isinstance(rtl, VerilatorDevice)
    counted = CountedDevice(rtl)
    with Driver(counted, program, timeout=TIMEOUT) as driver:
        yield driver, counted, rtl


def _expected(program: Program, linear: float, batch: int, mixed: bool) -> float:
    """Clocks of an encoder batch at least; in the mix, of what a batch leaves to decode as well."""
    tokens = batch // 5 if mixed else 0
    joints = batch + tokens if mixed else 0
    macs = sum(p.macs for p in products(program, [_step(program)] * batch, tokens, joints))
    array = program.config.rows * program.config.cols
    return max(macs / array, _weight_bytes(program, 1, int(mixed), int(mixed)) / linear)


def _run(
    driver: Driver,
    counted: CountedDevice,
    rtl: VerilatorDevice,
    program: Program,
    traffic: Traffic,
    watch: Watch,
    profiled: bool,
) -> Ran:
    with Driver(open_device("emulator", program.config, program.manifest), program) as emulator:
        if profiled:
            rtl.begin_profile(Rows.of(program.layers))
        counted.arm()
        moved = rtl.bytes_moved
        pending: list[tuple[Ticket[Any], Ticket[Any]]] = []
        for command in traffic.commands():
            pending.append((_post(emulator, program, command), _post(driver, program, command)))
            while driver.in_flight > AHEAD:
                _check(*pending.pop(0), driver)
        for expected, found in pending:
            _check(expected, found, driver)
        spent = driver.counters().since(counted.before)
        moved = rtl.bytes_moved - moved
        profile = rtl.take_profile() if profiled else None
        _compare_state(emulator, driver, traffic)
    watch.next()
    return Ran(traffic.encodes, traffic.joints, traffic.predictions, traffic.passes, spent, moved, profile)


def _post(driver: Driver, program: Program, command: Command) -> Ticket[Any]:
    if isinstance(command[0], EncodeEntry):
        return driver.encode(command)  # type: ignore[arg-type]
    return driver.decode(command, k=min(K, program.header["classes"]), named=(program.header["blank"],))  # type: ignore[arg-type]


def _check(expected: Ticket[Any], found: Ticket[Any], driver: Driver) -> None:
    a, b = expected.result(), found.result()
    if not isinstance(a, DecodeResult):
        return
    for what in ("lse", "named", "classes", "logits"):
        wanted, got = getattr(a, what), getattr(b, what)
        if not np.array_equal(wanted, got):
            row = int(np.flatnonzero((wanted != got).reshape(len(wanted), -1).any(axis=1))[0])
            raise GharialError(f"decode entry {row}: {what} {got[row]} of the RTL, {wanted[row]} of the emulator")


def _compare_state(emulator: Driver, driver: Driver, traffic: Traffic) -> None:
    """States at the end, of some streams where there are many: saving takes the device a clock and more a word."""
    random = np.random.default_rng(traffic.seed)
    streams = sorted(int(n) for n in random.permutation(traffic.streams)[:SAVED])
    kinds = {"encoder": streams}
    if traffic.decode:
        kinds["prediction"] = [2 * stream for stream in streams]
    for kind, slots in kinds.items():
        wanted, got = emulator.save(kind, slots).result(), driver.save(kind, slots).result()
        for slot, a, b in zip(slots, wanted, got, strict=True):
            if a != b:
                raise GharialError(f"{kind} slot {slot}: the RTL's state is not the emulator's")


def _step(program: Program) -> np.ndarray:
    return np.zeros((program.header["vectors"], 0), np.int8)


def _weight_bytes(program: Program, encodes: int, predictions: int, joints: int) -> int:
    """Bytes of the matrices that so many passes over the sections have to read.

    Each once, but those that a layer before the time stack multiplies h with once for every feature vector.
    """
    total = 0
    for name, layer in program.layers.items():
        group = name.rpartition(".")[0] or name
        passes = {"prediction": predictions, "joint_pred": predictions, "logits": joints}.get(group, encodes)
        rows = layer["units"] * (4 if layer["kind"] == "lstm" else 1)
        for part in layer.get("parts", ()):
            again = program.header["vectors"] if group == "encoder.pre_rnn" and part["input"] == "h" else 1
            total += passes * again * rows * part["columns"]
    return total


def _summary(
    program: Program, model: str, batch: int, workload: str, encoding: Ran, measured: Ran, linear: float
) -> dict[str, Any]:
    config = program.config
    spent = measured.spent
    clocks = asdict(spent)
    stalls = {cause: count for cause, count in clocks.items() if cause not in ("cycles", "active")}
    if spent.active + sum(stalls.values()) != spent.cycles:
        raise GharialError(f"the device's counters do not add up: {clocks}")
    made = _products(program, measured)
    macs = sum(product.macs for product in made)
    array = config.rows * config.cols
    needed = _needed(program, batch, measured)
    roofline = max(needed / linear, macs / array)
    alone = sum(product.macs for product in _products(program, encoding))
    return {
        "config": config.name,
        "model": model.removesuffix(".hw.pt").removesuffix(".gprog"),
        "batch": batch,
        "workload": workload,
        "n_encode": measured.encodes,
        "n_joint": measured.joints,
        "n_pred": measured.predictions,
        "cycles": spent.cycles,
        "useful_macs": macs,
        "array_macs_per_cycle": array,
        "utilisation": macs / (array * spent.cycles),
        "encode_cycles": encoding.spent.cycles,
        "encode_utilisation": alone / (array * encoding.spent.cycles),
        "bytes_read": measured.bytes_read,
        "roofline_cycles": roofline,
        "roofline_ratio": spent.cycles / roofline,
        "linear_read_bytes_per_cycle": linear,
        "active": spent.active,
        "stalls": stalls,
        "layers": [{"name": p.name, "runs": p.runs, "macs": p.macs, "array_cycles": p.array_cycles} for p in made],
        "checked_against_emulator": True,
    }


def _needed(program: Program, batch: int, ran: Ran) -> int:
    """Bytes of weights that a run has to read."""
    rounds = -(-ran.joints // batch)
    return _weight_bytes(program, ran.batches, min(rounds, ran.predictions), rounds)


def _point(name: str, program: Program, batch: int, ran: Ran) -> Point:
    macs = sum(product.macs for product in _products(program, ran))
    return Point(name, macs, _needed(program, batch, ran), ran.spent.cycles)


def _products(program: Program, ran: Ran) -> Sequence[Product]:
    return products(program, [_step(program)] * ran.encodes, ran.predictions, ran.joints)
