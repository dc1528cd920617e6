# SPDX-License-Identifier: Apache-2.0
"""One stream of audio to a speech server."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as open_socket

from gharial.client.protocol import DEFAULT_URL, Reply, stream_url
from gharial.errors import BadInput, ServerError

OPEN_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0

_NORMAL = (1000,)
_LATER = frozenset({408, 429, 500, 502, 503, 504})
_BY_CLOSE = {1001: 503, 1008: 400, 1009: 413, 1011: 500, 1012: 503, 1013: 503}
"""Statuses that say the same as the codes of a Close."""

_STATUS = re.compile(r"\s*(?:\w+ )?([45]\d\d)\b[:\s]*")
_REMEDIES = {
    400: "see docs/serving.md for what a stream may ask for",
    401: "give the server's key: --key KEY, or GHARIAL_KEY in the environment",
    403: "this key may not do that: ask whoever runs the server",
    404: "check the address: a stream is at /asr/v0.1/stream",
    429: "wait, or ask whoever runs the server for a higher limit",
    503: "try again later",
}


class Connection:
    """A stream to a server; made by `connect`. Send audio, end it, and take replies until the server closes.

    `send` and `receive` may be used by one thread each.

    Attributes:
        url: address of the stream.
    """

    def __init__(self, socket: ClientConnection, url: str) -> None:
        self.url = url
        self._socket = socket
        self._ended = False

    def send(self, samples: bytes | bytearray | memoryview) -> None:
        """Send audio: s16le, mono, 16 kHz, cut anywhere. Nothing is sent for no bytes.

        Raises:
            ServerError: the stream was closed.
        """
        if self._ended:
            raise RuntimeError("the audio of this stream was ended: open another")
        if len(samples):
            self._send(bytes(samples))

    def end(self) -> None:
        """Say that no more audio comes; the replies go on until the server closes. May be called twice.

        Raises:
            ServerError: the stream was closed.
        """
        if not self._ended:
            self._ended = True
            self._send(b"")

    def receive(self, timeout: float | None = None) -> Reply | None:
        """The next reply; None when the server has closed the stream after its end.

        Args:
            timeout: seconds to wait; None for as long as it takes.

        Raises:
            ServerError: the server ended the stream before it was complete, or sent what is no reply.
            TimeoutError: no reply came in time.
        """
        try:
            return Reply.parse(self._socket.recv(timeout))
        except ConnectionClosed as closed:
            error = self._ended_early(closed)
            if error is None:
                return None
            raise error from closed

    def __iter__(self) -> Iterator[Reply]:
        while (reply := self.receive()) is not None:
            yield reply

    def close(self) -> None:
        """Let go of the stream, complete or not; may be called twice."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, data: bytes) -> None:
        try:
            self._socket.send(data)
        except ConnectionClosed as closed:
            raise self._ended_early(closed) or ServerError("the server has ended the stream", self.url) from closed

    def _ended_early(self, closed: ConnectionClosed) -> ServerError | None:
        """What a Close says; None for that of a stream that is complete (or that the server says is: silence, EOS)."""
        if closed.rcvd is None:
            return ServerError("the connection was lost", self.url, again=True, remedy="the text may be incomplete")
        if closed.rcvd.code in _NORMAL and not _STATUS.match(closed.rcvd.reason):
            return None
        return refusal(_BY_CLOSE.get(closed.rcvd.code, 500), closed.rcvd.reason, self.url)


def refusal(code: int, reason: str, url: str) -> ServerError:
    """An error for a server's status and the reason that it gives; a status in front of the reason counts."""
    found = _STATUS.match(reason)
    if found:
        code, reason = int(found[1]), reason[found.end() :]
    what = " ".join(reason.split())[:200] or "the server gave no reason"
    return ServerError(f"{what} ({code})", url, code, code in _LATER, _REMEDIES.get(code))


def connect(
    url: str = DEFAULT_URL,
    *,
    key: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    certificate: str | Path | None = None,
    timeout: float = OPEN_TIMEOUT_S,
) -> Connection:
    """Open a stream.

    Args:
        url: of the server, as for `stream_url`.
        key: the server's API key, where it asks for one.
        parameters: of the stream (model, version, alternatives, ...), as for `stream_url`.
        certificate: file of certificates (PEM) that the server's is to be signed by; None for the system's.
        timeout: seconds that opening may take.

    Raises:
        BadInput: an address that is none, or a file of certificates that cannot be used.
        ServerError: nobody answers there, or the server refuses the stream; says why.
    """
    address = stream_url(url, parameters)
    shown = address.split("?")[0]
    context = _trust(address, certificate)
    try:
        socket = open_socket(
            address,
            ssl=context,
            additional_headers=None if key is None else {"Authorization": f"Bearer {key}"},
            open_timeout=timeout,
            close_timeout=CLOSE_TIMEOUT_S,
            compression=None,  # sound does not get smaller by it, and replies are short
            max_queue=None,  # replies are taken in at once, so that a slow reader never stops the audio
            legacy=True,  # which, by its name's leave, gives the connection itself
        )
    except InvalidStatus as refused:
        response = refused.response
        reason = (response.body or b"").decode("utf-8", "replace").split("\n")[0] or response.reason_phrase
        raise refusal(response.status_code, reason, shown) from None
    except ssl.SSLError as error:
        remedy = "give the certificate that signed it: --certificate FILE"
        raise ServerError(f"TLS failed: {error.reason or error}", shown, remedy=remedy) from None
    except (InvalidURI, ValueError) as error:
        raise BadInput("this is no address of a server", "--url", url, str(error)) from None
    except TimeoutError:
        raise ServerError(f"no answer within {timeout:g} s", shown, again=True) from None
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = "start one: gharial serve"
        raise ServerError(f"no server answers there: {reason}", shown, again=True, remedy=remedy) from None
    except (InvalidHandshake, EOFError) as error:
        raise ServerError(f"what answers there is no speech server: {error}", shown) from None
    return Connection(socket, shown)


def _trust(address: str, certificate: str | Path | None) -> ssl.SSLContext | None:
    if not address.startswith("wss:"):
        return None
    try:
        return ssl.create_default_context(cafile=certificate)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        raise BadInput("no certificates can be read", f"--certificate {certificate}", reason, "a PEM file") from None
