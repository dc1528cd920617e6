# SPDX-License-Identifier: Apache-2.0
"""Devices that fail under streams: clients get, to the last bit, what they would have got without."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import websocket
from recordings import FILES, samples
from serve_expected import Message, messages_of, steps_of
from serving import FRAME, PATIENCE_S, Running, said, serving

from gharial.cli.decoding import Decoding
from gharial.devices.emulator import EmulatorDevice
from gharial.errors import DeviceError, GharialError
from gharial.isa.faults import Fault
from gharial.recognise import Recogniser, StateResets, StreamOptions, load
from gharial.serve import ModelSettings, Server, Settings, Watcher
from gharial.serve import worker as workers
from gharial.serve.models import WorkerSlot

RESETS = StreamOptions(state_resets=StateResets())
DEVICE = "emulator:u50"


class Witness(Watcher):
    """Keeps what it is told.

    Attributes:
        faults: of devices.
        moves: of streams, from where to where.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.moves: list[tuple[str, str]] = []

    def fault(self, worker: str, reason: str) -> None:
        self.faults.append(reason)

    def moved(self, stream: object, before: str, after: str) -> None:
        self.moves.append((before, after))


@pytest.fixture(scope="module", params=["greedy", "beam"])
def decoder(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def expected(decoder: str) -> dict[Path, list[Message]]:
    with load(decoder=decoder, device=DEVICE) as recogniser:
        return {path: messages_of(steps_of(recogniser, samples(path), RESETS), decoder == "greedy") for path in FILES}


def started(decoder: str, devices: int) -> tuple[Server, Witness]:
    witness = Witness()
    how = Decoding("greedy", None, None, state_resets=True) if decoder == "greedy" else None
    models = (ModelSettings(devices=(DEVICE,) * devices, decoding=how),)
    return Server(Settings(port=0, models=models, max_rate=0.0), watcher=witness), witness


def device_of(slot: WorkerSlot) -> EmulatorDevice:
    device = slot.worker.recogniser.device
    assert isinstance(device, EmulatorDevice)
    return device


def fault_of(kind: int) -> Callable[[EmulatorDevice], None]:
    return [
        lambda device: device.inject_bus_error(Fault.BUS_READ),
        lambda device: device.inject_bus_error(Fault.BUS_WRITE),
        lambda device: device.inject_watchdog(),
    ][kind]


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


class Live:
    """Clients in the middle of their recordings, all in step with each other."""

    def __init__(self, running: Running, paths: list[Path]) -> None:
        self.running = running
        self.paths = paths
        self.clients: list[websocket.WebSocket] = [running.connect() for _ in paths]
        self.audio = [samples(path).tobytes() for path in paths]
        self.sent = [0] * len(paths)

    def send(self, frames: int) -> None:
        """So many more frames of each."""
        for _ in range(frames):
            for number, client in enumerate(self.clients):
                piece = self.audio[number][self.sent[number] : self.sent[number] + FRAME]
                if piece:
                    client.send_binary(piece)
                    self.sent[number] += len(piece)

    def heard(self, expected: dict[Path, list[Message]]) -> None:
        """Send the rest, and see that all was said as if nothing had happened."""
        self.send(max(map(len, self.audio)) // FRAME + 1)
        for client in self.clients:
            client.send_binary(b"")
        for path, client in zip(self.paths, self.clients, strict=True):
            messages, code, reason = said(client)
            assert (code, reason) == (1000, "")
            assert messages == expected[path]


@pytest.fixture
def one(decoder: str) -> Iterator[tuple[Running, WorkerSlot, Witness]]:
    server, witness = started(decoder, 1)
    with serving(server) as running:
        (slot,) = server.hub.models[0].slots
        yield running, slot, witness


@pytest.fixture
def two(decoder: str) -> Iterator[tuple[Running, list[WorkerSlot], Witness]]:
    server, witness = started(decoder, 2)
    with serving(server) as running:
        yield running, list(server.hub.models[0].slots), witness


def test_faults_are_not_heard(
    one: tuple[Running, WorkerSlot, Witness], expected: dict[Path, list[Message]], seed: int
) -> None:
    """Faults of every kind while streams run: they begin anew on the same device, and nobody hears of it."""
    random = np.random.default_rng(seed)
    running, slot, witness = one
    live = Live(running, FILES[:8])
    for kind in (0, 1, 2):
        live.send(int(random.integers(1, 10)))
        fault_of(kind)(device_of(slot))
    live.heard(expected)
    assert witness.faults and not witness.moves
    assert slot.worker.up and not slot.streams


def test_a_device_that_hangs(
    one: tuple[Running, WorkerSlot, Witness], expected: dict[Path, list[Message]], monkeypatch: pytest.MonkeyPatch
) -> None:
    running, slot, witness = one
    live = Live(running, FILES[:3])
    live.send(5)
    slot.worker.recogniser.driver.timeout = 1.0
    device_of(slot).stall()
    live.heard(expected)
    assert witness.faults


def test_a_device_that_is_lost_is_opened_anew(
    one: tuple[Running, WorkerSlot, Witness], expected: dict[Path, list[Message]]
) -> None:
    running, slot, witness = one
    live = Live(running, FILES[:4])
    live.send(5)
    before = device_of(slot)
    before.close()  # every access fails from here on
    live.heard(expected)
    assert device_of(slot) is not before
    assert witness.faults


def test_streams_move_to_another_device(
    two: tuple[Running, list[WorkerSlot], Witness], expected: dict[Path, list[Message]]
) -> None:
    """One of two devices is lost for good: the other one goes on with its streams."""
    running, slots, witness = two
    live = Live(running, FILES[:8])
    live.send(6)
    wait_for(lambda: sum(len(slot.streams) for slot in slots) == 8)
    assert [len(slot.streams) for slot in slots] == [4, 4]  # they were spread
    lost, other = slots

    def refuse() -> Recogniser:
        raise DeviceError("nobody there")

    lost.worker._opener = refuse
    device_of(lost).close()
    live.send(4)
    live.heard(expected)
    assert witness.moves == [(lost.worker.name, other.worker.name)] * 4
    assert not lost.worker.up and other.worker.up
    assert "nobody there" in witness.faults
    # New streams go where they are taken; the place of those that have ended is free.
    Live(running, FILES[8:10]).heard(expected)
    assert not lost.streams and not other.streams and lost.used == other.used == 0


def test_a_device_that_fails_for_one_stream_fails_for_no_other(
    one: tuple[Running, WorkerSlot, Witness],
    expected: dict[Path, list[Message]],
    decoder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stream at which the device fails whenever it is run: it is tried alone and given up, others go on."""
    running, slot, _ = one
    live = Live(running, FILES[:4])
    live.send(4)
    wait_for(lambda: len(slot.streams) == 4)
    sick = running.connect()
    poison = samples(FILES[5]).tobytes()[: 3 * FRAME]
    recogniser = slot.worker.recogniser
    run = recogniser.run

    def failing() -> None:
        handles = [stream for stream in slot.streams if stream.received == len(poison) and stream.number == 5]
        if handles and recogniser.engine._sessions:
            jobs = [job for job in slot.worker._jobs if job.handle in handles and not job.away and job.stream]
            if jobs and not all(session.closed for session in jobs[0].stream._segments._sessions):  # type: ignore[union-attr]
                device_of(slot).inject_bus_error(Fault.BUS_READ)
        run()

    monkeypatch.setattr(recogniser, "run", failing)
    sick.send_binary(poison)
    _, code, reason = said(sick)
    assert (code, reason[:4]) == (1011, "500 ")
    live.heard(expected)


def test_without_any_device_streams_end_and_new_ones_are_refused(
    one: tuple[Running, WorkerSlot, Witness], monkeypatch: pytest.MonkeyPatch, expected: dict[Path, list[Message]]
) -> None:
    """A device that does not come back: streams wait for a while, then their clients are told; then it does come."""
    monkeypatch.setattr(workers, "PATIENCE_S", 0.3)
    running, slot, _ = one
    opener, back = slot.worker._opener, threading.Event()

    def reopen() -> Recogniser:
        if not back.is_set():
            raise GharialError("still not there")
        return opener()

    slot.worker._opener = reopen
    live = Live(running, FILES[:2])
    live.send(3)
    device_of(slot).close()
    live.send(1)
    for client in live.clients:
        _, code, reason = said(client)
        assert code == 1011 and "does not work" in reason
    assert said(running.connect()) == ([], 1013, "503 no device works")
    back.set()
    wait_for(lambda: slot.worker.up)
    Live(running, FILES[:2]).heard(expected)


def test_a_stream_that_remembers_too_little_ends_with_an_error(
    decoder: str, expected: dict[Path, list[Message]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without state resets a stream of more than is remembered cannot go on; others do."""
    from gharial.serve import models

    monkeypatch.setattr(models, "REPLAY_S", 0.6)
    server, _ = started(decoder, 1)
    with serving(server) as running:
        (slot,) = server.hub.models[0].slots
        query = "content_type=audio/x-raw;format=S16LE;channels=1;rate=16000&state_resets=false"
        long, short = running.connect(query), running.connect(query)
        long.send_binary(bytes(20 * FRAME))
        short.send_binary(bytes(2 * FRAME))
        for client in (long, short):
            json.loads(client.recv())
        wait_for(lambda: not any(stream.ahead for stream in list(slot.streams)))
        device_of(slot).close()
        for client in (long, short):
            client.send_binary(bytes(FRAME))
        assert said(long)[1] == 1011
        short.send_binary(b"")
        assert said(short)[1] == 1000
