# SPDX-License-Identifier: Apache-2.0
"""The whole path on devices that compute: driver, rings, machine, and back.

    entries, int8 features ── driver ── rings in device memory ── emulator, reference model, or the RTL in simulation
    tokens, logits, lse    ◀─────────────────────────────────────────┘

Programs come from the compiler, with random weights and sizes that need padding everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from compiled import program as compiled
from driver_cases import LONG, SOON
from random_checkpoint import SMALL
from rtl_device import open_rtl
from small_run import features

from gharial.devices.base import Device
from gharial.devices.verilator.build import problem
from gharial.driver import DecodeBatch, DecodeEntry, Driver, EncodeBatch, EncodeEntry, GreedyEntry, SlotImage
from gharial.errors import BadRequest, CommandFailed, DeviceError, DeviceTimeout
from gharial.isa.commands import Kind, Mode
from gharial.isa.configs import config
from gharial.isa.faults import Fault
from gharial.program import Program

emulator = pytest.importorskip("gharial.devices.emulator", reason="the emulator's engine is not built")
reference = pytest.importorskip("sim.reference", reason="needs a source checkout")

COUNT, BLANK = SMALL.features, SMALL.classes - 1
CAP = 4


@cache
def lively() -> tuple[int, float]:
    """Seed and bias of blank of a program that emits tokens at some steps and none at others."""
    for seed in range(13, 40):
        for bias in np.arange(0.5, 4, 0.25).tolist():
            p = compiled(seed, "tiny", blank_bias=bias)
            with Driver(emulated(p), p, timeout=LONG) as driver:
                counts = [len(tokens) for tokens, *_ in greedy_run(driver, [stream(1, 8)], [0])[0]]
            if 0 in counts[1:] and len(set(counts)) > 2:
                return seed, bias
    pytest.fail("no random program emits tokens at some steps only")


@cache
def program(name: str = "tiny", another: int = 0) -> Program:
    """A program for that configuration; `another` gives other weights."""
    seed, bias = lively()
    return compiled(seed + another, name, blank_bias=bias)


def emulated(p: Program) -> Device:
    device: Device = emulator.open_emulator(p.config)
    return device


def modelled(p: Program) -> Device:
    device: Device = reference.ReferenceDevice(p.config, _manifest(p))
    return device


def _manifest(p: Program) -> dict[str, Any]:
    return p.manifest


def simulated(p: Program) -> Device:
    return open_rtl(p.config)


OPENERS = {"emulator": emulated, "reference": modelled, "verilator": simulated}


@pytest.fixture(params=OPENERS)
def opener(request: pytest.FixtureRequest) -> Callable[[Program], Device]:
    return OPENERS[request.param]


@pytest.fixture
def driver(opener: Callable[[Program], Device]) -> Iterator[Driver]:
    with Driver(opener(program()), program(), timeout=LONG, checked=True) as driver:
        yield driver


Shown = list[tuple[list[int], list[int], list[int], bool, int]]


def greedy_run(driver: Driver, streams: list[list[np.ndarray]], slots: list[int], start: int = 0) -> list[Shown]:
    """Greedy decoding of several streams, all in one batch; slots are the encoder's, prediction slots 20 beyond."""
    shown: list[Shown] = [[] for _ in streams]
    for step in range(max(map(len, streams))):
        live = [n for n, stream in enumerate(streams) if step < len(stream)]
        entries = [
            GreedyEntry(slots[n], streams[n][step], step & 1, step + start == 0, prediction=slots[n] + 20) for n in live
        ]
        for n, r in zip(live, driver.greedy(entries, max_symbols=CAP).result(), strict=True):
            shown[n].append((r.tokens.tolist(), r.logits.tolist(), r.lse.tolist(), r.capped, r.joints))
    return shown


def stream(seed: int, steps: int) -> list[np.ndarray]:
    return features(seed, steps, SMALL.stack, COUNT)


