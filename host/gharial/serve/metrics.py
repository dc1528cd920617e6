# SPDX-License-Identifier: Apache-2.0
"""A server's counters as Prometheus reads them, and as JSON for people and load balancers (docs/operating.md)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from gharial.serve.meters import LATENCIES_S, QUANTILES, SIZES, Meters

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_COUNTED = {
    "refused": ("gharial_refused", "Connections that were turned away, by status.", "status"),
    "closed": ("gharial_closed", "Connections that ended, by code of the close.", "code"),
    "moved": ("gharial_streams_moved", "Streams that went on on another device after theirs had failed.", ""),
    "lost": ("gharial_streams_lost", "Streams that ended with an error of a device.", ""),
}
"""Name, help and label of what `Meters.count` counts."""


@dataclass(frozen=True)
class DeviceState:
    """A device, as the server has it now.

    Attributes:
        device: its name.
        model, version: what runs on it.
        up: whether it takes streams.
        streams: those on it.
        capacity: the most that it takes.
        queue: commands (audio, ends) that wait for its next batch.
    """

    device: str
    model: str = ""
    version: str = ""
    up: bool = True
    streams: int = 0
    capacity: int = 0
    queue: int = 0


@dataclass(frozen=True)
class ServerState:
    """A server, as it is now.

    Attributes:
        connections: those that are open.
        capacity: the most that it takes.
        draining: whether it is about to stop.
        devices: each of its devices.
        uptime_s: since it was started.
        log_lines_lost: lines that could not be written.
        certificate_ends: in seconds since 1970; None without TLS.
    """

    connections: int = 0
    capacity: int = 0
    draining: bool = False
    devices: Sequence[DeviceState] = ()
    uptime_s: float = 0.0
    log_lines_lost: int = 0
    certificate_ends: float | None = None

    @property
    def unready(self) -> str | None:
        """Why no new stream should be sent here; None where it can."""
        if self.draining:
            return "the server is about to stop"
        if not any(device.up for device in self.devices):
            return "no device takes streams"
        return None


def health(state: ServerState) -> Mapping[str, Any]:
    """What `/health` tells: the server is alive."""
    return {"status": "alive", "uptime_s": round(state.uptime_s, 1)}


def ready(state: ServerState) -> tuple[bool, Mapping[str, Any]]:
    """Whether new streams may be sent here, and what `/ready` tells."""
    reason = state.unready
    return reason is None, {"status": "ready"} if reason is None else {"status": "not ready", "reason": reason}


def load(meters: Meters, state: ServerState) -> Mapping[str, Any]:
    """What `/load` tells: streams, capacity, each device's load, the latencies of the last seconds."""
    recent = meters.recent()
    loads = recent.pop("loads")
    return {
        "connections": state.connections,
        "capacity": state.capacity,
        "draining": state.draining,
        "uptime_s": round(state.uptime_s, 1),
        **recent,
        "devices": [{**asdict(device), "load": loads.get(device.device, 0.0)} for device in state.devices],
    }


class Metrics:
    """Text for Prometheus.

    Args:
        meters: what is counted.
        state: gives the server as it is.
    """

    def __init__(self, meters: Meters, state: Callable[[], ServerState]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Families(meters, state))
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """The exposition, of content type `CONTENT_TYPE`."""
        return generate_latest(self._registry)


class _Families(Collector):
    def __init__(self, meters: Meters, state: Callable[[], ServerState]) -> None:
        self._meters, self._state = meters, state

    def collect(self) -> Iterable[Metric]:
        """All families."""
        with self._meters.lock:
            counted = list(self._counted())
        return itertools.chain(counted, _gauges(self._state()))

    def _counted(self) -> Iterator[Metric]:
        meters = self._meters
        now, latencies = meters.clock(), meters.latencies
        yield HistogramMetricFamily(
            "gharial_frame_latency_seconds",
            "From the arrival of a live frame's last byte to its reply.",
            buckets=_cumulative(LATENCIES_S, latencies.totals),
            sum_value=latencies.sum,
        )
        quantiles = GaugeMetricFamily(
            "gharial_frame_latency_recent_seconds", "Its quantiles over the last ten seconds.", labels=["quantile"]
        )
        for part, seconds in zip(QUANTILES, latencies.quantiles(QUANTILES, now), strict=True):
            if seconds is not None:
                quantiles.add_metric([f"{part:g}"], seconds)
        yield quantiles
        yield CounterMetricFamily("gharial_frames", "A client's messages of audio that were answered.", meters.answered)
        yield CounterMetricFamily("gharial_audio_seconds", "Audio that has come in.", meters.audio_s)
        for kind, (name, help_, label) in _COUNTED.items():
            family = CounterMetricFamily(name, help_, labels=[label] if label else [])
            if not label:
                family.add_metric([], meters.counted[kind, ""])
            for (counted, value), times in sorted(meters.counted.items()):
                if label and counted == kind:
                    family.add_metric([value], times)
            yield family
        sizes = HistogramMetricFamily(
            "gharial_batch_size", "Frames that a device was given at once.", labels=["device"]
        )
        busy = CounterMetricFamily("gharial_device_busy_seconds", "Time that it was at work.", labels=["device"])
        load = GaugeMetricFamily(
            "gharial_device_load", "Part of the last ten seconds that it was at work.", labels=["device"]
        )
        faults = CounterMetricFamily("gharial_device_faults", "Times that it failed.", labels=["device"])
        for device, meter in meters.devices.items():
            sizes.add_metric([device], _cumulative(SIZES, meter.sizes), float(meter.entries))
            busy.add_metric([device], meter.busy.total)
            load.add_metric([device], meter.busy.part(now))
            faults.add_metric([device], meter.faults)
        yield from (sizes, busy, load, faults)


def _gauges(state: ServerState) -> Iterator[Metric]:
    yield GaugeMetricFamily("gharial_connections", "Connections that are open.", state.connections)
    yield GaugeMetricFamily("gharial_capacity", "The most that the server takes.", state.capacity)
    yield GaugeMetricFamily("gharial_draining", "Whether it is about to stop.", state.draining)
    yield CounterMetricFamily("gharial_log_lines_lost", "Lines that the log could not take.", state.log_lines_lost)
    if state.certificate_ends is not None:
        help_ = "When the certificate ends, in seconds since 1970."
        yield GaugeMetricFamily("gharial_certificate_end_seconds", help_, state.certificate_ends)
    labels = ["device", "model", "version"]
    up = GaugeMetricFamily("gharial_device_up", "Whether it takes streams.", labels=labels)
    streams = GaugeMetricFamily("gharial_streams", "Streams on it.", labels=labels)
    capacity = GaugeMetricFamily("gharial_device_capacity", "The most that it takes.", labels=labels)
    queue = GaugeMetricFamily("gharial_queue", "Commands (audio, ends) that wait for its next batch.", labels=labels)
    for device in state.devices:
        values = [device.device, device.model, device.version]
        up.add_metric(values, device.up)
        streams.add_metric(values, device.streams)
        capacity.add_metric(values, device.capacity)
        queue.add_metric(values, device.queue)
    yield from (up, streams, capacity, queue)


def _cumulative(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Buckets as Prometheus has them: each with all that is not above its bound."""
    names = [*(f"{bound:g}" for bound in bounds), "+Inf"]
    return list(zip(names, map(float, itertools.accumulate(counts)), strict=True))
