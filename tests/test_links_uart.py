# SPDX-License-Identifier: Apache-2.0
"""A board at a serial port: a real pseudo-terminal, with LiteX's UARTBone and the emulator at its other end."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from links import BAUD, LONG, SOON, Board, board, connect, emulator, expected, expected_frames, frames
from sim.links.bridges import FORGET_S, Bus, Fault, UartServer
from small_program import TINY, assemble
from small_run import transcript

import gharial
from gharial.devices.litex import LitexDevice
from gharial.devices.litex.uart import UartBridge
from gharial.driver import Driver, GreedyEntry
from gharial.errors import DeviceError, GharialError, LinkError
from gharial.isa import _registers as reg
from gharial.isa.commands import greedy_result_bytes
from gharial.isa.configs import config
from gharial.model import open_model

pytest.importorskip("serial", reason="needs pyserial")


@pytest.fixture
def here() -> Iterator[Board]:
    with board(UartServer) as found:
        found.server.forget_s = LONG  # no byte is late here; tests that lose some have it forget
        yield found


@pytest.fixture
def driver(here: Board) -> Iterator[Driver]:
    with Driver(here.link, assemble(), timeout=LONG) as driver:
        yield driver


def test_everything_that_a_device_can_be_asked(here: Board) -> None:
    here.unhurried()
    assert transcript(lambda _: here.link, assemble()) == expected()
    assert here.link.bridge.retries == 0
    assert here.server.overrun == 0, "the host spoke while the bridge answered"
    assert here.bus.errors == 0


def test_words_and_their_edges(here: Board, seed: int) -> None:
    """Reads and writes of any place and length, against a copy of the memory."""
    here.unhurried()
    chosen = random.Random(seed)
    copy = bytearray(TINY.window_bytes)
    for _ in range(40):
        count = chosen.choice([0, 1, 3, 4, 5, 64, 1020, 1021, 1024, 3000])
        at = chosen.randrange(len(copy) - count + 1)
        data = chosen.randbytes(count)
        here.link.write_memory(at, data)
        copy[at : at + count] = data
        at = chosen.randrange(len(copy) - count + 1)
        assert here.link.read_memory(at, count) == copy[at : at + count]
    assert here.device.read_memory(0, len(copy)) == copy
    for at, count in ((-1, 4), (len(copy), 1), (len(copy) - 3, 4)):
        with pytest.raises(DeviceError, match="outside the device memory"):
            here.link.read_memory(at, count)
        with pytest.raises(DeviceError, match="outside the device memory"):
            here.link.write_memory(at, bytes(count))
    for offset in (2, 0x68, 0x100):
        with pytest.raises(DeviceError, match="no register"):
            here.link.read_register(offset)


@pytest.mark.parametrize(("baud", "words"), [(1_000_000, 255), (115_200, 142), (9600, 10), (300, 1)])
def test_no_command_takes_longer_than_the_bridge_waits(here: Board, baud: int, words: int) -> None:
    here.link.close()
    bridge = UartBridge(here.server.path, baud)
    assert bridge.most == words and (words == 1 or (6 + 4 * words) * 10 / baud <= 0.05)
    bridge.close()


def test_bytes_and_round_trips_of_a_frame() -> None:
    """The demo model at 1 Mbaud: two round trips and at most 1500 bytes for every frame, whatever it emits."""
    program = open_model(None, config("ecp5-85f"))
    device = emulator.open_emulator(program.config)
    server = UartServer(Bus(device))
    server.forget_s = LONG
    server.start()
    bridge = UartBridge(server.path, BAUD, LONG)
    stack, count = program.header["vectors"], program.manifest["features"]["count"]
    random = np.random.default_rng(7)
    with Driver(LitexDevice("litex:uart", program.config, bridge), program, timeout=LONG) as driver:
        result = greedy_result_bytes(program.manifest["decoding"]["max_symbols"])
        emitted = 0
        for step in range(24):
            x = random.integers(-90, 90, (stack, count)).astype(np.int8)
            driver.device.read_register(0)  # an answer: whatever was sent before has arrived
            before = server.received, server.sent, server.reads
            entry = GreedyEntry(0, x, step & 1, step == 0, prediction=0)
            (found,) = driver.greedy([entry]).result()
            driver.device.read_register(0)
            to_board = server.received - before[0] - 12  # without the reads just made
            to_host = server.sent - before[1] - 8
            assert server.reads - before[2] - 2 == 2
            # Entry and features, descriptor, doorbell, what was taken; each read; completions from this one on, the
            # results behind them, and the results of what was emitted once more.
            assert to_board == (6 + 64 + stack * program.header["feature_bytes"]) + (6 + 64) + 10 + 10 + 2 * 6
            ring = 32 << driver.plan.ring_log2
            index = (driver._rings.sent - 1) % (1 << driver.plan.ring_log2) if driver._rings else 0
            assert to_host == ring - 32 * index + result + 8 + 8 * found.joints
            assert to_board + ring + 2 * result <= 1500
            emitted += len(found.tokens)
        assert emitted, "frames without a token do not show what a token costs"
        assert bridge.retries == server.overrun == driver.link_retries == 0
    server.stop()


def test_a_recording_by_its_device_name() -> None:
    """The command line's way: the board says which configuration it has, the demo model is compiled for it."""
    program = open_model(None, config("ecp5-85f"))
    device = emulator.open_emulator(program.config)
    server = UartServer(Bus(device))
    server.forget_s = LONG
    server.start()
    audio = Path(str(gharial.__file__)).parent / "data" / "recordings" / "u084.flac"
    with gharial.load(device=f"litex:uart:{server.path}") as board, gharial.load() as plain:
        assert board.device.config.name == "ecp5-85f" and board.device.kind == "litex"
        found, wanted = board.transcribe(audio), plain.transcribe(audio)
    assert found.text == wanted.text != ""
    assert [(t.text, t.start, t.confidence) for t in found.tokens] == [
        (t.text, t.start, t.confidence) for t in wanted.tokens
    ]
    server.stop()


