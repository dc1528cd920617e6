# SPDX-License-Identifier: Apache-2.0
"""Streams on the RTL know nothing of one another: of batches, slots, banks, halves of the scratch memory, or time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from random_checkpoint import SMALL
from rtl_pair import BOTH, NONE, START, TOKEN, Pair, lively, pair_for

from gharial.isa.commands import Mode, Operation
from gharial.isa.faults import Fault

reference = pytest.importorskip("sim.reference", reason="needs a source checkout")

STEPS, CAP, WORDS = 6, 4, 2 + 2 * 4
FEATURES = np.random.default_rng(11).integers(-128, 128, (8, STEPS, SMALL.stack, SMALL.features))
"""Of eight streams."""


@pytest.fixture(params=BOTH)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    p = lively(request.param)
    pair = pair_for(p, reference.ReferenceDevice(p.config, p.manifest), log2=4)
    yield pair
    pair.close()


@dataclass
class Stream:
    """A stream in some slots: results of its steps so far, words of the device's results."""

    number: int
    slot: int
    prediction: int
    bank: Callable[[int], int] = lambda step: step & 1
    steps: int = 0
    results: list[list[int]] = field(default_factory=list)

    def entry(self) -> dict[str, Any]:
        """The next step."""
        self.steps += 1
        return {"slot": self.slot, "prediction": self.prediction, "reset": int(self.steps == 1),
                "bank": self.bank(self.steps - 1), "features": FEATURES[self.number, self.steps - 1]}  # fmt: skip


def step(pair: Pair, streams: Sequence[Stream]) -> None:
    """One command for these streams; results are taken at `done`."""
    pair.steps(Operation.GREEDY, [stream.entry() for stream in streams], k=CAP, temperature=12345)
    address = pair.pending[-1].rooms[0][0]
    for at, stream in enumerate(streams):
        stream.results.append([address + 4 * WORDS * at])


def done(pair: Pair, streams: Sequence[Stream]) -> None:
    """Wait, and read what the RTL wrote."""
    pair.flush()
    for stream in streams:
        for at, result in enumerate(stream.results):
            if len(result) == 1:
                words = np.frombuffer(pair.rtl.device.read_memory(result[0], 4 * WORDS), "<u4").tolist()
                stream.results[at] = words[: 2 + 2 * (words[0] & 0xFFFF)]


def alone(pair: Pair, number: int, slot: int = 0) -> list[list[int]]:
    """Results of one stream with nothing else on the device, each step waited for."""
    stream = Stream(number, slot, slot)
    for _ in range(STEPS):
        step(pair, [stream])
        done(pair, [stream])
    return stream.results


def test_streams_alone_and_together(pair: Pair) -> None:
    expected = [alone(pair, number) for number in range(8)]
    tokens = [sum(words[0] & 0xFFFF for words in results) for results in expected]
    assert min(tokens) > 0 and any(words[0] == 0 for results in expected for words in results)
    random = np.random.default_rng(1)
    orders: list[Any] = [range(8), range(7, -1, -1), random.permutation(8), random.permutation(8)]
    for trial, order in enumerate(orders):
        # Other slots, other banks; an entry or three ahead change the half of the scratch memory that a stream meets.
        slots, predictions = random.permutation(14)[:8], random.permutation(50)[:8]
        banks: list[Any] = [lambda s: 0, lambda s: 1, lambda s: s & 1, lambda s: (s * 7 + 3) % 5 % 2]
        streams = [Stream(n, int(slots[n]), int(predictions[n]), banks[(n + trial) % 4]) for n in range(8)]
        for _ in range(trial):
            pair.steps(Operation.ENCODE, [{"slot": 15, "reset": 1, "features": FEATURES[trial, 0]}])
        for _ in range(STEPS):
            step(pair, [streams[int(n)] for n in order])
        done(pair, streams)
        assert [stream.results for stream in streams] == expected


