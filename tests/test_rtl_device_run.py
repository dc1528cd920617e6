# SPDX-License-Identifier: Apache-2.0
"""Whole utterances on the RTL: every tensor, and every way to ask for one, as the emulator has it.

recording ── features ── driver ── rings ── RTL in simulation ── tokens, logits, log-sum-exps, traces
                                      └──── emulator ─────────── the same
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Run
from compiled import program as compiled
from recordings import FILES, SHORT
from rtl_device import LONG, needed, open_rtl
from small_program import assemble
from small_run import features, transcript

from gharial.bench.counted import CountedDevice
from gharial.devices.emulator import open_emulator
from gharial.driver import DecodeEntry, Driver, EncodeEntry, GreedyEntry
from gharial.isa.commands import Kind, Mode
from gharial.isa.configs import config
from gharial.model import compile_model, demo_model
from gharial.program import Program
from gharial.recognise import load
from gharial.trace import first_difference, tensors, trace_recording

CONFIGS = ("tiny", "ecp5-85f")


@cache
def demo(name: str) -> Program:
    return compile_model(demo_model(), name)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("file", FILES[:2], ids=lambda file: file.stem)
def test_every_tensor_of_an_utterance(name: str, file: Path) -> None:
    """The log-sum-exps of blanks are those that the RTL does not compute."""
    needed()
    expected = trace_recording(demo(name), file)
    found = trace_recording(demo(name), file, f"verilator:{name}")
    assert list(found) == list(tensors(demo(name)))
    assert len(expected["tokens"]) > 0
    assert first_difference(expected, found) is None
    assert all(np.array_equal(expected[key], found[key]) for key in expected)


def test_a_small_conversation() -> None:
    """Encoding, decoding from slot to slot, saved states: the driver's small program by hand."""
    program = assemble()
    assert transcript(open_rtl, program) == transcript(open_emulator, program)


def searched(driver: Driver, seed: int) -> list[Any]:
    """A search over a few steps: every mode, log-sum-exps of every evaluation, at two temperatures."""
    stack, count = driver.program.header["vectors"], driver.program.manifest["features"]["count"]
    classes, blank = driver.program.header["classes"], driver.program.header["blank"]
    found: list[Any] = []
    for step, x in enumerate(features(seed, 4, stack, count)):
        bank = step & 1
        driver.encode([EncodeEntry(1, x, bank, step == 0), EncodeEntry(2, x[:1], bank, True)])
        kind = Kind.START if step == 0 else Kind.TOKEN
        for mode, k, temperature in ((Mode.TOP_K, min(33, classes), 16384), (Mode.ALL, 1, 9000)):
            entries = [DecodeEntry(s, bank, kind, 2 * s, 2 * s + step % 2, (7 * step + s) % blank) for s in (1, 2)]
            named = [0, classes - 1, 5]
            result = driver.decode(entries, k=k, mode=mode, named=named, temperature=temperature).result()
            found += [result.lse.tolist(), result.logits.tolist(), result.named.tolist()]
            found += [result.classes.tolist()] if mode == Mode.TOP_K else []
        driver.copy("prediction", [(2 + step % 2, 2), (4 + step % 2, 4)])
        found += [image.data for image in driver.save("prediction", [2, 4]).result()]
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_a_search(name: str, seed: int) -> None:
    for program in (demo(name), compiled(seed, name)):
        shown = []
        for device in (open_rtl(program.config), open_emulator(program.config)):
            with Driver(device, program, timeout=LONG) as driver:
                shown.append(searched(driver, seed))
        assert shown[0] == shown[1]


def test_streams_together(seed: int) -> None:
    """Batches of every stream there is room for, of different lengths; counters and clocks of completions add up."""
    program = compiled(seed, "tiny", blank_bias=1.0)
    stack, count = program.header["vectors"], program.manifest["features"]["count"]
    streams = [features(seed + n, 2 + n % 3, stack, count) for n in range(8)]
    shown = []
    for device in (open_rtl(program.config), open_emulator(program.config)):
        with Driver(device, program, timeout=LONG) as driver:
            tickets = []
            before = driver.counters()
            for step in range(4):
                entries = [
                    GreedyEntry(n, s[step], step & 1, step == 0, n) for n, s in enumerate(streams) if step < len(s)
                ]
                tickets += [driver.greedy(entries, max_symbols=3)] if entries else []
            shown.append([[(r.tokens.tolist(), r.lse.tolist(), r.joints) for r in t.result()] for t in tickets])
            spent = driver.counters().since(before)
            parts = spent.active + spent.weights + spent.dependency + spent.backpressure + spent.loading + spent.idle
            assert parts == spent.cycles
            clocked = device.kind == "verilator"
            assert (spent.cycles > 0) == (spent.active > 0) == all(t.cycles > 0 for t in tickets) == clocked
    assert shown[0] == shown[1]


