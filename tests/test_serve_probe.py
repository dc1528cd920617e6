# SPDX-License-Identifier: Apache-2.0
"""`gharial serve --ready`: what whoever starts containers is told of a server that runs."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from command import Run


@contextmanager
def answering(*answer: bytes) -> Iterator[int]:
    """A port of this machine where the next connection's request is answered so, then closed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            link, _ = listening.accept()
            with link:
                link.recv(1 << 16)
                link.sendall(b"".join(answer))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            thread.join(60)
            assert not thread.is_alive()


def page(line: str, **told: str) -> bytes:
    body = json.dumps(told).encode()
    return f"HTTP/1.1 {line}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_ready(cli: Run, host: str) -> None:
    with answering(page("200 OK", status="ready")) as port:
        outcome = cli("serve", "--ready", "--host", host, "--port", port)
    assert (outcome.code, outcome.out, outcome.err) == (0, "ready\n", "")


def test_not_ready(cli: Run) -> None:
    with answering(page("503 Service Unavailable", status="not ready", reason="the server stops")) as port:
        cli("serve", "--ready", "--host", "127.0.0.1", "--port", port).refused("not ready: the server stops", code=1)


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-x\r\n", page("503 Busy"), page("404 Not Found", reason="")])
def test_something_else_listens_there(cli: Run, answer: bytes) -> None:
    with answering(answer) as port:
        cli("serve", "--ready", "--host", "127.0.0.1", "--port", port).refused(f"http://127.0.0.1:{port}/ready", code=1)


def test_nobody_listens_there(cli: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    cli("serve", "--ready", "--host", "127.0.0.1", "--port", port).refused("no answer", code=1)


def test_a_proxy_is_not_asked(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with answering(page("200 OK", status="ready")) as port:
        assert cli("serve", "--ready", "--host", "127.0.0.1", "--port", port).code == 0
