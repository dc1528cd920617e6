# SPDX-License-Identifier: Apache-2.0
"""A model that is served: its devices, their places, and what its streams are told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gharial.errors import BadInput
from gharial.serve.jobs import Report
from gharial.serve.protocol import SAMPLE_RATE, Ask, keywords_of
from gharial.serve.settings import ModelSettings, Settings
from gharial.serve.streams import REPLAY_S, StreamHandle
from gharial.serve.worker import Worker

if TYPE_CHECKING:
    from gharial.cli.decoding import Decoding
    from gharial.recognise import Recogniser, StreamOptions

_SIMULATED = ("emulator", "reference", "verilator")

Fingerprint = tuple[tuple[str, int, int, int], ...]


class WorkerSlot:
    """A worker and how many of its places are taken.

    Attributes:
        device: name of its device.
        worker: the worker.
        places: on its device, for streams without state resets.
        used: those that are taken.
        streams: that have them.
        closing: whether no more streams are to come.
    """

    def __init__(self, device: str, worker: Worker, places: int) -> None:
        self.device, self.worker, self.places = device, worker, places
        self.used = 0
        self.closing = False
        self.streams: set[StreamHandle] = set()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def free(self) -> int:
        """Places that a stream could have."""
        return self.places - self.used if self.worker.up and not self.closing else 0

    def joined(self, handle: StreamHandle) -> None:
        """A stream takes its places."""
        self.used += handle.places
        self.streams.add(handle)

    def left(self, handle: StreamHandle) -> None:
        """A stream gives its places back."""
        if handle in self.streams:
            self.streams.discard(handle)
            self.used -= handle.places
            if not self.streams:
                for waiting in self._waiting:
                    if not waiting.done():
                        waiting.set_result(None)
                self._waiting.clear()

    async def emptied(self) -> None:
        """Wait until it has no streams."""
        if self.streams:
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]


class LoadedModel:
    """A model on its devices.

    Args:
        asked: what it is opened with.
        server: settings of the server.
        deliver: called on a worker's thread with the worker's name and a `Report`.
        note: called with remarks about the model.

    Attributes:
        asked: as given.
        slots: its workers, one a device.
        fingerprint: of the files that it was made of.
    """

    def __init__(
        self,
        asked: ModelSettings,
        server: Settings,
        deliver: Callable[[str, Report], object],
        note: Callable[[str], object],
    ) -> None:
        self.asked = asked
        self.settings = asked if asked.decoding is not None else replace(asked, decoding=_usual())
        self.slots: list[WorkerSlot] = []
        self.fingerprint = fingerprint(asked)
        self._server, self._deliver, self._note = server, deliver, note
        self._options: StreamOptions | None = None
        self._about: Recogniser | None = None

    @property
    def name(self) -> str:
        """Name and version, for people."""
        return f"{self.settings.name}/{self.settings.version}"

    @property
    def workers(self) -> list[WorkerSlot]:
        """The same as `slots`."""
        return self.slots

    @property
    def recogniser(self) -> Recogniser:
        """One of its recognisers, to be asked about the model; not to be run from here."""
        assert self._about is not None
        return self._about

    def open(self, device: str) -> WorkerSlot:
        """Open the model on a device; takes its time, and is to be called from a thread of its own.

        Raises:
            GharialError: it cannot be.
        """
        how, path = self._decoding, self.settings.model
        same = sum(slot.device == device for slot in self.slots)
        name = f"{self.name} on {device}" + (f" ({same + 1})" if same else "")

        def opener() -> Recogniser:
            from gharial.recognise import load

            with how.named():
                return load(path, device, decoder=how.decoder, options=how.options, ngram=how.ngram, note=self._note)

        worker = Worker(name, opener, lambda report: self._deliver(name, report), self._server.batch_wait_s, REPLAY_S)
        recogniser = worker.start()
        try:
            if recogniser.front_end.sample_rate != SAMPLE_RATE:
                found, wanted = f"{recogniser.front_end.sample_rate} Hz", f"{SAMPLE_RATE} Hz"
                raise BadInput("the model takes another rate than clients send", self.name, found, wanted)
            options = how.streams(recogniser)
        except BaseException:
            worker.stop()
            raise
        self._options, self._about = options, recogniser
        return WorkerSlot(device, worker, recogniser.free_streams)

    def options(self, ask: Ask) -> StreamOptions:
        """What a stream is told.

        Raises:
            BadInput: the client asked for what the model cannot do.
        """
        from gharial.recognise import EosMode, StateResets

        assert self._options is not None
        changes: dict[str, object] = {
            name: value for name in ("prefix", "silence_s", "alternatives") if (value := getattr(ask, name)) is not None
        }
        if ask.eos_mode is not None:
            if ask.eos_mode not in list(EosMode):
                raise BadInput("no such mode", "eos_mode", ask.eos_mode, ", ".join(EosMode))
            changes["eos_mode"] = EosMode(ask.eos_mode)
        if ask.state_resets is not None:
            changes["state_resets"] = StateResets() if ask.state_resets else None
        if ask.keywords is not None:
            changes["keywords"] = self.recogniser.keywords(keywords_of(ask.keywords))
        if not changes:
            return self._options
        return self.recogniser.checked(replace(self._options, **changes))  # type: ignore[arg-type]

    def roomiest(self, without: WorkerSlot | None = None) -> WorkerSlot | None:
        """The worker with most free places, None if there is none but that one."""
        others = [slot for slot in self.slots if slot is not without]
        return max(others, key=lambda slot: slot.free, default=None)

    @property
    def _decoding(self) -> Decoding:
        assert self.settings.decoding is not None
        return self.settings.decoding


def exclusive(device: str) -> bool:
    """Whether a device holds one program: boards do; of those that are simulated each model gets its own."""
    return device.partition(":")[0] not in _SIMULATED


def fingerprint(settings: ModelSettings) -> Fingerprint:
    """By which it shows whether a model's files are still those that they were."""
    return tuple(_facts(settings))


def _facts(settings: ModelSettings) -> Iterator[tuple[str, int, int, int]]:
    how = settings.decoding
    for path in (settings.model, None if how is None else how.ngram, None if how is None else how.keyword_file):
        if isinstance(path, str):
            try:
                found = os.stat(path)  # noqa: PTH116
                yield path, found.st_ino, found.st_size, found.st_mtime_ns
            except OSError:
                yield path, 0, 0, 0


def _usual() -> Decoding:
    from gharial.cli.decoding import Decoding
    from gharial.decoding import DecoderOptions

    return Decoding("beam", DecoderOptions(), None, state_resets=True)