def test_values_at_power_on_do_not_show() -> None:
    """Registers and memories that begin with other numbers give the same results and the same clocks."""
    from gharial.devices.verilator import open_verilator

    needed()
    program = demo("tiny")
    stack, count = program.header["vectors"], program.manifest["features"]["count"]
    shown = []
    for seed in (1, 2, 3):
        with Driver(open_verilator(config("tiny"), seed), program, timeout=LONG) as driver:
            results = [
                driver.greedy([GreedyEntry(0, x, n & 1, n == 0, prediction=0)]).result()[0]
                for n, x in enumerate(features(1, 4, stack, count))
            ]
            shown.append([[(r.tokens.tolist(), r.logits.tolist(), r.lse.tolist()) for r in results], driver.counters()])
    assert shown[0] == shown[1] == shown[2]


def test_counted_from_the_doorbell() -> None:
    program = demo("tiny")
    counted = CountedDevice(open_rtl(program.config))
    with Driver(counted, program, timeout=LONG) as driver:
        early = driver.counters()
        counted.arm()
        driver.reset("encoder", [0]).result()
        first = counted.before
        driver.reset("encoder", [0]).result()
        assert counted.before == first
        assert first.since(early).cycles > 0


@pytest.mark.parametrize("name", CONFIGS)
def test_bench(cli: Run, name: str) -> None:
    """The figures hang together: what was multiplied is what the layers need, and clocks are counted once."""
    needed()
    outcome = cli("bench", "rtl", "--config", name, "--audio", SHORT, "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["config"], found["model"], found["batch"]) == (name, "demo-small", 1)
    assert found["array_macs_per_cycle"] == config(name).rows * config(name).cols
    assert found["active"] + sum(found["stalls"].values()) == found["cycles"]
    assert found["active"] == sum(layer["array_cycles"] for layer in found["layers"])
    assert found["useful_macs"] == sum(layer["macs"] for layer in found["layers"])
    encode, joint, prediction = 307_200, 16_384, 36_864  # a step of demo-small
    whole = found["n_encode"] * encode + found["n_joint"] * joint + found["n_pred"] * prediction
    missing = next(layer for layer in found["layers"] if layer["name"] == "encoder.pre_rnn.0")["runs"] % 2
    assert whole - missing * 110_592 == found["useful_macs"]  # the last step may have one feature vector
    ratio = found["useful_macs"] / found["array_macs_per_cycle"] / found["cycles"]
    assert found["utilisation"] == pytest.approx(ratio)
    least = {"tiny": 0.85, "ecp5-85f": 0.90}[name]
    assert found["utilisation"] >= least and found["encode_utilisation"] >= least
    assert found["checked_against_emulator"] is True
    again = json.loads(cli("bench", "rtl", "--config", name, "--audio", SHORT, "--json").out)
    assert again["cycles"] == found["cycles"], "clocks do not depend on how busy this machine is"
    with load() as recogniser:
        assert found["text"] == recogniser.transcribe(SHORT).text


def test_bench_in_words(cli: Run) -> None:
    needed()
    outcome = cli("bench", "rtl", "--config", "tiny")
    assert outcome.code == 0, outcome.err
    assert "utilisation" in outcome.out and "demo-small" in outcome.out


def test_bench_of_what_there_is_not(cli: Run) -> None:
    cli("bench", "rtl", "--config", "u50", "--audio", "talk.wav").refused("--audio", "weights on chip")
    cli("bench", "rtl", "--config", "tiny", "--batch", "2").refused("--batch", "weights in memory")
    cli("bench", "rtl", "--config", "u50", "--batch", "17").refused("--batch", "1..16")
    cli("bench", "rtl", "--config", "u50", "--workload", "all").refused("--workload", "encode or mix")
    cli("bench", "rtl", "--config", "nothing").refused("unknown hardware configuration")
