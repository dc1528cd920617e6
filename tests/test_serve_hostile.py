# SPDX-License-Identifier: Apache-2.0
"""What a server makes of clients and operators that do not mean well, or mistype."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import pytest
from command import Run, process
from serving import AUDIO, PATIENCE_S, Running, said, serving

from gharial.cli.decoding import Decoding
from gharial.recognise import Recogniser
from gharial.serve import ModelSettings, Server, Settings, Watcher
from gharial.serve import server as servers
from gharial.serve.hub import StreamHandle
from gharial.serve.keys import Keys, new_key
from gharial.serve.operation import Operation

SECRET = "hush-hush"
_RESERVED = "192.0.2.1"  # no machine has it


class Witness(Watcher):
    """Keeps why streams were refused."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def refused(self, status: int, reason: str, peer: str) -> None:
        self.reasons.append(reason)


@pytest.fixture(scope="module")
def witness() -> Witness:
    return Witness()


@pytest.fixture(scope="module")
def running(witness: Witness) -> Iterator[Running]:
    models = (ModelSettings(decoding=Decoding("greedy", None, None)),)
    # A message of a second is paid for with a thousand.
    settings = Settings(port=0, models=models, max_rate=0.001, max_burst_s=0.0)
    with serving(Server(settings, watcher=witness)) as server:
        yield server


@pytest.mark.parametrize(
    ("query", "logged"),
    [
        (f"{AUDIO};api_key={SECRET}", "content_type: not supported"),
        (f"{AUDIO}&{SECRET}=1", "no such parameter"),
        (f"{AUDIO}&model={SECRET}", "model: no such model"),
        (f"{AUDIO}&version={SECRET}", "version: no such version"),
        (f"{AUDIO}&lang={SECRET}", "lang: not spoken"),
        (f"{AUDIO}&eos_mode={SECRET}", "eos_mode: no such mode"),
        (f"{AUDIO}&prefix={SECRET}%00", "the prefix cannot be checked"),
        (f"{AUDIO}&keywords={SECRET}", "keywords: no JSON"),
        (f"{AUDIO}&keywords=" + quote(f'{{"{SECRET}": 1e999}}'), ""),
    ],
)
def test_the_log_has_nothing_of_a_query(running: Running, witness: Witness, query: str, logged: str) -> None:
    _, code, reason = said(running.connect(query))
    assert code == 1008 and reason.startswith("400 ")
    found = witness.reasons[-1]
    assert found.startswith(logged) and SECRET not in found


def test_keywords_that_are_there_twice(running: Running) -> None:
    _, code, reason = said(running.connect(f"{AUDIO}&keywords=" + quote('{"up": 1, "up": 2}')))
    assert code == 1008 and reason == "400 keywords: one is there twice"


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e400", "2e9", ""])
def test_a_silence_out_of_range_is_named_as_it_was_asked_for(running: Running, value: str) -> None:
    assert said(running.connect(f"{AUDIO}&silence={value}"))[2].startswith("400 silence: no span of time")


def test_a_client_that_goes_while_its_audio_is_held_back_leaves_its_place(running: Running) -> None:
    """It is not called silent meanwhile, and nobody waits for the end of the pause."""
    client = running.connect()
    client.send_binary(bytes(32000))
    client.recv()
    (served,) = running.server.clients
    assert served.heard > time.monotonic() + 500.0
    client.shutdown()
    until = time.monotonic() + PATIENCE_S
    while running.server.clients:
        assert time.monotonic() < until


def test_a_stream_that_cannot_be_begun_hurts_no_other(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object, **options: object) -> None:
        raise ValueError("of this stream")

    other = running.connect()
    other.send_binary(bytes(1920))
    other.recv()
    with monkeypatch.context() as patched:
        patched.setattr(Recogniser, "stream", fails)
        assert said(running.connect())[1:] == (1011, "500 internal error: ValueError: of this stream")
    assert running.server.hub.models[0].slots[0].worker.up
    other.shutdown()


def test_codes_that_clients_close_with_are_no_endless_series(tmp_path: Path) -> None:
    operation = Operation(Settings(log_file=str(tmp_path / "log")))
    stream = SimpleNamespace(received=0, number=1, peer="", messages=0, started=0.0)
    for code in (1000, *range(3000, 5000)):
        operation.closed(cast(StreamHandle, stream), code, "")
    operation.close()
    closed = {label: times for (name, label), times in operation.meters.counted.items() if name == "closed"}
    assert closed == {"1000": 1, "3000-4999": 2000}


def addresses(monkeypatch: pytest.MonkeyPatch, *known: str) -> list[str]:
    """What is listened on for a name that stands for these addresses."""

    def found(host: Any, port: Any, *args: Any, **options: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in known]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    return asyncio.run(servers._addresses("some.name", 0))


def test_a_name_with_an_address_that_this_machine_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """As localhost in a container without IPv6."""
    assert addresses(monkeypatch, _RESERVED, "127.0.0.1") == ["127.0.0.1"]
    with pytest.raises(OSError, match=os.strerror(errno.EADDRNOTAVAIL)):
        addresses(monkeypatch, _RESERVED)


def test_a_name_that_is_none() -> None:
    process("serve", "--host", "a" * 70, "--model", "none.hw.pt").refused("cannot be listened on", "no name of a")


def test_numbers_of_too_many_digits(cli: Run, tmp_path: Path) -> None:
    cli("serve", "--check", "--max-connections", "1" + "0" * 400).refused("--max-connections: is out of range")
    for text in ("max_rate = 1" + "0" * 400, "max_connections = 1" + "0" * 5000, "model = " + "[" * 5000):
        path = tmp_path / "serve.toml"
        path.write_text(f"{text}\n")
        cli("serve", "--check", "--config", path).refused(str(path))


def test_check_looks_at_devices(cli: Run) -> None:
    cli("serve", "--check", "--device", "emulatr").refused("unknown device", "emulatr")
    cli("serve", "--check", "--device", "emulator:none").refused("none")
    assert cli("serve", "--check", "--device", "litex:/dev/ttyUSB7").code == 0  # boards are not asked


def test_a_file_of_keys_from_another_system(tmp_path: Path) -> None:
    """Lines that end as on Windows, behind a byte order mark."""
    path, (key, line) = tmp_path / "keys", new_key("desk")
    path.write_bytes(b"\xef\xbb\xbf" + f"# who may\r\n{line}\r\n".encode())
    assert Keys(str(path)).name(None, key) == "desk"