def test_greedy_on_the_device_is_greedy_by_the_host(driver: Driver) -> None:
    """The same tokens, logits and log-sums from single steps of encoder, prediction network and joint."""
    steps = stream(1, 8)
    (device_shown,) = greedy_run(driver, [steps], [0])
    emitted = 0
    driver.decode([DecodeEntry(kind=Kind.START, destination=9, joint=False)]).result()
    for n, x in enumerate(steps):
        driver.encode([EncodeEntry(5, x, n & 1, reset=n == 0)]).result()
        tokens: list[int] = []
        logits: list[int] = []
        lses: list[int] = []
        joints = 0
        while len(tokens) < CAP:
            found = driver.decode([DecodeEntry(5, n & 1, Kind.NONE, 9, 9)], k=2, named=[BLANK]).result()
            joints += 1
            best = int(found.classes[0, 0])
            if best == BLANK:
                assert found.named[0, 0] == found.logits[0, 0]
                break
            tokens.append(best)
            logits.append(int(found.logits[0, 0]))
            lses.append(int(found.lse[0]))
            driver.decode([DecodeEntry(kind=Kind.TOKEN, source=9, destination=9, token=best, joint=False)]).result()
        emitted += len(tokens)
        assert device_shown[n] == (tokens, logits, lses, len(tokens) == CAP, joints)
    assert 0 < emitted < CAP * len(steps), "a test of greedy decoding needs tokens and blanks"


def test_a_batch_is_its_streams_one_by_one(driver: Driver) -> None:
    """Of different lengths, the last step of some with one vector."""
    streams = [stream(n, 3 + n % 4) for n in range(16)]
    for n in range(0, 16, 3):
        streams[n][-1] = streams[n][-1][:1]
    together = greedy_run(driver, streams, list(range(16)))
    for n in (0, 3, 7, 15):
        assert greedy_run(driver, [streams[n]], [(n * 5) % 16]) == [together[n]]


def test_runs_are_the_same_every_time(opener: Callable[[Program], Device]) -> None:
    shown = []
    for _ in range(2):
        with Driver(opener(program()), program()) as driver:
            shown.append(greedy_run(driver, [stream(2, 6)], [3]))
    assert shown[0] == shown[1] and any(tokens for tokens, *_ in shown[0][0])


def test_split_batches_are_the_same() -> None:
    """A window in which a few entries fill a command."""
    p = program()
    streams = [stream(n, 3) for n in range(16)]
    shown = []
    for size in (p.config.window_bytes, 1280):
        device = emulator.open_emulator(p.config, size)
        with Driver(device, p, timeout=LONG, checked=True, ring_log2=2) as driver:
            shown.append(greedy_run(driver, streams, list(range(16))))
            if size == 1280:
                assert driver.plan.staging.size // 2 < 16 * 64
            found = driver.decode(
                [DecodeEntry(n, 0, Kind.NONE, n + 20, n + 20) for n in range(16)], mode=Mode.ALL
            ).result()
            shown.append([found.logits.tolist(), found.lse.tolist()])
    assert shown[:2] == shown[2:]


@pytest.mark.parametrize("name", ["ecp5-85f", "kv260", "u50", "u55c"])
def test_every_configuration_computes_the_same(name: str) -> None:
    """Padding and order of the parts do not show."""
    streams = [stream(n, 4) for n in range(4)]
    shown = []
    for p in (program(), program(name)):
        with Driver(emulated(p), p, timeout=LONG) as driver:
            shown.append(greedy_run(driver, streams, [3, 1, 2, 0]))
    assert shown[0] == shown[1]


def test_hypotheses_share_and_leave_their_states(driver: Driver) -> None:
    """A search tree: two tokens from one source, the source left as it was, one in place."""
    (x,) = stream(3, 1)
    driver.encode([EncodeEntry(0, x, reset=True)]).result()
    driver.decode([DecodeEntry(0, 0, Kind.START, 0, 1)]).result()
    tree = [DecodeEntry(0, 0, Kind.TOKEN, 1, 2, 4), DecodeEntry(0, 0, Kind.TOKEN, 1, 3, 6)]
    both = driver.decode(tree, mode=Mode.ALL).result()
    again = driver.decode([DecodeEntry(0, 0, Kind.TOKEN, 1, 7, 6)], mode=Mode.ALL).result()
    assert (again.logits[0] == both.logits[1]).all() and (both.logits[0] != both.logits[1]).any()
    driver.copy("prediction", [(1, 8)]).result()
    in_place = driver.decode([DecodeEntry(0, 0, Kind.TOKEN, 8, 8, 6)], mode=Mode.ALL).result()
    assert (in_place.logits[0] == again.logits[0]).all()
    probabilities = np.exp(both.log_probabilities).sum(axis=1)
    assert probabilities == pytest.approx(1.0, abs=1e-3)
    k = driver.decode([DecodeEntry(0, 0, Kind.NONE, 3, 3)], k=5, named=[BLANK, 0]).result()
    order = sorted(range(len(both.logits[1])), key=lambda c: (-int(both.logits[1, c]), c))[:5]
    assert k.classes[0].tolist() == order and k.lse[0] == both.lse[1]
    assert k.named[0].tolist() == [both.logits[1, BLANK], both.logits[1, 0]]


