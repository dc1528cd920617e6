# SPDX-License-Identifier: Apache-2.0
"""The whole path on devices that compute: driver, rings, machine, and back.

    entries, int8 features ── driver ── rings in device memory ── emulator, reference model, or the RTL in simulation
    tokens, logits, lse    ◀─────────────────────────────────────────┘

What happens when they fail is in test_driver_recovery.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from driver_cases import LONG
from driver_devices import (
    BLANK,
    CAP,
    OPENERS,
    emulated,
    emulator,
    greedy_run,
    program,
    stream,
)

from gharial.devices.base import Device
from gharial.devices.verilator.build import problem
from gharial.driver import DecodeBatch, DecodeEntry, Driver, EncodeBatch, EncodeEntry, GreedyEntry, SlotImage
from gharial.errors import BadRequest, CommandFailed
from gharial.isa.commands import Kind, Mode
from gharial.isa.configs import config
from gharial.program import Program


@pytest.fixture(params=OPENERS)
def opener(request: pytest.FixtureRequest) -> Callable[[Program], Device]:
    return OPENERS[request.param]


@pytest.fixture
def driver(opener: Callable[[Program], Device]) -> Iterator[Driver]:
    with Driver(opener(program()), program(), timeout=LONG, checked=True) as driver:
        yield driver


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
