# SPDX-License-Identifier: Apache-2.0
"""What goes between the event loop and the workers: streams on their way in, what came of them on their way back."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gharial.errors import GharialError
from gharial.serve.protocol import Replies

if TYPE_CHECKING:
    from gharial.recognise import Stream, StreamOptions
    from gharial.serve.streams import StreamHandle
    from gharial.serve.worker import Worker


@dataclass(eq=False)
class Job:
    """A stream as its worker has it; touched by the thread of the worker that owns it alone.

    Attributes:
        handle: whom its outcomes are for.
        options: of the stream.
        replies: makes its messages.
        owner: the worker that has it, None between two.
        stream: the stream, None before it was opened and after it was closed.
        audio: pieces that wait.
        ended: whether no more will come.
        away: whether it has no place on a device now, and waits for one.
        failures: how often a device has failed in it since it last had something to say.
        moves: how often it was given to another worker for that since.
    """

    handle: StreamHandle
    options: StreamOptions
    replies: Replies
    owner: Worker | None = None
    stream: Stream | None = None
    audio: deque[bytes] = field(default_factory=deque)
    ended: bool = False
    away: bool = False
    failures: int = 0
    moves: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a stream.

    Attributes:
        job: the stream.
        messages: replies.
        steps: encoder steps that they tell of.
        taken: bytes of audio that were fed.
        done: whether it is over.
        error: why it is over; or, where it is not, why it needs another worker (`lost`).
        lost: whether its device has failed, and another one would have to go on with it.
        waits: whether it goes on on the same device, if there is no other one, once that works again.
    """

    job: Job
    messages: list[str]
    steps: int
    taken: int
    done: bool
    error: GharialError | None = None
    lost: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What a run of the device came to.

    Attributes:
        outcomes: by stream.
        streams: that were run together.
        steps: encoder steps of all of them.
        seconds: that it took.
        queued: commands that came meanwhile.
        faults: what went wrong with the device.
    """

    outcomes: list[Outcome]
    streams: int = 0
    steps: int = 0
    seconds: float = 0.0
    queued: int = 0
    faults: tuple[str, ...] = ()