# A wire that loses and changes bytes


def at(number: int, change: Callable[[int], int | None]) -> Fault:
    """A fault that befalls one byte."""
    return lambda n, value: change(value) if n == number else value


def lost(value: int) -> int | None:
    del value
    return None


@pytest.mark.parametrize("what", ["lost", "changed"])
def test_an_answer_that_is_damaged_is_asked_for_again(here: Board, driver: Driver, seed: int, what: str) -> None:
    """Wherever it is: in completions, in results. No error, nothing wrong."""
    chosen = random.Random(seed)
    flip = 1 << chosen.randrange(8)
    start = here.server.sent
    frames(driver)
    total = here.server.sent - start
    hits = []

    def change(value: int) -> int | None:
        hits.append(value)
        return None if what == "lost" else value ^ flip

    for _ in range(4):
        here.server.to_host = at(here.server.sent + chosen.randrange(total), change)
        assert frames(driver) == expected_frames()
    assert here.link.bridge.retries >= (len(hits) if what == "lost" else 0)


def tried(driver: Driver) -> list[str]:
    """A stream, after whatever it takes to get there: the errors on the way."""
    errors: list[str] = []
    for _ in range(3):
        try:
            assert frames(driver) == expected_frames()
        except GharialError as error:
            assert isinstance(error, DeviceError), error
            errors.append(str(error))
            driver.recover()
        else:
            return errors
    raise AssertionError(errors)


def test_a_byte_on_its_way_to_the_board_is_lost(here: Board, driver: Driver, seed: int) -> None:
    """The bridge takes what follows for something else. What was not confirmed is sent again, in order."""
    here.server.forget_s = FORGET_S
    chosen = random.Random(seed)
    start = here.server.received
    frames(driver)
    total = here.server.received - start
    for _ in range(5):
        here.server.to_board = at(here.server.received + chosen.randrange(total), lost)
        tried(driver)


def test_a_doorbell_is_not_rung_twice(here: Board, driver: Driver) -> None:
    """The answer is lost, the command has been begun: nothing must begin it again."""
    frames(driver)
    here.server.forget_s = FORGET_S
    here.bus.log.clear()
    here.server.to_host = at(here.server.sent + 3, lost)
    driver.reset("encoder", [0]).result()
    assert here.link.bridge.retries >= 1 and len(here.bells()) == 1
    here.bus.log.clear()
    # Doorbell: the last 10 bytes before the 6 of the read.
    size = 2 * (6 + 64)  # entry and descriptor go before it
    here.link.read_register(0)  # an answer: whatever was sent before has arrived
    here.server.to_board = at(here.server.received + size + 4, lost)
    driver.reset("encoder", [0]).result()
    assert here.link.bridge.retries >= 2 and len(here.bells()) == 1, "one that was lost is rung again"


def test_commands_that_are_lost_without_a_trace(here: Board, driver: Driver) -> None:
    """The bridge forgot them, and found its way by the next: the read behind them is answered."""
    frames(driver)
    part = 6 + 64  # an entry with what fills it up, then a descriptor; the doorbell is 10 bytes behind them
    for first, count in ((2 * part, 10), (0, 2 * part + 10), (part, part + 10)):
        here.link.read_register(0)  # an answer: whatever was sent before has arrived
        start = here.server.received + first
        here.server.to_board = lambda n, value, a=start, b=start + count: None if a <= n < b else value
        here.bus.log.clear()
        driver.reset("encoder", [0]).result()
        assert len(here.bells()) == 1
    assert here.link.bridge.retries >= 3
    assert frames(driver) == expected_frames()


