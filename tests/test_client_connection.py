# SPDX-License-Identifier: Apache-2.0
"""A client's connection to a server: keys, TLS, what ends a stream, and the documentation's example."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import MISSING, certificate
from command import Run
from operating import operated
from recordings import SHORT, samples
from serving import Running

from gharial.client import Caption, connect
from gharial.errors import ServerError
from gharial.serve.keys import new_key

ROOT = Path(__file__).resolve().parent.parent
SOUND = samples(SHORT).tobytes()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with operated() as server:
        yield server


def said(url: str, **options: object) -> str:
    caption = Caption()
    with connect(url, **options) as stream:  # type: ignore[arg-type]
        stream.send(SOUND)
        stream.send(b"")  # nothing, and not the end
        stream.end()
        stream.end()
        for reply in stream:
            caption.take(reply)
    return caption.text


def test_a_stream(running: Running) -> None:
    assert said(f"localhost:{running.server.port}") == "on no"


def test_a_key(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, line = new_key("one")
    (tmp_path / "keys").write_text(line + "\n")
    with operated(api_keys=str(tmp_path / "keys")) as server:
        url = f"localhost:{server.server.port}"
        assert said(url, key=key) == "on no"
        for wrong in (None, "wrong"):
            with pytest.raises(ServerError, match="401") as raised:
                connect(url, key=wrong)
            assert raised.value.code == 401 and not raised.value.again
        cli("listen", "--url", url, SHORT).refused("(401)", "--key")
        monkeypatch.setenv("GHARIAL_KEY", key)
        assert cli("listen", "--url", url, "--seconds", "0.06", SHORT).code == 0


@pytest.mark.skipif(MISSING, reason="needs openssl to make certificates")
def test_tls(cli: Run, tmp_path: Path) -> None:
    signed, key = certificate(tmp_path)
    with operated(tls_certificate=signed, tls_key=key) as server:
        url = f"wss://localhost:{server.server.port}"
        assert said(url, certificate=signed) == "on no"
        cli("listen", "--url", url, SHORT).refused("TLS", "--certificate", code=1)
        with pytest.raises(ServerError):
            connect(f"ws://localhost:{server.server.port}", timeout=5)


def test_a_stream_that_the_server_ends_by_itself_is_complete(running: Running) -> None:
    with connect(f"localhost:{running.server.port}", parameters={"silence": 0.3}) as stream:
        for at in range(0, len(SOUND), 1920):
            try:
                stream.send(SOUND[at : at + 1920])
            except ServerError:
                break
        else:
            stream.send(bytes(64000))
        replies = list(stream)
    assert replies and any(reply.text for reply in replies)


def test_what_is_asked_wrongly(running: Running) -> None:
    with connect(f"localhost:{running.server.port}", parameters={"silence": "x"}) as stream:
        with pytest.raises(ServerError, match="silence") as raised:
            stream.receive(60)
        assert raised.value.code == 400 and raised.value.exit_code == 2


def test_no_reply_in_time_and_no_audio_behind_the_end(running: Running) -> None:
    with connect(f"localhost:{running.server.port}") as stream:
        with pytest.raises(TimeoutError):
            stream.receive(0.01)
        stream.end()
        with pytest.raises(RuntimeError, match="ended"):
            stream.send(b"12")
        assert stream.receive(60) is None


def test_what_is_no_speech_server() -> None:
    import socket
    import threading

    with socket.create_server(("localhost", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(ServerError, match="no speech server"):
            connect(f"localhost:{listener.getsockname()[1]}", timeout=30)


def test_the_documentation(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: object) -> None:
    """The example of docs/clients.md, its address exchanged."""
    page = (ROOT / "docs/clients.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert "ws://localhost:3030" in code
    shutil.copy(SHORT, tmp_path / "talk.wav")
    monkeypatch.chdir(tmp_path)
    exec(code.replace(":3030", f":{running.server.port}"), {})
    assert isinstance(capsys, pytest.CaptureFixture) and capsys.readouterr().out == "on no\n"
