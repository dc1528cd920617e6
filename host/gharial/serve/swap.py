# SPDX-License-Identifier: Apache-2.0
"""Models that come and go while streams run (docs/serving.md).

New streams go to what is new as soon as it is open; running ones end on what they began with, whose workers stop with
the last of them. A device that holds one program at a time is first emptied: its streams move to other devices of their
model, as far as there is room, and are else waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gharial.errors import BadInput, GharialError
from gharial.serve.jobs import Report
from gharial.serve.models import LoadedModel, WorkerSlot, exclusive, fingerprint
from gharial.serve.settings import ModelSettings, Settings
from gharial.serve.watcher import Watcher


@dataclass(frozen=True)
class Changes:
    """What a change of models came to: names and versions.

    Attributes:
        opened: that are new, or new by their files.
        kept: that are as they were.
        retired: that take no more streams.
    """

    opened: tuple[str, ...]
    kept: tuple[str, ...]
    retired: tuple[str, ...]


class Swaps:
    """The models of a server.

    Args:
        settings: of the server.
        deliver: as for `LoadedModel`.
        watcher: told about what goes wrong later.

    Attributes:
        models: those that take streams.
        retired: those that have streams left.
    """

    def __init__(self, settings: Settings, deliver: Callable[[str, Report], object], watcher: Watcher) -> None:
        self.models: list[LoadedModel] = []
        self.retired: list[LoadedModel] = []
        self._settings, self._deliver, self._watcher = settings, deliver, watcher
        self._changing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def update(self, wanted: Sequence[ModelSettings], note: Callable[[str], object]) -> Changes:
        """Serve these models from now on.

        Raises:
            BadInput: one cannot be used; nothing has changed then.
            GharialError: a device failed; nothing has changed then.
        """
        if not wanted:
            raise BadInput("there is none to serve", "models", "none", "one at least")
        async with self._changing:
            models, fresh = list[LoadedModel](), list[LoadedModel]()
            for settings in wanted:
                kept = next((one for one in self.models if _same(one, settings)), None)
                if kept is None:
                    fresh.append(LoadedModel(settings, self._settings, self._deliver, note))
                models.append(kept or fresh[-1])
            gone = [one for one in self.models if one not in models]
            later: list[tuple[LoadedModel, str]] = []
            emptied: list[tuple[LoadedModel, str]] = []
            try:
                for model in fresh:
                    later += await self._open(model, gone, emptied)
            except BaseException:
                for model in fresh:
                    await self._stop(model.slots)
                for model, device in emptied:
                    await self._take_over(model, device)
                raise
            self.models = models
            for model in gone:
                self.retired.append(model)
                for slot in model.slots:
                    self._background(self._end(model, slot))
            for model, device in later:
                self._background(self._take_over(model, device))
            staying = [one for one in models if one not in fresh]
            return Changes(_names(fresh), _names(staying), _names(gone))

    async def stop(self) -> None:
        """Close all devices; what streams still had to say is lost."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        slots = [slot for _, slot in self._slots()]
        self.models, self.retired = [], []
        await self._stop(slots)

    async def _open(
        self, model: LoadedModel, gone: Sequence[LoadedModel], emptied: list[tuple[LoadedModel, str]]
    ) -> list[tuple[LoadedModel, str]]:
        """Open a model where it can be now, at least on one device; where it is still to be opened."""
        held = {slot.device: (owner, slot) for owner, slot in self._slots() if exclusive(slot.device)}
        devices = model.settings.devices
        for device in devices:
            if device in held and held[device][0] not in (*gone, *self.retired):
                raise BadInput("the device has another model, which stays", model.name, device, "a device of its own")
        now = [device for device in devices if device not in held]
        for device in now or devices[:1]:
            if device in held:
                owner, slot = held[device]
                await self._empty(owner, slot)
                emptied.append((owner, device))
            model.slots.append(await asyncio.to_thread(model.open, device))
        return [(model, device) for device in (devices if now else devices[1:]) if device in held]

    async def _take_over(self, model: LoadedModel, device: str) -> None:
        """Open a model on a device, which others may have to leave first."""
        try:
            for owner, slot in self._slots():
                if slot.device == device:
                    await self._empty(owner, slot)
            model.slots.append(await asyncio.to_thread(model.open, device))
        except GharialError as error:
            self._watcher.fault(f"{model.name} on {device}", str(error))

    async def _empty(self, model: LoadedModel, slot: WorkerSlot) -> None:
        """Have a worker's streams go elsewhere, or wait for their end; then close its device."""
        slot.closing = True
        for handle in list(slot.streams):
            other = model.roomiest(without=slot)
            if other is not None and other.free >= handle.places and handle.movable:
                handle.move(other)
                self._watcher.moved(handle, slot.worker.name, other.worker.name)
        await self._end(model, slot)

    async def _end(self, model: LoadedModel, slot: WorkerSlot) -> None:
        """Close a worker once its streams have ended, and forget a retired model with its last one."""
        while slot.streams:
            await slot.emptied()
        slot.closing = True
        if slot in model.slots:
            model.slots.remove(slot)
        await self._stop([slot])
        if not model.slots and model in self.retired:
            self.retired.remove(model)

    async def _stop(self, slots: Sequence[WorkerSlot]) -> None:
        for slot in slots:
            await asyncio.to_thread(slot.worker.stop)

    def _slots(self) -> list[tuple[LoadedModel, WorkerSlot]]:
        return [(model, slot) for model in (*self.models, *self.retired) for slot in model.slots]

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _same(model: LoadedModel, settings: ModelSettings) -> bool:
    return model.asked == settings and model.fingerprint == fingerprint(settings)


def _names(models: Iterable[LoadedModel]) -> tuple[str, ...]:
    return tuple([model.name for model in models])
