# SPDX-License-Identifier: Apache-2.0
"""Ends of a valid/ready stream: a source that keeps what it offers until it is taken, and a sink that takes at will.

Both sample at the rising edge, where cocotb sees the values that the registers see.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.handle import ArrayObject
from cocotb.triggers import Event, RisingEdge

from sim.common.bench import clock

Pause = Callable[[], bool]


def never() -> bool:
    """No pauses."""
    return False


class Source:
    """Offers items in order; `pause()` is asked before each, once a clock, and True leaves a clock out.

    Args:
        clk: clock.
        valid, ready: handshake.
        payload: handles by the names that `put` uses.
    """

    def __init__(self, clk: Any, valid: Any, ready: Any, payload: Mapping[str, Any], pause: Pause = never) -> None:
        self.pause = pause
        self.taken: list[int] = []  # clock at which each item was taken
        self._clk, self._valid, self._ready, self._payload = clk, valid, ready, payload
        self._queue: deque[dict[str, Any]] = deque()
        self._wake = Event()
        self._idle = Event()
        self._idle.set()
        self._task = cocotb.start_soon(self._run())

    def stop(self) -> None:
        """Offer nothing any more, and never again: what is queued is forgotten."""
        self._task.cancel()
        self._valid.value = 0

    def put(self, **item: Any) -> None:
        """Queue an item: a value for each name of the payload."""
        if item.keys() != self._payload.keys():
            raise KeyError(f"fields {sorted(item)}, expected {sorted(self._payload)}")
        self._queue.append(item)
        self._idle.clear()
        self._wake.set()

    async def drain(self) -> None:
        """Wait until all has been taken."""
        await self._idle.wait()

    async def _run(self) -> None:
        edge = RisingEdge(self._clk)
        while True:
            if not self._queue:
                self._valid.value = 0
                self._idle.set()
                self._wake.clear()
                await self._wake.wait()
                await edge
            while self.pause():
                self._valid.value = 0
                await edge
            for name, value in self._queue[0].items():
                self._payload[name].value = value
            self._valid.value = 1
            await edge
            while not self._ready.value:
                await edge
            self.taken.append(clock())
            self._queue.popleft()


@dataclass(frozen=True)
class Beat:
    """One item that a sink took: the clock, and the payload's values as cocotb read them."""

    clock: int
    payload: dict[str, Any]


class Sink:
    """Takes items; `pause()` is asked once a clock, and True holds ready low for it. What was taken is in `beats`.

    Checks that an item once offered stays as it is until taken, or with `withdrawn` that it does not change.
    """

    def __init__(
        self,
        clk: Any,
        valid: Any,
        ready: Any,
        payload: Mapping[str, Any],
        pause: Pause = never,
        withdrawn: bool = False,
    ) -> None:
        self.pause = pause
        self._withdrawn = withdrawn
        self.beats: list[Beat] = []
        self._clk, self._valid, self._ready, self._payload = clk, valid, ready, payload
        cocotb.start_soon(self._run())

    async def until(self, count: int, limit: int = 1_000_000) -> list[Beat]:
        """Wait until `count` items have been taken; all beats so far.

        Raises:
            AssertionError: they did not come within `limit` clocks.
        """
        for _ in range(limit):
            if len(self.beats) >= count:
                return self.beats
            await RisingEdge(self._clk)
        raise AssertionError(f"{len(self.beats)} of {count} items after {limit} clocks")

    async def _run(self) -> None:
        edge = RisingEdge(self._clk)
        held: dict[str, Any] | None = None
        while True:
            ready = not self.pause()
            self._ready.value = int(ready)
            await edge
            if not self._valid.value:
                assert held is None or self._withdrawn, "valid fell before the item was taken"
                held = None
                continue
            item = {name: _value(handle) for name, handle in self._payload.items()}
            assert held in (None, item), f"item changed before it was taken: {held} became {item}"
            held = item
            if ready:
                self.beats.append(Beat(clock(), item))
                held = None


def _value(handle: Any) -> Any:
    """An integer, or a list for an unpacked array; signedness is up to the reader (see `signed`)."""
    return [int(element) for element in handle.value] if isinstance(handle, ArrayObject) else int(handle.value)


def signed(value: int, bits: int) -> int:
    """The two's complement number in the low `bits` of `value`."""
    return ((value & ((1 << bits) - 1)) ^ (1 << (bits - 1))) - (1 << (bits - 1))