def test_interleaved_streams_at_any_time(pair: Pair) -> None:
    """Commands of one to three streams that overtake one another as they like, none waited for."""
    expected = [alone(pair, number) for number in range(4)]
    random = np.random.default_rng(2)
    for _ in range(4):
        streams = [Stream(n, (n * 5) % 16, n + 30) for n in range(4)]
        while unready := [stream for stream in streams if stream.steps < STEPS]:
            chosen = [unready[int(n)] for n in random.permutation(len(unready))[: int(random.integers(1, 4))]]
            if len(pair.pending) == 16:
                done(pair, streams)
            step(pair, chosen)
            pair.ring()
            pair.rtl.device.advance(int(random.integers(0, 2500)))  # type: ignore[attr-defined]
        done(pair, streams)
        assert [stream.results for stream in streams] == expected


KINDS = ["encode", "start", "fork", "none", "encode", "fork", "copy", "none", "greedy", "encode", "none", "fork"]
"""What each stream does in turn."""


class Hypotheses:
    """A stream that is decoded by a host, in two prediction slots by turns: forks, copies, and states used again."""

    def __init__(self, number: int, slot: int, predictions: tuple[int, int]) -> None:
        self.number, self.slot, self.predictions = number, slot, predictions
        self.at = self.steps = self.current = 0
        self.results: list[bytes] = []
        self.random = np.random.default_rng(number)

    def entry(self) -> Any:
        """The next entry, and the stream is past it."""
        kind = KINDS[self.at]
        self.at += 1
        here, other = self.predictions[self.current], self.predictions[1 - self.current]
        step = {"slot": self.slot, "bank": self.steps & 1}
        if kind in ("encode", "greedy"):
            step |= {"reset": int(self.steps == 0), "features": FEATURES[self.number, self.steps]}
            self.steps += 1
            return step | ({"prediction": here} if kind == "greedy" else {})
        if kind == "copy":
            return here, other
        entry = {"slot": self.slot, "bank": (self.steps - 1) & 1, "source": here, "destination": here}
        if kind == "start":
            return entry | {"kind": START}
        if kind == "fork":
            self.current = 1 - self.current
            token = int(self.random.integers(SMALL.classes - 1))
            return entry | {"kind": TOKEN, "destination": other, "token": token}
        return entry | {"kind": NONE}


def post(pair: Pair, kind: str, streams: Sequence[Hypotheses]) -> None:
    """One command in which each of these streams has its next entry; results are read when it is done."""
    entries = [stream.entry() for stream in streams]
    stride = 4 * WORDS
    if kind == "encode":
        pair.steps(Operation.ENCODE, entries)
    elif kind == "copy":
        pair.slots(Operation.COPY, entries, True)
    elif kind == "greedy":
        pair.steps(Operation.GREEDY, entries, k=CAP, temperature=9999)
    else:
        pair.decode(entries, k=5, named=2, named_01=3 | 10 << 16, temperature=20000, stride=stride)
    rooms = list(pair.pending[-1].rooms)
    assert pair.pending[-1].completion["status"] == 0
    pair.flush()
    for at, stream in enumerate(streams):
        if rooms and kind != "copy":
            data = pair.rtl.device.read_memory(rooms[0][0] + stride * at, stride)
            words = 4 * (2 + 2 * (data[0] | data[1] << 8)) if kind == "greedy" else 36
            stream.results.append(data[:words])


def test_any_batch_slot_and_order(pair: Pair) -> None:
    """The same work of eight streams, alone and in commands of every size, in any order and slots: the same results
    and the same states."""
    random = np.random.default_rng(5)
    shown: list[Any] = []
    for most in (1, 8, 2, 3, 5, 8):
        encoders = random.permutation(pair.most[0])[:8].tolist()
        predictions = random.permutation(min(64, pair.most[1]))[:16].reshape(8, 2).tolist()
        streams = [Hypotheses(n, encoders[n], (predictions[n][0], predictions[n][1])) for n in range(8)]
        while unready := [stream for stream in streams if stream.at < len(KINDS)]:
            kind = KINDS[unready[int(random.integers(len(unready)))].at]
            decodes = ("start", "fork", "none")
            ready = [s for s in unready if KINDS[s.at] == kind or (KINDS[s.at] in decodes and kind in decodes)]
            chosen = [ready[int(n)] for n in random.permutation(len(ready))[:most]]
            post(pair, kind, chosen)
        states = []
        for stream in streams:
            for prediction, slot in ((False, stream.slot), (True, stream.predictions[stream.current])):
                pair.slots(Operation.SAVE, [slot], prediction)
                (address, size), *_ = pair.pending[-1].rooms
                pair.flush()
                states.append(pair.rtl.device.read_memory(address, size))
        shown.append(([stream.results for stream in streams], states))
    assert all(other == shown[0] for other in shown[1:])


