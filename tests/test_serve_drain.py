# SPDX-License-Identifier: Apache-2.0
"""How a server starts and stops, through the real command."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest
from command import process
from recordings import SHORT, samples
from served import served
from serving import FRAME, said, transcript

AUDIO = samples(SHORT).tobytes()


def test_running_streams_finish_and_no_new_ones_begin(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        client = server.connect()
        client.send_binary(AUDIO[: 20 * FRAME])
        json.loads(client.recv())
        assert server.get("/ready")[0] == 200
        server.signal(signal.SIGINT)
        while server.get("/ready")[0] == 200:
            pass
        status, told = server.get("/ready")
        assert status == 503 and "about to stop" in told
        assert server.get("/health")[0] == 200
        _, code, reason = said(server.connect())
        assert (code, reason) == (1013, "503 the server stops")
        client.send_binary(AUDIO[20 * FRAME :])
        client.send_binary(b"")
        messages, code, reason = said(client)
        assert (code, reason) == (1000, "")
        assert transcript(messages).strip() == "on no"
        assert server.code() == 0
        events = {event["event"]: event for event in server.events}
        assert events["stopped"]["all_finished"] is True and events["stopped"]["signal"] == "SIGINT"
        closed = events["stream closed"]
        assert closed["code"] == 1000 and closed["audio_s"] == round(len(AUDIO) / 32000, 3)
        assert "on no" not in server.stderr


def test_a_stream_beyond_the_limit_gets_its_text_and_a_reason(tmp_path: Path) -> None:
    with served(tmp_path, "--drain-s", "0.3") as server:
        client = server.connect()
        client.send_binary(AUDIO)
        json.loads(client.recv())
        server.signal()
        messages, code, reason = said(client)
        assert (code, reason) == (1001, "503 the server stops")
        assert transcript(messages).strip() == "on no"
        assert server.code() == 0
        assert next(event for event in server.events if event["event"] == "stopped")["all_finished"] is False


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    with served(tmp_path, "--drain-s", "3600") as server:
        client = server.connect()
        server.signal()
        while server.get("/ready")[0] == 200:
            pass
        server.signal()
        assert server.code() == 128 + signal.SIGTERM
        with pytest.raises(Exception, match=r"lost|closed|reset|remote"):
            while client.recv():
                pass


def test_models_are_read_again(tmp_path: Path) -> None:
    """Streams go on with what they began with, new ones get what is new, and what is wrong changes nothing."""
    file = tmp_path / "serve.toml"
    file.write_text('[[models]]\nname = "first"\n')
    with served(tmp_path, "--config", str(file)) as server:
        client = server.connect("&model=first")
        client.send_binary(AUDIO[: 20 * FRAME])
        json.loads(client.recv())
        file.write_text('[[models]]\nnmae = "second"\n')
        server.signal(signal.SIGHUP)
        while "models stay as they were" not in server.stderr:
            assert server.process.poll() is None
        twice = '[[models]]\nname = "second"\n'
        file.write_text(2 * twice)
        server.signal(signal.SIGHUP)
        while "the same model twice" not in server.stderr:
            assert server.process.poll() is None
        file.write_text(twice)
        server.signal(signal.SIGHUP)
        while "models changed" not in server.stderr:
            assert server.process.poll() is None
        assert said(server.connect("&model=first"))[1] == 1008
        fresh = server.connect("&model=second")
        for one, audio in ((fresh, AUDIO), (client, AUDIO[20 * FRAME :])):
            one.send_binary(audio)
            one.send_binary(b"")
            messages, code, _ = said(one)
            assert transcript(messages).strip() == "on no" and code == 1000
        assert server.stopped() == 0
        stay = [event["reason"] for event in server.events if event["event"] == "models stay as they were"]
        assert "models[0].nmae: no such setting" in stay[0] and "the same model twice" in stay[1]
        events = {event["event"]: event for event in server.events}
        assert events["models changed"]["opened"] == ["second/1"] and events["models changed"]["retired"] == ["first/1"]


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        port = str(other.getsockname()[1])
        # Before a model is looked for.
        outcome = process("serve", "--host", "localhost", "--port", port, "--model", "none.hw.pt")
        outcome.refused(f"localhost:{port}: is in use", "take another port")


def test_an_address_of_another_machine() -> None:
    process("serve", "--host", "192.0.2.1", "--port", "0", "--model", "none.hw.pt").refused("192.0.2.1")
    process("serve", "--host", "no.such.name.invalid", "--model", "none.hw.pt").refused("no.such.name.invalid")


def test_a_restart_on_the_same_port(tmp_path: Path) -> None:
    """Clients that are still connected when the server goes do not keep its port."""
    with served(tmp_path, "--drain-s", "0") as server:
        client = server.connect()
        client.send_binary(AUDIO)
        client.recv()
        port = str(server.port)
        assert server.stopped() == 0
    with served(tmp_path, "--port", port) as server:
        assert str(server.port) == port
        fresh = server.connect()
        fresh.send_binary(AUDIO)
        fresh.send_binary(b"")
        assert transcript(said(fresh)[0]).strip() == "on no"
        assert server.stopped() == 0


def test_a_killed_client_is_forgotten(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        gone, stays = server.connect(), server.connect()
        gone.send_binary(AUDIO[: 10 * FRAME])
        gone.recv()
        gone.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        gone.sock.close()  # a reset, as of a process that is killed
        while json.loads(server.get("/load")[1])["connections"] != 1:
            pass
        stays.send_binary(AUDIO)
        stays.send_binary(b"")
        assert transcript(said(stays)[0]).strip() == "on no"
        assert server.stopped() == 0
        codes = sorted(event["code"] for event in server.events if event["event"] == "stream closed")
        assert codes == [1000, 1006]


def test_the_service_manager_hears_of_start_and_stop(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.bind(path)
        link.settimeout(60)
        with served(tmp_path, NOTIFY_SOCKET=path, WATCHDOG_USEC="300000") as server:
            assert link.recv(200).startswith(b"READY=1\n")
            assert link.recv(200) == b"WATCHDOG=1"
            assert server.stopped() == 0
        told = b""
        while not told.startswith(b"STOPPING=1"):
            told = link.recv(200)


def test_a_full_disk_for_logs_stops_nothing(tmp_path: Path) -> None:
    with served(tmp_path, "--log-file", "/dev/full", "--log-level", "debug", "--log-transcripts") as server:
        for _ in range(3):
            client = server.connect()
            client.send_binary(AUDIO)
            client.send_binary(b"")
            assert transcript(said(client)[0]).strip() == "on no"
        lost = [line for line in server.get("/metrics")[1].splitlines() if line.startswith("gharial_log_lines_lost")]
        assert float(lost[0].split()[1]) > 5
        assert server.stopped() == 0
        assert len(server.stderr.splitlines()) == 1 and "No space left" in server.stderr


def test_standard_error_that_is_full_stops_nothing(tmp_path: Path) -> None:
    with served(tmp_path, stderr="/dev/full") as server:
        client = server.connect()
        client.send_binary(AUDIO)
        client.send_binary(b"")
        assert transcript(said(client)[0]).strip() == "on no"
        assert server.stopped() == 0


def test_transcripts_are_logged_where_asked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with served(tmp_path, "--log-file", str(log), "--log-transcripts") as server:
        client = server.connect()
        client.send_binary(AUDIO)
        client.send_binary(b"")
        said(client)
        assert server.stopped() == 0
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert "".join(line["text"] for line in lines if line["event"] == "final").strip() == "on no"
        assert server.stderr == "" and log.stat().st_mode & 0o007 == 0
