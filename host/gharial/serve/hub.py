# SPDX-License-Identifier: Apache-2.0
"""Who gets which stream: models by name and version, their workers, and what came of all streams. On the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from gharial.errors import BadInput, GharialError, Refused
from gharial.serve.jobs import Outcome, Report
from gharial.serve.models import LoadedModel, WorkerSlot
from gharial.serve.protocol import LATEST, Ask, Replies, refusal
from gharial.serve.settings import Settings
from gharial.serve.streams import Sink, StreamHandle
from gharial.serve.swap import Swaps
from gharial.serve.watcher import Watcher

__all__ = ["BUSY", "INVALID", "Hub", "LoadedModel", "Sink", "StreamHandle", "WorkerSlot"]

INVALID, BUSY = 400, 503


class Hub:
    """Models by name and version, and which worker takes a stream.

    Args:
        settings: of the server.
        watcher: told about streams and runs.

    Attributes:
        models: those that take streams, in the order of the settings.
        swaps: changes them while streams run.
    """

    def __init__(self, settings: Settings, watcher: Watcher) -> None:
        self.settings, self.watcher = settings, watcher
        self.swaps = Swaps(settings, self._report, watcher)
        self._numbers = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def models(self) -> list[LoadedModel]:
        """Those that take streams, in the order of the settings."""
        return self.swaps.models

    async def start(self, note: Callable[[str], object]) -> None:
        """Open all models on all devices.

        Raises:
            GharialError: one cannot be opened.
        """
        self._loop = asyncio.get_running_loop()
        try:
            await self.swaps.update(self.settings.models, note)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close all devices, and wait for their threads."""
        await self.swaps.stop()

    def find(self, ask: Ask) -> LoadedModel:
        """The model that is asked for.

        Raises:
            Refused: there is none.
        """
        name = self.models[0].settings.name if ask.model is None else ask.model
        named = [model for model in self.models if model.settings.name == name]
        if not named:
            known = _listed(model.settings.name for model in self.models)
            raise Refused(INVALID, f"model: no such model {name}, only {known}", "model: no such model")
        versions = [model for model in named if ask.version in (LATEST, model.settings.version)]
        if not versions:
            known = _listed([LATEST, *[model.settings.version for model in named]])
            reason = f"version: no such version {ask.version} of {name}, only {known}"
            raise Refused(INVALID, reason, "version: no such version")
        model = versions[-1]
        if ask.lang is not None and ask.lang not in model.settings.languages:
            reason = f"lang: {ask.lang} is not spoken, only {_listed(model.settings.languages)}"
            raise Refused(INVALID, reason, "lang: not spoken")
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
            # Where the model's file is, is no business of its clients.
            reason = str(error).removeprefix(f"{model.recogniser.program.where}: ")
            raise refusal(error, reason) from error
        slot = model.roomiest()
        if slot is None or slot.free < options.places:
            works = any(one.worker.up for one in model.slots)
            raise Refused(BUSY, "too many connections" if works else "no device works")
        recogniser = slot.worker.recogniser
        replies = Replies(recogniser.step_s, recogniser.decoder != "greedy", self.settings.compat)
        self._numbers += 1
        handle = StreamHandle(ask, model, peer, self._numbers, sink, options, replies)
        handle.begin(slot)
        self.watcher.opened(handle)
        return handle

    def _report(self, worker: str, report: Report) -> None:
        """On a worker's thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._deliver, worker, report)

    def _deliver(self, worker: str, report: Report) -> None:
        for fault in report.faults:
            self.watcher.fault(worker, fault)
        for outcome in report.outcomes:
            handle = outcome.job.handle
            if handle.over:
                continue
            if outcome.lost:
                self._lost(worker, handle, outcome)
                continue
            latencies = handle.deliver(outcome.messages, outcome.taken)
            if outcome.messages:
                self.watcher.replied(handle, outcome.messages, latencies)
            if outcome.done:
                handle.finish(outcome.error)
        self.watcher.ran(worker, report.streams, report.steps, report.seconds, report.queued)

    def _lost(self, worker: str, handle: StreamHandle, outcome: Outcome) -> None:
        """A stream's device has failed: another is to go on with it."""
        slot = handle.slot
        if slot is None or slot.worker.name != worker:
            return  # it was moved already
        other = handle.model.roomiest(without=slot)
        if other is not None and other.free >= handle.places:
            handle.move(other)
            self.watcher.moved(handle, worker, other.worker.name)
        elif not outcome.waits:
            handle.finish(outcome.error or GharialError(f"{worker} does not work"))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
