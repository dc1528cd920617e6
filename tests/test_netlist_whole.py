# SPDX-License-Identifier: Apache-2.0
"""The netlist of the whole machine against the RTL, and mistakes in it that must show.

Synthesis takes minutes: the netlist in the repository is taken as long as it is of today's sources. With
GHARIAL_LONG=1, and where it is not, one is made.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from compiled import program as compiled
from recordings import SHORT
from rtl_device import needed, open_rtl
from scripts.rtl import tools
from sim.ecp5 import build, kept, proof
from small_program import assemble
from small_run import features, transcript

from gharial.devices.emulator import open_emulator
from gharial.errors import GharialError
from gharial.isa.configs import Config, config
from gharial.model import compile_model, demo_model

TINY = config("tiny")


LONG = pytest.mark.skipif(not os.environ.get("GHARIAL_LONG"), reason="make bench runs it: GHARIAL_LONG=1")


@pytest.fixture(scope="module")
def usable() -> None:
    needed()
    problem = tools.lacking([tools.PYOSYS])
    if problem:
        pytest.skip(problem)
    tools.prepare()


@pytest.fixture(scope="module")
def netlist(usable: None) -> Path:
    return build.synthesised("tiny")


@pytest.fixture(scope="module")
def made(usable: None, request: pytest.FixtureRequest) -> Path:
    if os.environ.get("GHARIAL_LONG"):
        return build.library("tiny", request.getfixturevalue("netlist"))
    return kept.library()


def impatient(own: Config, path: Path) -> build.NetlistDevice:
    """A netlist that may stand still."""
    device = build.NetlistDevice(own, path)
    device.most = 1_000_000
    return device


def test_frames_and_their_clocks(made: Path, seed: int) -> None:
    """Completions, results and clocks of a network with random weights."""
    program = compiled(seed, "tiny")
    steps = features(seed, 6, program.header["vectors"], program.manifest["features"]["count"])
    expected = proof.decoded(open_rtl(TINY), program, steps)
    assert proof.decoded(build.NetlistDevice(TINY, made), program, steps) == expected


@LONG
def test_an_utterance(made: Path) -> None:
    """The same of the demo model."""
    program = compile_model(demo_model(), "tiny")
    steps = proof.steps(program, SHORT)
    expected = proof.decoded(open_rtl(TINY), program, steps)
    assert proof.decoded(build.NetlistDevice(TINY, made), program, steps) == expected
    assert sum(len(frame[0]) for frame in expected) > 0


def test_everything_that_a_device_can_be_asked(made: Path) -> None:
    """Searches from slot to slot and saved states; whatever memories hold at power-on."""
    program = assemble()
    expected = transcript(open_emulator, program)
    for seed in (1, 2):
        assert transcript(lambda own, seed=seed: build.NetlistDevice(own, made, seed), program) == expected


def test_a_netlist_of_other_sources_is_not_taken(usable: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "sources_digest", lambda: "0" * 64)
    assert kept.words() is None


@LONG
def test_the_kept_netlist_is_what_synthesis_leaves(usable: None) -> None:
    assert kept.words() == kept.made(), "after a change of the RTL: python -m sim.ecp5.kept"


@LONG
def test_a_mistake_shows(netlist: Path, seed: int) -> None:
    """Cells with the complement of their function: of ten, some are in the way of what comes out."""
    random = np.random.default_rng(seed)
    program = assemble()
    expected = transcript(open_emulator, program)
    noticed = []
    for _ in range(10):
        path = build.library("tiny", netlist, proof.inverted("CCU2C" if random.random() < 0.5 else "LUT4", random))
        try:
            noticed.append(transcript(lambda own, path=path: impatient(own, path), program) != expected)
        except GharialError:
            noticed.append(True)
        if noticed[-1]:
            return
    pytest.fail(f"none of {len(noticed)} mistakes was noticed")
