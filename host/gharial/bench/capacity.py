# SPDX-License-Identifier: Apache-2.0
"""How many live streams a device keeps up with: an event simulation, fed with clocks measured on the RTL.

What is simulated, and what is not, is told in docs/performance.md.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from gharial.bench.streams import BURSTS, MORE, MOST
from gharial.errors import BadInput
from gharial.isa.configs import Config

DECODERS = {"greedy": 1, "beam4": 4}
"""Hypotheses of a stream, by decoder."""
TURNAROUND_US = 50.0
"""From a completion to the commands that follow from it, at the host."""
STEP_MS = 60.0
"""Audio of an encoder step."""
GATHER_MS = 0.6
"""What the host lets a step wait for others of its encoder batch, at most."""
MOST_BATCHES = 4
"""Batches of entries in a decode command, at most."""
LIMITS_MS = {"u50": 4.0, "u55c": 2.0}
"""99th percentiles that streams are counted under, where none is given."""

_LIMIT_MS = 25.0
_SECONDS = 12.0  # of audio, of which the first are not counted
_WARM_UP_S = 1.0


@dataclass(frozen=True)
class Clocks:
    """Clocks of commands, measured on the RTL; between the points in straight lines.

    Attributes:
        encode: clocks of an encoder batch by its entries, while batches follow each other.
        decode: clocks from a decode command to its last result by its entries, beside encoder batches.
        decode_alone: the same while the encoder has nothing.
        decode_array: clocks of the array that it takes from the encoder.
    """

    encode: tuple[tuple[int, float], ...]
    decode: tuple[tuple[int, float], ...]
    decode_alone: tuple[tuple[int, float], ...]
    decode_array: tuple[tuple[int, float], ...]

    @classmethod
    def load(cls, config: str, model: str) -> Clocks:
        """The shipped measurements of a configuration and model.

        Raises:
            BadInput: there are none.
        """
        folder = files("gharial") / "bench" / "measured"
        place = folder / f"{config}-{model}.json"
        if not place.is_file():
            files_there = folder.iterdir() if folder.is_dir() else ()
            known = sorted(p.name.removesuffix(".json") for p in files_there if p.name.endswith(".json"))
            raise BadInput(
                "no clocks have been measured for this configuration and model",
                "--config, --model",
                f"{config}, {model}",
                ", ".join(known) or "none yet",
            )
        found = json.loads(place.read_text())
        return cls(
            *(
                tuple((int(n), float(c)) for n, c in found[key])
                for key in ("encode", "decode", "decode_alone", "decode_array")
            )
        )


def clocks_of(points: tuple[tuple[int, float], ...], entries: int) -> float:
    """Clocks for so many entries; beyond the last point by whole batches of it."""
    most = points[-1][0]
    whole, rest = divmod(entries, most)
    if rest == 0:
        return whole * points[-1][1]
    numbers, clocks = zip(*points, strict=True)
    return float(whole * points[-1][1] + np.interp(rest, numbers, clocks))


@dataclass
class _Step:
    """An encoder step of a stream: when its audio was there, and decode rounds that it still needs."""

    arrived: float
    rounds: int


@dataclass(eq=False)
class _Command:
    """A command in the ring. Its completion comes when it is done, and all before it are."""

    steps: list[_Step]
    decodes: bool
    done: bool = False


@dataclass
class _Decoding:
    """A decode command at work: faster while the encoder has nothing.

    Attributes:
        left: the share of it that was still to do at `since`.
        beside, alone: what all of it takes with the encoder at work, and without, seconds.
        taken: what all of it takes from the encoder.
    """

    command: _Command
    since: float
    beside: float
    alone: float
    taken: float
    left: float = 1.0


@dataclass
class _Machine:
    """Device and host. Times in seconds."""

    clocks: Clocks
    hz: float
    batch: int
    hypotheses: int
    turnaround: float
    now: float = 0.0
    waiting: deque[_Step] = field(default_factory=deque)  # to be encoded
    undecoded: deque[_Step] = field(default_factory=deque)  # ready for their next round
    ring: deque[_Command] = field(default_factory=deque)  # posted, not yet completed
    encoding: _Command | None = None
    queued: _Command | None = None  # posted behind what is being encoded
    untold: int = 0  # encoder batches that have been posted, and of whose end the host has not heard
    decoding: _Decoding | None = None
    decode_end: float = math.inf
    encode_end: float = math.inf
    busy: float = 0.0
    arrived: int = 0
    latencies: list[tuple[float, float]] = field(default_factory=list)  # end, latency
    events: list[tuple[float, int, str, Any]] = field(default_factory=list)
    count: int = 0

    def at(self, time: float, what: str, about: Any = None) -> None:
        """Something will happen."""
        self.count += 1
        heapq.heappush(self.events, (time, self.count, what, about))

    def begin_encode(self, command: _Command) -> None:
        """The array turns to a batch."""
        self._decode_on()
        self.encoding = command
        taken = self.decoding.taken * self.decoding.left if self.decoding else 0.0
        self._encode_until(self.now + taken + clocks_of(self.clocks.encode, len(command.steps)) / self.hz)
        self._decode_until()

    def _decode_on(self) -> None:
        """What has been done by now of the decode command at work."""
        at_work = self.decoding
        if at_work:
            at_work.left -= (self.now - at_work.since) / (at_work.beside if self.encoding else at_work.alone)
            at_work.since = self.now

    def _decode_until(self) -> None:
        """When it will be through, if the encoder goes on as it is."""
        if self.decoding:
            pace = self.decoding.beside if self.encoding else self.decoding.alone
            self.decode_end = self.now + max(0.0, self.decoding.left) * pace
            self.at(self.decode_end, "decoded", self.decode_end)

    def _encode_until(self, end: float) -> None:
        self.encode_end = end
        self.at(end, "encoded", end)

    def begin_decode(self) -> None:
        """One command for all that is ready, up to four batches of entries."""
        command = self._post(self.undecoded, max(1, MOST_BATCHES * self.batch // self.hypotheses), True)
        entries = len(command.steps) * self.hypotheses
        beside, alone, taken = (
            clocks_of(points, entries) / self.hz
            for points in (self.clocks.decode, self.clocks.decode_alone, self.clocks.decode_array)
        )
        self.busy += taken
        if self.encoding:
            self._encode_until(self.encode_end + taken)
        self.decoding = _Decoding(command, self.now, beside, alone, taken)
        self._decode_until()

    def _post(self, steps: deque[_Step], most: int, decodes: bool) -> _Command:
        self.ring.append(_Command([steps.popleft() for _ in range(min(most, len(steps)))], decodes))
        return self.ring[-1]

    def send(self) -> None:
        """What the host sends now: decode rounds first, as completions come in the commands' order."""
        if not self.decoding and self.undecoded:
            self.begin_decode()
        if not self.waiting or self.untold > (len(self.waiting) >= 2 * self.batch):
            return
        patience = self.waiting[0].arrived + 1e-3 * GATHER_MS
        others = self.arrived > len(self.latencies) + len(self.waiting)  # are on their way
        if others and len(self.waiting) < self.batch and self.now < patience:
            self.at(patience, "gathered")
            return
        self.untold += 1
        command = self._post(self.waiting, self.batch, False)
        if self.encoding:
            self.queued = command
        else:
            self.begin_encode(command)

    def done(self, command: _Command) -> None:
        """A command is through; what the host hears of after the turnaround."""
        command.done = True
        while self.ring and self.ring[0].done:
            self.at(self.now + self.turnaround, "told", self.ring.popleft())

    def handle(self, what: str, about: Any) -> None:
        """Something happens."""
        if what == "step":
            self.arrived += 1
            self.waiting.append(about)
        elif what == "encoded":
            if about != self.encode_end or not self.encoding:
                return  # put off since
            self.busy += clocks_of(self.clocks.encode, len(self.encoding.steps)) / self.hz
            self._decode_on()
            through, self.encoding, self.encode_end = self.encoding, None, math.inf
            self._decode_until()
            self.done(through)
            if self.queued:
                queued, self.queued = self.queued, None
                self.begin_encode(queued)
        elif what == "decoded":
            if about != self.decode_end or not self.decoding:
                return  # the encoder has begun or ended since
            through, self.decoding, self.decode_end = self.decoding.command, None, math.inf
            self.done(through)
        elif what == "told":
            self.untold -= not about.decodes
            for step in about.steps:
                step.rounds -= about.decodes
                if step.rounds == 0:
                    self.latencies.append((self.now, self.now - step.arrived))
                else:
                    self.undecoded.append(step)
        self.send()