def test_state_moves_to_another_device(opener: Callable[[Program], Device]) -> None:
    """Half an utterance on one device, the rest on another, of another kind too."""
    steps = stream(4, 8)
    with Driver(opener(program()), program(), timeout=LONG) as driver:
        (whole,) = greedy_run(driver, [steps], [0])
        greedy_run(driver, [steps[:4]], [1])
        images = driver.save("encoder", [1]).result() + driver.save("prediction", [21]).result()
        kept = [image.to_bytes() for image in images]
    for kind, other in OPENERS.items():
        if kind == "verilator" and problem() is not None:
            continue
        with Driver(other(program()), program(), timeout=LONG) as driver:
            encoder, prediction = (SlotImage.from_bytes(data) for data in kept)
            driver.restore([7], [encoder]).result()
            driver.restore([27], [prediction]).result()
            assert greedy_run(driver, [steps[4:]], [7], start=4) == [whole[4:]]
    with (
        Driver(opener(program(another=1)), program(another=1)) as driver,
        pytest.raises(BadRequest, match="belongs to"),
    ):
        driver.restore([7], [SlotImage.from_bytes(kept[0])])


def test_slots_that_are_not_live(driver: Driver) -> None:
    (x,) = stream(5, 1)
    with pytest.raises(CommandFailed, match="BAD_SLOT at entry 1") as caught:
        driver.encode([EncodeEntry(0, x, reset=True), EncodeEntry(1, x)]).result()
    assert caught.value.lost_encoder == () and caught.value.entry == 1
    with pytest.raises(CommandFailed, match="BAD_SLOT"):  # nothing was done, not even entry 0
        driver.encode([EncodeEntry(0, x)]).result()
    driver.encode([EncodeEntry(0, x[:1], reset=True)]).result()
    with pytest.raises(CommandFailed, match="BAD_SLOT"):  # ended
        driver.encode([EncodeEntry(0, x)]).result()
    driver.reset("prediction", [0]).result()
    driver.decode([DecodeEntry(0, 0, Kind.TOKEN, 0, 1, 2)]).result()
    (slot,) = driver.allocate("prediction", 1)
    driver.release("prediction", [slot]).result()
    with pytest.raises(CommandFailed, match="BAD_SLOT"):
        driver.decode([DecodeEntry(0, 0, Kind.TOKEN, slot, 1, 2)]).result()


# Failure and recovery


def two_streams(driver: Driver, steps: int = 3) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Streams on slots 0 and 1, some steps into them."""
    a, b = stream(6, 8), stream(7, 8)
    greedy_run(driver, [a[:steps], b[:steps]], [0, 1])
    return a, b


@pytest.mark.parametrize("fault", [Fault.BUS_READ, Fault.BUS_WRITE, Fault.WATCHDOG])
def test_other_streams_survive_a_halt(fault: Fault) -> None:
    """An error in one stream's step: after the recovery the other goes on as if nothing had been."""
    p = program()
    with Driver(emulated(p), p, timeout=LONG) as driver:
        (_, expected) = greedy_run(driver, [stream(6, 8), stream(7, 8)], [0, 1])
        a, b = two_streams(driver)
        device: Any = driver.device
        if fault == Fault.WATCHDOG:
            device.inject_watchdog()
        else:
            staging = driver.plan.staging
            device.inject_bus_error(fault, staging.address, staging.size)
        ticket = driver.greedy([GreedyEntry(0, a[3], prediction=20)], max_symbols=CAP)
        with pytest.raises(CommandFailed, match=fault.name):
            ticket.result()
        with pytest.raises(DeviceError, match="halted"):
            driver.greedy([GreedyEntry(1, b[3], prediction=21)])
        recovery = driver.recover()
        assert not recovery.reloaded
        assert (recovery.lost_encoder, recovery.lost_prediction) == ((0,), (20,))
        assert greedy_run(driver, [b[3:]], [1], start=3) == [expected[3:]]
        assert greedy_run(driver, [a], [0])[0], "the stream that was hit can start anew"


def test_other_streams_survive_a_hang() -> None:
    p = program()
    with Driver(emulated(p), p, timeout=LONG) as driver:
        (_, expected) = greedy_run(driver, [stream(6, 8), stream(7, 8)], [0, 1])
        a, b = two_streams(driver)
        device: Any = driver.device
        device.stall()
        ticket = driver.greedy([GreedyEntry(0, a[3], prediction=20)], max_symbols=CAP)
        with pytest.raises(DeviceTimeout):
            ticket.result(SOON)
        recovery = driver.recover()
        assert recovery.failed == 1 and recovery.lost_encoder == ()
        with pytest.raises(DeviceError, match="given up"):
            ticket.result()
        assert greedy_run(driver, [b[3:]], [1], start=3) == [expected[3:]]


