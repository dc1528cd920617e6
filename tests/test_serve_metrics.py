# SPDX-License-Identifier: Apache-2.0
"""What the server counts, and how it tells it."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gharial.serve.meters import Busy, Meters
from gharial.serve.metrics import DeviceState, Metrics, ServerState, health, load, ready
from gharial.serve.notify import notify, watchdog_s
from gharial.serve.window import STEP, Window

DEVICES = (
    DeviceState("emulator", "general", "1", True, 7, 100, 2),
    DeviceState('odd "name"\n', "general", "1", False),
)


def samples(text: bytes) -> dict[tuple[str, str], float]:
    """Values by name and the labels' values."""
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_quantiles_are_within_half_a_bucket(seed: int) -> None:
    order = random.Random(seed)
    window, values = Window(10), []
    for _ in range(3000):
        value = 10 ** order.uniform(-4, 1)
        values.append(value)
        window.add(value, 100.0 + order.uniform(0, 9))
    values.sort()
    for part, found in zip((0.5, 0.95, 0.99), window.quantiles((0.5, 0.95, 0.99), 109.0), strict=True):
        true = values[max(0, -int(-part * len(values) // 1) - 1)]
        assert found is not None and true / STEP <= found <= true * STEP
    assert window.recent(109.0) == window.count == 3000


def test_old_values_are_forgotten_but_counted() -> None:
    window = Window(10, (0.1, 1.0))
    window.add(0.05, 100.0, 3)
    window.add(5.0, 105.5)
    assert window.recent(109.9) == 4 and window.recent(110.0) == 1 and window.recent(116.0) == 0
    assert window.quantiles((0.5,), 200.0) == [None]
    assert window.totals == [3, 0, 1] and window.sum == pytest.approx(5.15)
    window.add(0.2, 110.5)  # the place of second 100
    assert window.recent(110.5) == 2


def test_durations_of_any_size_have_a_place() -> None:
    window = Window(10, (0.1,))
    for value in (0.0, -1.0, 1e-9, 1e9):
        window.add(value, 1.0)
    low, high = window.quantiles((0.5, 1.0), 1.0)
    assert low is not None and high is not None and low < 1e-4 and 60 < high < 200


def test_load_is_the_part_of_time_at_work() -> None:
    busy = Busy(1000.0)
    assert busy.part(1000.0) == 0.0
    for second in range(1, 31):
        busy.add(1000.0 + second, 0.25)
        assert busy.part(1000.0 + second) == pytest.approx(0.25)
    busy.add(1035.0, 4.0)
    assert busy.part(1035.0) == pytest.approx((5 * 0.25 + 4) / 10)
    assert busy.part(1100.0) == 0.0 and busy.total == pytest.approx(11.5)
    busy.add(2000.0, 500.0)
    assert busy.part(2000.0) == 1.0 and len(busy._bins) < 60


def test_what_prometheus_reads() -> None:
    meters = Meters(lambda: 50.0)
    meters.frames([0.02] * 90)
    meters.frames([0.3] * 10)
    meters.frames([9.0] * 50, live=False)
    meters.audio(6.0)
    meters.batch("emulator", 3, 0.01)
    meters.batch("emulator", 64, 0.02)
    meters.fault("emulator")
    meters.count("refused", "503", 2)
    meters.count("closed", "1000")
    meters.count("moved")
    state = ServerState(9, 100, True, DEVICES, 5.0, 4, 1.8e9)
    text = Metrics(meters, lambda: state).text()
    found = samples(text)
    for key, value in {
        ("gharial_frames_total", ""): 150,
        ("gharial_frame_latency_seconds_count", ""): 100,
        ("gharial_frame_latency_seconds_bucket", "0.025"): 90,
        ("gharial_frame_latency_seconds_bucket", "0.5"): 100,
        ("gharial_audio_seconds_total", ""): 6,
        ("gharial_batch_size_bucket", "emulator,4"): 1,
        ("gharial_batch_size_bucket", "emulator,64"): 2,
        ("gharial_batch_size_sum", "emulator"): 67,
        ("gharial_device_faults_total", "emulator"): 1,
        ("gharial_device_busy_seconds_total", "emulator"): 0.03,
        ("gharial_refused_total", "503"): 2,
        ("gharial_closed_total", "1000"): 1,
        ("gharial_streams_moved_total", ""): 1,
        ("gharial_streams_lost_total", ""): 0,
        ("gharial_connections", ""): 9,
        ("gharial_capacity", ""): 100,
        ("gharial_draining", ""): 1,
        ("gharial_log_lines_lost_total", ""): 4,
        ("gharial_certificate_end_seconds", ""): 1.8e9,
        ("gharial_streams", "emulator,general,1"): 7,
        ("gharial_queue", "emulator,general,1"): 2,
        ("gharial_device_up", 'odd "name"\n,general,1'): 0,
    }.items():
        assert found[key] == pytest.approx(value), key
    assert found["gharial_frame_latency_recent_seconds", "0.99"] == pytest.approx(0.3, rel=STEP - 1)
    assert found["process_open_fds", ""] > 0
    assert ("gharial_certificate_end_seconds", "") not in samples(Metrics(meters, ServerState).text())


def test_what_the_page_reads() -> None:
    meters = Meters(lambda: 50.0)
    assert load(meters, ServerState())["cl99_ms"] is None
    meters.frames([0.02] * 30)
    meters.batch("emulator", 3, 0.0)
    found = json.loads(json.dumps(load(meters, ServerState(9, 100, devices=DEVICES))))
    assert found["frames_per_s"] == 3.0 and found["cl50_ms"] == pytest.approx(20, rel=STEP - 1)
    assert found["connections"] == 9 and found["capacity"] == 100
    assert [device["load"] for device in found["devices"]] == [0.0, 0.0]
    assert found["devices"][0]["streams"] == 7 and found["devices"][1]["up"] is False


def test_alive_and_ready() -> None:
    assert health(ServerState(uptime_s=3.25))["status"] == "alive"
    assert ready(ServerState(devices=DEVICES)) == (True, {"status": "ready"})
    for state, part in ((ServerState(devices=DEVICES[1:]), "no device"), (ServerState(draining=True), "stop")):
        good, told = ready(state)
        assert not good and part in told["reason"]


def test_meters_from_many_threads() -> None:
    meters = Meters()

    def work() -> None:
        for _ in range(500):
            meters.frames([0.01])
            meters.count("moved")
            meters.batch("emulator", 1, 0.0)
            meters.recent()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meters.latencies.count == meters.counted["moved", ""] == meters.devices["emulator"].batches == 2000


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_is_told(tmp_path: Path, abstract: bool) -> None:
    path = f"@gharial-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.bind("\0" + path[1:] if abstract else path)
        assert notify("READY=1", "STATUS=listening", environ={"NOTIFY_SOCKET": path})
        assert link.recv(100) == b"READY=1\nSTATUS=listening"


def test_nobody_asked_to_be_told(tmp_path: Path) -> None:
    assert not notify("READY=1", environ={})
    assert not notify("READY=1", environ={"NOTIFY_SOCKET": "relative"})
    assert not notify("READY=1", environ={"NOTIFY_SOCKET": str(tmp_path / "none")})
    assert watchdog_s({}) is None and watchdog_s({"WATCHDOG_USEC": "x"}) is None
    assert watchdog_s({"WATCHDOG_USEC": "30000000"}) == 30.0
    assert watchdog_s({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}) is None
