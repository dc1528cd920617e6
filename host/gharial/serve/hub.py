# SPDX-License-Identifier: Apache-2.0
"""Who gets which stream: models, their workers, and streams as connections see them. All on the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from gharial.errors import BadInput, GharialError, Refused
from gharial.serve.protocol import LATEST, Ask, Replies, keywords_of
from gharial.serve.settings import ModelSettings, Settings
from gharial.serve.watcher import Watcher
from gharial.serve.worker import Job, Report, Worker

if TYPE_CHECKING:
    from gharial.recognise import Recogniser, StreamOptions

INVALID, BUSY = 400, 503


class StreamHandle:
    """A stream as its connection has it.

    Attributes:
        ask: what its client asked for.
        model: what it is recognised with.
        peer: address of the client.
        received: bytes of audio that came.
        taken: those that were recognised.
        messages: replies.
        number: of the stream, from 1, in its server.
    """

    def __init__(self, ask: Ask, model: LoadedModel, peer: str, number: int, sink: Sink) -> None:
        self.ask, self.model, self.peer, self.number = ask, model, peer, number
        self.received = self.taken = self.messages = 0
        self.started = perf_counter()
        self._sink = sink
        self._arrivals: deque[tuple[int, float]] = deque()
        self._job: Job | None = None
        self._room: asyncio.Future[None] | None = None
        self.places = 0
        self.worker: WorkerSlot | None = None

    def feed(self, audio: bytes) -> None:
        """More audio, at least a byte."""
        if self._job is None or self.worker is None:
            return
        self.received += len(audio)
        self._arrivals.append((self.received, perf_counter()))
        self.worker.worker.send("feed", self._job, audio)

    def end(self) -> None:
        """No more audio comes."""
        if self._job is not None and self.worker is not None:
            self.worker.worker.send("end", self._job)

    def close(self) -> None:
        """Give the stream's place back; may be called twice."""
        job, self._job = self._job, None
        if job is not None and self.worker is not None:
            self.worker.worker.send("close", job)
            self.worker.left(self)
        self._wake()

    @property
    def ahead(self) -> int:
        """Bytes of audio that wait for the recogniser."""
        return 0 if self._job is None else self.received - self.taken

    async def room(self) -> None:
        """Wait until something of the audio was recognised, or the stream is over."""
        if self._job is None:
            return
        if self._room is None or self._room.done():
            self._room = asyncio.get_running_loop().create_future()
        await self._room

    def deliver(self, messages: list[str], taken: int, done: bool, error: GharialError | None) -> list[float]:
        """Take what came of the stream; seconds that its frames have taken."""
        if self._job is None:
            return []
        self.taken += taken
        self.messages += len(messages)
        self._sink.replies(messages)
        now, latencies = perf_counter(), list[float]()
        while self._arrivals and self._arrivals[0][0] <= self.taken:
            latencies.append(now - self._arrivals.popleft()[1])
        if done:
            self.close()
            self._sink.over(error)
        self._wake()
        return latencies

    def opened(self, job: Job, worker: WorkerSlot) -> None:
        """A worker has the stream from now on."""
        self._job, self.worker = job, worker

    def _wake(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)


class Sink:
    """Where a stream's replies go."""

    def replies(self, messages: list[str]) -> None:
        """More replies, in order."""

    def over(self, error: GharialError | None) -> None:
        """There will be no more: all is said, or the stream has failed."""


class WorkerSlot:
    """A worker and how many of its places are taken."""

    def __init__(self, worker: Worker, places: int) -> None:
        self.worker, self.places, self.used = worker, places, 0
        self.streams: set[StreamHandle] = set()

    @property
    def free(self) -> int:
        """Places that are left."""
        return self.places - self.used

    def joined(self, handle: StreamHandle) -> None:
        """A stream takes its places."""
        self.used += handle.places
        self.streams.add(handle)

    def left(self, handle: StreamHandle) -> None:
        """A stream gives its places back."""
        if handle in self.streams:
            self.streams.discard(handle)
            self.used -= handle.places


