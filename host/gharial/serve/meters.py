# SPDX-License-Identifier: Apache-2.0
"""What a server counts while it runs: cheap enough to be called for every frame, from any thread."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gharial.serve.window import Window

RECENT_S = 10
"""Seconds that quantiles and loads look back."""

LATENCIES_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
QUANTILES = (0.5, 0.95, 0.99)


class Busy:
    """How much of the last seconds something was at work.

    Args:
        begun: since when it is looked at, on a clock that never goes back.
        seconds: whole seconds that it looks back.
    """

    def __init__(self, begun: float, seconds: int = RECENT_S) -> None:
        self._seconds = seconds
        self._bins: dict[int, float] = {}
        self._begun = begun
        self.total = 0.0

    def add(self, ended: float, seconds: float) -> None:
        """It was at work for these seconds, until that moment on a clock that never goes back."""
        self.total += seconds
        began = max(ended - seconds, ended - self._seconds - 1)  # older is never asked for
        while began < ended:
            second = int(began)
            until = min(ended, second + 1.0)
            self._bins[second] = self._bins.get(second, 0.0) + until - began
            began = until
        if len(self._bins) > 4 * self._seconds:
            oldest = int(ended) - 2 * self._seconds
            self._bins = {second: busy for second, busy in self._bins.items() if second >= oldest}

    def part(self, now: float) -> float:
        """The part of the last whole seconds, 0 to 1; of the time since it began where that is less."""
        end = int(now)
        begin = end - self._seconds
        if self._begun > begin:
            span = now - self._begun
            busy = sum(self._bins.values())
        else:
            span = float(self._seconds)
            busy = sum(busy for second, busy in self._bins.items() if begin <= second < end)
        return min(1.0, busy / span) if span > 0 else 0.0


@dataclass
class DeviceMeter:
    """What one device did.

    Attributes:
        busy: when it was at work.
        batches: commands that were run.
        entries: frames in them.
        sizes: batches by the buckets of `SIZES`, and one above.
        faults: times that it failed.
        queued: what waited for it after the last batch.
    """

    busy: Busy
    batches: int = 0
    entries: int = 0
    sizes: list[int] = field(default_factory=lambda: [0] * (len(SIZES) + 1))
    faults: int = 0
    queued: int = 0


class Meters:
    """All of a server's counters.

    Args:
        clock: seconds on a clock that never goes back.

    Attributes:
        latencies: of frames, from the arrival of a frame's last byte to its reply.
        devices: meters by the device's name.
        answered: frames that were answered.
        counted: everything else, by (name, label).
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._begun = clock()
        self.lock = threading.Lock()
        self.latencies = Window(RECENT_S, LATENCIES_S)
        self.devices: dict[str, DeviceMeter] = {}
        self.counted: Counter[tuple[str, str]] = Counter()
        self.audio_s = 0.0
        self.answered = 0

    def frames(self, latencies_s: Sequence[float], live: bool = True) -> None:
        """Frames were answered, each so long after it had come.

        Args:
            latencies_s: seconds of each.
            live: whether they came in real time; else they had to wait for those before, and are only counted.
        """
        with self.lock:
            self.answered += len(latencies_s)
            if live:
                now = self.clock()
                for latency in latencies_s:
                    self.latencies.add(latency, now)

    def audio(self, seconds: float) -> None:
        """Audio has come in."""
        with self.lock:
            self.audio_s += seconds

    def batch(self, device: str, size: int, busy_s: float, queued: int = 0) -> None:
        """A device has run a batch, and is done with it now; how much waits for it already."""
        with self.lock:
            meter = self._device(device)
            meter.busy.add(self.clock(), busy_s)
            meter.queued = queued
            meter.batches += 1
            meter.entries += size
            meter.sizes[bisect_left(SIZES, size)] += 1

    def fault(self, device: str) -> None:
        """A device has failed."""
        with self.lock:
            self._device(device).faults += 1

    def count(self, name: str, label: str = "", times: int = 1) -> None:
        """Count something that has no method of its own ("refused", by reason)."""
        with self.lock:
            self.counted[name, label] += times

    def queued(self, device: str) -> int:
        """What waits for a device."""
        with self.lock:
            return self.devices[device].queued if device in self.devices else 0

    def recent(self) -> dict[str, Any]:
        """The last seconds: frames a second, quantiles of latencies in milliseconds (None without frames), loads."""
        with self.lock:
            now = self.clock()
            quantiles = self.latencies.quantiles(QUANTILES, now)
            found: dict[str, Any] = {
                "seconds": RECENT_S,
                "frames_per_s": self.latencies.recent(now) / RECENT_S,
            }
            for part, value in zip(QUANTILES, quantiles, strict=True):
                found[f"cl{part * 100:.0f}_ms"] = None if value is None else round(value * 1e3, 3)
            found["loads"] = {name: round(meter.busy.part(now), 4) for name, meter in self.devices.items()}
            return found

    def _device(self, name: str) -> DeviceMeter:
        if name not in self.devices:
            self.devices[name] = DeviceMeter(Busy(self._begun))
        return self.devices[name]