def simulate(
    config: Config, clocks: Clocks, streams: int, decoder: str, turnaround_us: float, seed: int
) -> dict[str, float]:
    """Real-time streams on one device for some seconds.

    Args:
        config: hardware configuration, one with a clock.
        clocks: what its commands take.
        streams: live streams, each with an encoder step every `STEP_MS` from a random phase on.
        decoder: one of `DECODERS`.
        turnaround_us: of the host, each round.
        seed: of phases and tokens.

    Returns:
        cl50_ms, cl99_ms: from the arrival of a step's audio to its last round's results at the host, milliseconds;
        infinite if the device does not keep up; load: share of the time that the array has work.
    """
    assert config.clock_mhz is not None
    random = np.random.default_rng(seed)
    machine = _Machine(clocks, 1e6 * config.clock_mhz, config.batch, DECODERS[decoder], 1e-6 * turnaround_us)
    period = 1e-3 * STEP_MS
    steps = math.ceil(_SECONDS / period)
    bursts = random.random((streams, steps)) < BURSTS
    tokens = np.where(bursts, np.minimum(MOST, random.geometric(1 - MORE, (streams, steps))), 0)
    for phase, own in zip(random.random(streams) * period, tokens, strict=True):
        for number, emitted in enumerate(own):
            arrived = float(phase + number * period)
            machine.at(arrived, "step", _Step(arrived, 1 + int(emitted)))
    while machine.events and machine.now < _SECONDS:
        machine.now, _, what, about = heapq.heappop(machine.events)
        machine.handle(what, about)
    taken = np.array([latency for end, latency in machine.latencies if end > _WARM_UP_S])
    load = machine.busy / machine.now
    if machine.arrived - len(machine.latencies) > streams:  # more than a step of each stream has piled up
        return {"cl50_ms": math.inf, "cl99_ms": math.inf, "load": load}
    return {
        "cl50_ms": 1e3 * float(np.percentile(taken, 50)),
        "cl99_ms": 1e3 * float(np.percentile(taken, 99)),
        "load": load,
    }