class LoadedModel:
    """A model on its devices.

    Attributes:
        settings: what it was opened with.
        workers: one a device.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self.workers: list[WorkerSlot] = []
        self._options: StreamOptions | None = None

    @property
    def name(self) -> str:
        """Name and version, for people."""
        return f"{self.settings.name}/{self.settings.version}"

    @property
    def recogniser(self) -> Recogniser:
        """One of its recognisers, to be asked about the model; not to be run from here."""
        found = self.workers[0].worker.recogniser
        assert found is not None
        return found

    def opened(self, worker: Worker, recogniser: Recogniser) -> None:
        """One of its workers is ready."""
        self.workers.append(WorkerSlot(worker, recogniser.free_streams))
        if self._options is None:
            assert self.settings.decoding is not None
            self._options = self.settings.decoding.streams(recogniser)

    def options(self, ask: Ask) -> StreamOptions:
        """What a stream is told.

        Raises:
            BadInput: the client asked for what the model cannot do.
        """
        from gharial.recognise import EosMode, StateResets

        assert self._options is not None
        changes: dict[str, object] = {
            name: value
            for name in ("prefix", "silence_s", "alternatives", "eos_mode")
            if (value := getattr(ask, name)) is not None
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
        options = replace(self._options, **changes)  # type: ignore[arg-type]
        return self.recogniser.checked(options)


class Hub:
    """Models by name and version, and which worker takes a stream.

    Args:
        settings: of the server.
        watcher: told about streams and runs.
    """

    def __init__(self, settings: Settings, watcher: Watcher) -> None:
        self.settings, self.watcher = settings, watcher
        self.models: list[LoadedModel] = []
        self._numbers = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self, note: Callable[[str], object]) -> None:
        """Open all models on all devices.

        Raises:
            GharialError: one cannot be opened.
        """
        self._loop = asyncio.get_running_loop()
        for settings in self.settings.models:
            self.models.append(await self._load(settings, note))

    async def _load(self, settings: ModelSettings, note: Callable[[str], object]) -> LoadedModel:
        from gharial.cli.decoding import Decoding
        from gharial.decoding import DecoderOptions

        if settings.decoding is None:
            settings = replace(settings, decoding=Decoding("beam", DecoderOptions(), None, state_resets=True))
        model = LoadedModel(settings)
        try:
            for device in settings.devices:
                worker = self._worker(model, device, note)
                model.opened(worker, await asyncio.to_thread(worker.start))
        except BaseException:
            for slot in model.workers:
                slot.worker.stop()
            raise
        return model

    def _worker(self, model: LoadedModel, device: str, note: Callable[[str], object]) -> Worker:
        how = model.settings.decoding
        assert how is not None

        def opener() -> Recogniser:
            from gharial.recognise import load

            with how.named():
                return load(
                    model.settings.model, device, decoder=how.decoder, options=how.options, ngram=how.ngram, note=note
                )

        name = f"{model.name} on {device}"
        loop = self._loop
        assert loop is not None
        return Worker(
            name,
            opener,
            lambda report: loop.call_soon_threadsafe(self._deliver, name, report),
            self.settings.batch_wait_s,
        )

    def stop(self) -> None:
        """Close all devices; waits for their threads."""
        for model in self.models:
            for slot in model.workers:
                slot.worker.stop()
        self.models.clear()

    def find(self, ask: Ask) -> LoadedModel:
        """The model that is asked for.

        Raises:
            Refused: there is none.
        """
        name = self.models[0].settings.name if ask.model is None else ask.model
        named = [model for model in self.models if model.settings.name == name]
        if not named:
            raise Refused(INVALID, f"model: no such model {name}, only {_listed(m.settings.name for m in self.models)}")
        versions = [model for model in named if ask.version in (LATEST, model.settings.version)]
        if not versions:
            known = _listed([LATEST, *[model.settings.version for model in named]])
            raise Refused(INVALID, f"version: no such version {ask.version} of {name}, only {known}")
        model = versions[-1]
        if ask.lang is not None and ask.lang not in model.settings.languages:
            raise Refused(INVALID, f"lang: {ask.lang} is not spoken, only {_listed(model.settings.languages)}")
        return model

    def open(self, ask: Ask, peer: str, sink: Sink) -> StreamHandle:
        """A stream for a client.

        Raises:
            Refused: the model cannot do what is asked, or has no place.
        """
        model = self.find(ask)
        try:
            options = model.options(ask)
        except BadInput as error:
            raise Refused(INVALID, str(error)) from error
        slot = max(model.workers, key=lambda slot: slot.free)
        if slot.free < options.places:
            raise Refused(BUSY, "too many connections")
        recogniser = model.recogniser
        self._numbers += 1
        handle = StreamHandle(ask, model, peer, self._numbers, sink)
        handle.places = options.places
        slot.joined(handle)
        replies = Replies(recogniser.step_s, recogniser.decoder != "greedy", self.settings.compat)
        job = Job(handle, options, replies)
        handle.opened(job, slot)
        slot.worker.send("open", job)
        self.watcher.opened(handle)
        return handle

    def _deliver(self, worker: str, report: Report) -> None:
        for outcome in report.outcomes:
            handle = outcome.handle
            assert isinstance(handle, StreamHandle)
            if outcome.error is not None:
                self.watcher.fault(worker, str(outcome.error))
            latencies = handle.deliver(outcome.messages, outcome.taken, outcome.done, outcome.error)
            if outcome.messages:
                self.watcher.replied(handle, outcome.messages, latencies)
        self.watcher.ran(worker, report.streams, report.steps, report.seconds, report.queued)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
