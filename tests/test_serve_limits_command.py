# SPDX-License-Identifier: Apache-2.0
"""TLS, keys and limits as clients meet them, through the real command."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import websocket
from certificates import MISSING, certificate
from command import process
from recordings import SHORT, samples
from served import Process, served, trusting
from serving import FRAME, said, transcript

from gharial.serve.keys import new_key

AUDIO = samples(SHORT).tobytes()
KEY, LINE = new_key("desk")
LIMITS = ("--max-per-address", "3", "--max-message", "100000", "--idle-s", "1.5", "--max-burst-s", "600")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server of the demo model; with TLS where there is openssl."""
    folder = tmp_path_factory.mktemp("served")
    keys = folder / "keys"
    keys.write_text(LINE + "\n")
    words = [*LIMITS, "--api-keys", str(keys)]
    if not MISSING:
        pair = certificate(folder)
        words += ["--tls-certificate", pair[0], "--tls-key", pair[1]]
    with served(folder, *words) as running:
        yield running
        assert running.stopped() == 0
        assert KEY not in running.stderr and "on no" not in running.stderr


def test_it_says_that_it_is_ready(server: Process) -> None:
    """No key is needed; whoever asks has the server's own settings, whether it serves TLS among them."""
    words = [word for word in server.process.args if isinstance(word, str)][2:]  # type: ignore[union-attr]
    assert words[:3] == ["gharial", "serve", "--port"]
    outcome = process("serve", "--ready", "--port", str(server.port), *words[4:])
    assert (outcome.code, outcome.out, outcome.err) == (0, "ready\n", "")


def test_a_key_is_needed(server: Process) -> None:
    for more, options in (("", {}), ("&api_key=wrong", {}), ("", {"header": {"Authorization": "Bearer wrong"}})):
        with pytest.raises(websocket.WebSocketBadStatusException) as raised:
            server.connect(more, **options)
        assert raised.value.status_code == 401
    assert server.get("/metrics")[0] == server.get("/load")[0] == 401
    assert server.get("/health")[0] == server.get("/ready")[0] == 200
    assert server.get("/load", Authorization=f"Bearer {KEY}")[0] == server.get(f"/load?api_key={KEY}")[0] == 200


@pytest.mark.parametrize("header", [False, True])
def test_a_key_opens(server: Process, header: bool) -> None:
    more = "" if header else f"&api_key={KEY}"
    client = server.connect(more, header={"Authorization": f"Bearer {KEY}"} if header else None)
    client.send_binary(AUDIO)
    client.send_binary(b"")
    messages, code, _ = said(client)
    assert transcript(messages).strip() == "on no" and code == 1000


def test_pages_tell_what_was_done(server: Process) -> None:
    status, text = server.get("/metrics", Authorization=f"Bearer {KEY}")
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert status == 200 and float(values["gharial_connections"]) == 0
    if not MISSING:
        assert float(values["gharial_certificate_end_seconds"]) > time.time()
    load = json.loads(server.get("/load", Authorization=f"Bearer {KEY}")[1])
    assert load["capacity"] > 1000 and load["devices"][0]["up"] and load["devices"][0]["streams"] == 0


@pytest.mark.parametrize(("audio", "live"), [(AUDIO, 0), (AUDIO[:FRAME], 1)])
def test_latencies_are_those_of_live_audio(server: Process, audio: bytes, live: int) -> None:
    def counted() -> tuple[float, float]:
        text = server.get("/metrics", Authorization=f"Bearer {KEY}")[1]
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return float(values["gharial_frames_total"]), float(values["gharial_frame_latency_seconds_count"])

    frames, latencies = counted()
    client = server.connect(f"&api_key={KEY}")
    client.send_binary(audio)
    client.send_binary(b"")
    said(client)
    assert counted() == (frames + 1, latencies + live)


def test_streams_beyond_the_limit(server: Process) -> None:
    clients = [server.connect(f"&api_key={KEY}") for _ in range(3)]
    _, code, reason = said(server.connect(f"&api_key={KEY}"))
    assert code == 1013 and reason.startswith("503 too many connections: 3 connections from one address")
    for client in clients:
        client.send_binary(b"")
        assert said(client)[1] == 1000
    fresh = server.connect(f"&api_key={KEY}")  # the places are free again
    fresh.send_binary(b"")
    assert said(fresh)[1] == 1000


def test_a_message_beyond_the_limit(server: Process) -> None:
    """It is refused by its length, before it has come: who sends on may find the connection closed under it."""
    client = server.connect(f"&api_key={KEY}")
    binary, masked, mask = 0x82, 0x80, bytes(4)
    client.sock.sendall(bytes((binary, masked | 127)) + (100_001).to_bytes(8, "big") + mask)
    assert said(client)[1] == 1009


def test_an_idle_stream_ends_with_what_it_said(server: Process) -> None:
    client = server.connect(f"&api_key={KEY}")
    client.send_binary(AUDIO)
    messages, code, reason = said(client)
    assert (code, reason) == (1008, "408 no audio for 1.5 s")
    assert transcript(messages).strip() == "on no"


@pytest.mark.parametrize("header", ["Authorization: Bearer x", "Upgrade: websocket", "Host: localhost", "X: y"])
def test_a_header_that_comes_twice_is_no_error_of_ours(server: Process, header: str) -> None:
    """The server answers 400 or 401, or lets it pass; it has not failed."""
    lines = ["GET /asr/v0.1/stream HTTP/1.1", "Host: localhost", header, header, "Connection: Upgrade", "", ""]
    with socket.create_connection(("localhost", server.port), timeout=60) as raw:
        link: socket.socket = trusting().wrap_socket(raw, server_hostname="localhost") if server.tls else raw
        link.sendall("\r\n".join(lines).encode())
        assert link.recv(100)[9:12] in (b"400", b"401", b"426")
        link.close()
    assert not [event for event in server.events if event["level"] == "error"]


def test_half_a_request_is_not_waited_for(tmp_path: Path) -> None:
    with served(tmp_path, "--handshake-s", "0.1") as server:
        with socket.create_connection(("localhost", server.port), timeout=60) as link:
            link.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            while link.recv(1000):
                pass
        assert server.stopped() == 0


def test_what_is_faster_than_real_time_is_read_no_faster(tmp_path: Path) -> None:
    """Three seconds over the burst at twice real time: not before half of that has passed."""
    seconds = len(AUDIO) / 32000
    with served(tmp_path, "--max-rate", "2", "--max-burst-s", "0", "--max-connections", "1") as server:
        client, began = server.connect(), time.monotonic()
        assert said(server.connect())[1:] == (1013, "503 too many connections: all 1 connections are taken")
        for at in range(0, len(AUDIO), FRAME):
            client.send_binary(AUDIO[at : at + FRAME])
        client.send_binary(b"")
        messages, code, _ = said(client)
        assert code == 1000 and transcript(messages).strip() == "on no"
        assert time.monotonic() - began >= (seconds - 0.1) / 2
        while 'closed_total{code="1000"}' not in (metrics := server.get("/metrics")[1]):
            pass  # the server counts it when the connection is gone
        assert 'gharial_refused_total{status="503"} 1.0' in metrics
        assert 'gharial_closed_total{code="1000"} 1.0' in metrics
        assert server.stopped() == 0