def bench_capacity(
    config: Config,
    model: str,
    streams: int,
    *,
    decoder: str = "greedy",
    limit_ms: float | None = None,
    turnaround_us: float = TURNAROUND_US,
    seed: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, Any]:
    """Latencies of so many streams, and the most streams under a limit.

    Args:
        config: hardware configuration.
        model: name of a model whose clocks are shipped.
        streams: live streams.
        decoder: one of `DECODERS`.
        limit_ms: 99th percentile under which streams are counted; None for the configuration's.
        turnaround_us: of the host, each round.
        seed: of phases and tokens.
        progress: called with simulations done and an estimate of all.

    Returns:
        config, model, streams, clock_mhz, decoder, cl50_ms, cl99_ms (None where it does not keep up), load,
        max_streams, limit_ms, turnaround_us.

    Raises:
        BadInput: an argument is out of range, or nothing has been measured.
    """
    if streams < 1:
        raise BadInput("number of streams is out of range", "--streams", streams, "1 or more")
    if decoder not in DECODERS:
        raise BadInput("unknown decoder", "--decoder", decoder, ", ".join(DECODERS))
    if config.clock_mhz is None:
        raise BadInput("this configuration has no clock to count time with", "--config", config.name)
    clocks = Clocks.load(config.name, model)
    limit = LIMITS_MS.get(config.name, _LIMIT_MS) if limit_ms is None else limit_ms
    done = 0

    def run(count: int) -> dict[str, float]:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, max(done, 12))
        return simulate(config, clocks, count, decoder, turnaround_us, seed)

    found = run(streams)
    low, high = (streams, 2 * streams) if found["cl99_ms"] <= limit else (0, streams)
    if low:
        while run(high)["cl99_ms"] <= limit:
            low, high = high, 2 * high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (middle, high) if run(middle)["cl99_ms"] <= limit else (low, middle)
    latencies = {key: found[key] if math.isfinite(found[key]) else None for key in ("cl50_ms", "cl99_ms")}
    return {
        "config": config.name,
        "model": model,
        "streams": streams,
        "clock_mhz": config.clock_mhz,
        "decoder": decoder,
        **latencies,
        "load": found["load"],
        "max_streams": low,
        "limit_ms": limit,
        "turnaround_us": turnaround_us,
    }