class Flipping(Device):
    """A device behind a link that once flips a bit of what is written; reads are good."""

    kind = "flipping"

    def __init__(self, inner: Device) -> None:
        self.inner, self.name, self.config = inner, inner.name, inner.config
        self.flip: Callable[[int, bytes], bytes] | None = None

    def read_register(self, offset: int) -> int:
        return self.inner.read_register(offset)

    def write_register(self, offset: int, value: int) -> None:
        self.inner.write_register(offset, value)

    def read_memory(self, address: int, count: int) -> bytes:
        return self.inner.read_memory(address, count)

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        data = bytes(data)
        self.inner.write_memory(address, self.flip(address, data) if self.flip else data)

    def ring_doorbell(self, tail: int) -> None:
        self.inner.ring_doorbell(tail)

    def wait(self, completions: int, timeout: float) -> bool:
        return self.inner.wait(completions, timeout)

    def reset(self) -> None:
        self.inner.reset()

    def close(self) -> None:
        self.inner.close()


@pytest.mark.parametrize(
    ("where", "loses"), [("descriptor", False), ("entries", True), ("features", True)], ids=lambda value: str(value)
)
def test_a_bit_that_flips_on_the_way(opener: Callable[[Program], Device], where: str, loses: bool) -> None:
    """It is noticed, the right slots are doubted, and the others are none the worse."""
    p = program()
    with Driver(Flipping(opener(p)), p, timeout=LONG, checked=True) as driver:
        (_, expected) = greedy_run(driver, [stream(6, 8), stream(7, 8)], [0, 1])
        a, b = two_streams(driver)
        device = driver.device
        assert isinstance(device, Flipping)
        staging = driver.plan.staging

        def flip(address: int, data: bytes) -> bytes:
            in_staging = staging.address <= address
            place = {"descriptor": 20, "entries": 4, "features": 70}[where]
            if in_staging == (where == "descriptor"):
                return data
            return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]

        device.flip = flip
        ticket = driver.greedy([GreedyEntry(0, a[3], prediction=20)], max_symbols=CAP)
        device.flip = None
        with pytest.raises(CommandFailed, match="CHECKSUM") as caught:
            ticket.result()
        assert (caught.value.lost_encoder, caught.value.lost_prediction) == (((0,), (20,)) if loses else ((), ()))
        assert greedy_run(driver, [b[3:]], [1], start=3) == [expected[3:]]
        if not loses:
            greedy_run(driver, [a[3:]], [0], start=3)


def test_a_program_damaged_on_the_way_is_sent_again(opener: Callable[[Program], Device]) -> None:
    p = program()
    device = Flipping(opener(p))
    left = [3]

    def flip(address: int, data: bytes) -> bytes:
        if len(data) > 1000 and left[0]:
            left[0] -= 1
            return data[:500] + bytes([data[500] ^ 1]) + data[501:]
        return data

    device.flip = flip
    with Driver(device, p, timeout=LONG) as driver:
        assert left[0] == 0
        assert greedy_run(driver, [stream(2, 2)], [3])


def test_arrays_of_many(driver: Driver) -> None:
    """The arrays that a server sends, against single entries."""
    n = 12
    x = np.stack([stream(s, 1)[0] for s in range(n)])
    numbers = np.arange(n)
    batch = EncodeBatch(numbers, x, np.full(n, 2), numbers & 1, np.ones(n, bool), numbers + 20)
    together = driver.greedy(batch, max_symbols=CAP).result()
    for s in range(n):
        entry = GreedyEntry(15, x[s], s & 1, True, prediction=60)
        (alone,) = driver.greedy([entry], max_symbols=CAP).result()
        assert alone.tokens.tolist() == together[s].tokens.tolist() and alone.lse.tolist() == together[s].lse.tolist()
    decodes = DecodeBatch(
        numbers, numbers & 1, np.full(n, Kind.TOKEN), numbers + 20, numbers + 40, numbers % BLANK, np.ones(n, bool)
    )
    result = driver.decode(decodes, k=4).result()
    assert result.classes.shape == (n, 4) and (np.diff(result.logits.astype(int), axis=1) <= 0).all()


def test_the_configuration_must_be_the_devices() -> None:
    assert config("tiny").config_id != config("ecp5-85f").config_id
    with pytest.raises(Exception, match="another configuration"):
        Driver(emulator.open_emulator(config("ecp5-85f")), program())