def test_a_slot_begun_anew_at_once(pair: Pair) -> None:
    """The next utterance's first step is queued behind the last one's last: it does not reach into that."""
    expected = [alone(pair, number) for number in range(4)]
    for slots in ((3, 3, 3, 3), (3, 3, 4, 3)):
        streams = [Stream(n, slots[n], slots[n]) for n in range(4)]
        for stream in streams:
            for _ in range(STEPS):
                if len(pair.pending) == 16:
                    done(pair, streams)
                step(pair, [stream])
        done(pair, streams)
        assert [stream.results for stream in streams] == expected


def test_a_bank_read_while_the_next_step_is_encoded(pair: Pair) -> None:
    """Hypotheses of a step are decoded from a bank while the encoder goes on into the other, and then into the same."""
    for bank in (0, 1, 0):
        for at in range(3):
            entry = {"slot": 2, "reset": int(at == 0), "bank": (bank + at) & 1, "features": FEATURES[0, at]}
            pair.steps(Operation.ENCODE, [entry])
            pair.decode([{"slot": 2, "bank": (bank + at) & 1, "kind": START, "destination": 1}], mode=Mode.ALL)
            tree = [{"slot": 2, "bank": (bank + at) & 1, "kind": TOKEN, "source": 1, "destination": d, "token": d}
                    for d in range(2, 8)]  # fmt: skip
            pair.decode(tree, k=3)
            pair.steps(Operation.ENCODE, [{"slot": 2, "bank": (bank + at) & 1, "features": FEATURES[1, at]}])
        pair.flush()
    pair.compare_slots([2], range(1, 8))


def test_a_short_step_ends_the_slot(pair: Pair) -> None:
    """It can be decoded and copied, neither continued nor saved; begun anew it is as good as new."""
    first = alone(pair, 0, slot=1)
    for bank in (0, 1):
        short = {"slot": 1, "bank": bank, "features": FEATURES[2, 0][:1]}
        pair.steps(Operation.ENCODE, [short])
        (done_,) = pair.flush()
        assert done_["status"] == Fault.NONE and not pair.live(1)
        pair.steps(Operation.ENCODE, [short])
        pair.slots(Operation.SAVE, [1])
        pair.slots(Operation.COPY, [(1, 6)])
        for slot in (1, 6):
            pair.decode([{"slot": slot, "bank": bank, "kind": START, "destination": 1}], mode=Mode.ALL)
            pair.steps(Operation.ENCODE, [short | {"slot": slot}])
        pair.steps(Operation.GREEDY, [short | {"slot": 6, "prediction": 1, "reset": 1}])
        pair.steps(Operation.ENCODE, [short | {"slot": 6}])
        found = [done["status"] for done in pair.flush()]
        bad = Fault.BAD_SLOT
        assert found == [bad, bad, 0, 0, bad, 0, bad, 0, bad]
        assert alone(pair, 0, slot=1) == first


@pytest.mark.parametrize("name", BOTH)
def test_runs_are_the_same_whatever_the_machine_held(name: str, seed: int) -> None:
    """Registers and memories that start with other values."""
    p = lively(name)
    shown = []
    for number in range(3):
        pair = pair_for(p, reference.ReferenceDevice(p.config, p.manifest), seed + number)
        shown.append([alone(pair, n) for n in range(2)])
        pair.close()
    assert shown[0] == shown[1] == shown[2]
