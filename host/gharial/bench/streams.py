# SPDX-License-Identifier: Apache-2.0
"""Work of many streams at once: the commands that a host would send for them, drawn from a seed.

Streams come in groups of a batch each. The groups' encoder steps follow each other; what they leave to decode is
collected, and goes out as soon as there is a whole batch of it, so that the second and third joint of a stream that
emits tokens shares a pass with the first joints of others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gharial.driver import DecodeEntry, EncodeEntry
from gharial.errors import BadInput
from gharial.isa.commands import Kind
from gharial.program import Program

WORKLOADS = ("encode", "mix", "ragged")
"""Encoder steps; those and what they leave to decode; the same in commands of any size."""

BURSTS = 0.1
"""Share of the encoder steps that emit tokens."""
MORE = 0.5
"""Probability of one token more within a burst: two on average, so 0.2 a step."""
MOST = 4
"""Tokens of a burst, at most."""
GROUPS = 4
"""Groups of streams that take turns."""

Command = Sequence[EncodeEntry] | Sequence[DecodeEntry]


@dataclass(eq=False)
class _Stream:
    """Where a stream stands.

    Attributes:
        number: its encoder slot; its prediction slots are twice that and the next one.
        steps: encoder steps sent.
        released: those of them whose decoding may begin.
        decoded: encoder steps whose decoding has been sent whole.
        tokens: tokens that the step in decoding still has to emit.
        begun: whether the step in decoding has had its first joint.
        current: prediction slot that holds its state, 0 or 1.
        started: whether its prediction network has.
    """

    number: int
    steps: int = 0
    released: int = 0
    decoded: int = 0
    tokens: int = 0
    begun: bool = False
    current: int = 0
    started: bool = False


@dataclass
class Traffic:
    """Commands of `batches` encoder batches of `batch` streams, and with `decode` all that is to decode.

    Args:
        program: the model.
        batch: entries of a command, at most.
        batches: encoder batches.
        decode: whether the steps are decoded too.
        seed: of features and tokens.
        groups: of streams; each encodes every so many batches.
        ragged: a group's steps are cut into two commands anywhere, and a command of decode entries has any number of
            them, up to two batches: batches are seldom full.

    Attributes:
        encodes, joints, predictions: entries drawn so far.
        passes: encoder commands, of which none is larger than a batch.
    """

    program: Program
    batch: int
    batches: int
    decode: bool
    seed: int
    groups: int = GROUPS
    ragged: bool = False
    encodes: int = 0
    joints: int = 0
    predictions: int = 0
    passes: int = 0
    _waiting: deque[_Stream] = field(default_factory=deque)

    def __post_init__(self) -> None:
        if self.batch < 1 or self.batches < 1:
            raise BadInput("a number is out of range", found=min(self.batch, self.batches), expected="1 or more")
        self._random = np.random.default_rng(self.seed)
        count = self.batch * min(self.groups, self.batches)
        self._streams = [_Stream(number) for number in range(count)]

    @property
    def streams(self) -> int:
        """Encoder slots in use; prediction slots are twice as many."""
        return len(self._streams)

    def commands(self) -> Iterator[Command]:
        """The commands in order."""
        if not self.decode:
            for number in range(self.batches):
                yield from self._encode(number)
            return
        # One batch is encoded ahead of what is decoded, so that the two can overlap.
        ahead: list[_Stream] = []
        for number in range(self.batches):
            group = self._group(number)
            while any(s.steps - s.decoded > 1 for s in group):  # the bank that is written next is still needed
                yield self._decode()
            yield from self._encode(number)
            self._wait(ahead)
            ahead = group
            while len(self._waiting) >= self.batch:
                yield self._decode()
        self._wait(ahead)
        while self._waiting:
            yield self._decode()

    def _wait(self, streams: list[_Stream]) -> None:
        """Streams with a step more to decode; one that is not through with the step before waits already."""
        for stream in streams:
            stream.released += 1
            if stream not in self._waiting:
                self._waiting.append(stream)

    def _group(self, number: int) -> list[_Stream]:
        first = number * self.batch % len(self._streams)
        return self._streams[first : first + self.batch]

    def _encode(self, number: int) -> Iterator[list[EncodeEntry]]:
        group = self._group(number)
        count = self.program.manifest["features"]["count"]
        shape = (len(group), self.program.header["vectors"], count)
        features = self._random.integers(-64, 65, shape, np.int8)
        entries = []
        for stream, step in zip(group, features, strict=True):
            entries.append(EncodeEntry(stream.number, step, stream.steps & 1, reset=stream.steps == 0))
            stream.steps += 1
        self.encodes += len(entries)
        cut = int(self._random.integers(1, len(entries))) if self.ragged and len(entries) > 1 else len(entries)
        for part in (entries[:cut], entries[cut:]):
            if part:
                self.passes += 1
                yield part

    def _decode(self) -> list[DecodeEntry]:
        entries = []
        again = []
        most = int(self._random.integers(1, 2 * self.batch + 1)) if self.ragged else self.batch
        for _ in range(min(most, len(self._waiting))):
            stream = self._waiting.popleft()
            entries.append(self._entry(stream))
            if stream.begun or stream.decoded < stream.released:
                again.append(stream)
        self._waiting.extend(again)
        return entries

    def _entry(self, stream: _Stream) -> DecodeEntry:
        """The next joint of a stream, with the prediction step before it if it has emitted a token."""
        if not stream.begun:
            stream.tokens = self._burst()
            kind = Kind.NONE if stream.started else Kind.START
        else:
            stream.tokens -= 1
            kind = Kind.TOKEN
        bank = stream.decoded & 1
        slot = 2 * stream.number
        source = slot + stream.current
        if kind == Kind.TOKEN:
            stream.current ^= 1
        destination = slot + stream.current
        stream.started = True
        stream.begun = stream.tokens > 0
        stream.decoded += not stream.begun
        self.joints += 1
        self.predictions += kind != Kind.NONE
        token = int(self._random.integers(self.program.header["classes"] - 1)) if kind == Kind.TOKEN else 0
        return DecodeEntry(stream.number, bank, kind, source, destination, token)

    def _burst(self) -> int:
        if self._random.random() >= BURSTS:
            return 0
        return int(min(MOST, self._random.geometric(1 - MORE)))