def test_the_host_took_completions_and_the_board_did_not_hear_of_it(here: Board, driver: Driver) -> None:
    """The ring would be full for good."""
    place, real, lost = here.bus.places.registers + reg.CPL_HEAD.offset, here.bus.write, []

    def deaf(address: int, value: int) -> None:
        if address == place and len(lost) < 1 << driver.plan.ring_log2:
            lost.append(value)
        else:
            real(address, value)

    here.bus.write = deaf  # type: ignore[method-assign]
    for _ in range(1 + (1 << driver.plan.ring_log2)):
        driver.reset("encoder", [0]).result()
    assert len(lost) == 1 << driver.plan.ring_log2


def test_a_byte_on_its_way_to_the_board_is_changed(here: Board, seed: int) -> None:
    """CRCs of descriptors, entries and features tell; a typed error, and the next attempt is right."""
    here.server.forget_s = FORGET_S
    chosen = random.Random(seed)
    with Driver(here.link, assemble(), timeout=2.0) as driver:
        start = here.server.received
        frames(driver)
        total = here.server.received - start
        flip = 1 << chosen.randrange(8)
        for _ in range(4):
            here.server.to_board = at(here.server.received + chosen.randrange(total), lambda value: value ^ flip)
            tried(driver)


def test_a_bridge_that_stops_answering(here: Board, driver: Driver) -> None:
    frames(driver)
    here.server.mute, here.link.bridge.answer_s = True, 0.05
    with pytest.raises(LinkError, match=r"no answer from .* in 3 tries") as caught:
        frames(driver)
    assert "baud" in str(caught.value) and len(str(caught.value).splitlines()) <= 3
    with pytest.raises(LinkError, match="no answer"):
        driver.recover()
    here.server.mute, here.link.bridge.answer_s = False, SOON
    recovery = driver.recover()
    assert not recovery.reloaded
    assert frames(driver) == expected_frames()


def test_a_port_that_vanishes(tmp_path: Path) -> None:
    """The cable is pulled out and put in again: the same name, another terminal behind it; the board kept its power."""
    port = tmp_path / "ttyBoard"
    device = emulator.open_emulator(TINY)
    bus = Bus(device)
    first, second = UartServer(bus), UartServer(bus)
    first.forget_s = second.forget_s = LONG
    port.symlink_to(first.path)
    first.start()
    link = LitexDevice(f"litex:uart:{port}", TINY, UartBridge(str(port), BAUD))
    with Driver(link, assemble(), timeout=LONG) as driver:
        frames(driver)
        first.vanish()
        with pytest.raises(LinkError, match="has failed"):
            frames(driver)
        port.unlink()
        with pytest.raises(LinkError, match="no such port"):
            driver.recover()
        port.symlink_to(second.path)
        second.start()
        assert not driver.recover().reloaded
        assert frames(driver) == expected_frames()
    second.stop()


def test_a_board_that_lost_its_power(here: Board, driver: Driver) -> None:
    """Its program is gone: recovery brings it back."""
    frames(driver)
    here.bus.device = emulator.open_emulator(TINY)
    with pytest.raises(DeviceError):
        driver.reset("encoder", [0]).result(1.0)
    assert driver.recover().reloaded
    assert frames(driver) == expected_frames()


def test_completions_of_someone_who_is_gone(here: Board) -> None:
    """The same commands with the same tags are still in the memory; they are not taken for new ones."""
    for _ in range(2):
        with Driver(here.link, assemble(), timeout=LONG) as driver:
            assert frames(driver) == expected_frames()
        here.link = connect(here.server)
    stalled: Any = here.device
    with Driver(here.link, assemble(), timeout=LONG) as driver:
        stalled.stall()
        ticket = driver.reset("encoder", [0])
        with pytest.raises(DeviceError, match="counters stand still"):
            ticket.result(0.3)
        driver.recover()


def test_something_else_at_the_port() -> None:
    """A terminal at which nobody answers: the wrong rate, or no bridge."""
    master, slave = os.openpty()
    bridge = UartBridge(os.ttyname(slave), 9600, 0.05)
    with pytest.raises(LinkError, match=r"no answer from .* at 9600 baud"):
        LitexDevice("litex:uart", TINY, bridge).read_register(0)
    with pytest.raises(LinkError, match="in use by another program"):
        UartBridge(os.ttyname(slave), 9600)
    bridge.close()
    os.close(master)
    os.close(slave)
