# SPDX-License-Identifier: Apache-2.0
"""The server: a socket, WebSocket connections, and HTTP requests by path."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from socket import (
    AF_INET6,
    AI_PASSIVE,
    IPPROTO_IPV6,
    IPV6_V6ONLY,
    SO_REUSEADDR,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
)
from typing import Any

from websockets.asyncio.server import Server as SocketServer
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as listen
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from gharial.errors import BadInput, GharialError, Refused
from gharial.serve import page, protocol
from gharial.serve.connection import Client, Socket
from gharial.serve.hub import Hub
from gharial.serve.settings import ModelSettings, Settings
from gharial.serve.swap import Changes
from gharial.serve.watcher import Watcher

__all__ = ["Gate", "Handler", "Request", "Response", "Server", "respond"]

_QUEUE = 4  # messages of a client that were received and not looked at
_CLOSE_S = 5.0  # for a client to end the connection once both have said that it is over

Handler = Callable[[Request], Response | Awaitable[Response]]
"""Answers an HTTP request."""

Gate = Callable[[Socket, Request], Response | Refused | None]
"""Looks at a request for a stream, before it is accepted: a response, or a close, in place of it; None to let it in."""


def respond(status: int, body: str | bytes = b"", content_type: str = "text/plain; charset=utf-8") -> Response:
    """An HTTP response; its headers may be added to."""
    data = body.encode() if isinstance(body, str) else body
    headers = Headers(
        [("Connection", "close"), ("Content-Length", str(len(data))), ("Content-Type", content_type)],
    )
    return Response(status, HTTPStatus(status).phrase, headers, data)


class Server:
    """A server of live transcripts.

        server = Server(Settings(port=0))
        await server.start()
        ... server.port ...
        await server.stop()

    Args:
        settings: all that it is told.
        watcher: told what happens.
        note: called with remarks about models that are opened.

    Attributes:
        hub: models and streams.
        routes: what answers an HTTP request, by path: the page, and others that may be added at any time.
        gates: what may refuse a request for a stream, in order.
        clients: connections with a stream.
        options: more arguments for `websockets.asyncio.server.serve` (`ssl`, `ping_timeout`, ...).
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        watcher: Watcher | None = None,
        note: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.settings = settings or Settings()
        self.watcher = watcher or Watcher()
        self.hub = Hub(self.settings, self.watcher)
        self.routes: dict[str, Handler] = dict(page.routes())
        self.gates: list[Gate] = []
        self.clients: set[Client] = set()
        self.options: dict[str, Any] = {}
        self._note = note
        self._server: SocketServer | None = None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Open the models, then listen.

        Raises:
            BadInput: models, devices or the address cannot be used.
            GharialError: a device failed, or the port is taken.
        """
        settings = self.settings
        try:
            # asyncio takes several, which the library's annotation does not say.
            addresses: Any = await _addresses(settings.host, settings.port)
        except (OSError, UnicodeError) as error:
            raise _cannot_listen(settings, error) from error
        await self.hub.start(self._note)
        try:
            self._server = await listen(
                self._serve,
                addresses,
                settings.port,
                **{
                    "create_connection": Socket,
                    "process_request": self._request,
                    "select_subprotocol": _subprotocol,
                    "compression": None,  # costs more than it saves: audio and short texts
                    "max_size": settings.max_message,
                    "max_queue": _QUEUE,
                    # A client that sends first and reads later answers no ping meanwhile.
                    "ping_timeout": None,
                    "close_timeout": _CLOSE_S,
                    "server_header": "gharial",
                    **self.options,
                },
            )
        except OSError as error:
            await self.hub.stop()
            raise _cannot_listen(settings, error) from error
        except BaseException:
            await self.hub.stop()
            raise

    async def reload(self, models: Sequence[ModelSettings]) -> Changes:
        """Serve these models from now on; streams that run end on what they began with.

        Raises:
            BadInput: one cannot be used; nothing has changed then.
            GharialError: a device failed; nothing has changed then.
        """
        return await self.hub.swaps.update(models, self._note)

    async def stop(self) -> None:
        """Close all connections and devices."""
        if self._server is not None:
            self._server.close(reason="the server stops")
            await self._server.wait_closed()
            self._server = None
        await self.hub.stop()

    async def _request(self, socket: ServerConnection, request: Request) -> Response | None:
        path, _, query = request.path.partition("?")
        if path != protocol.STREAM_PATH:
            handler = self.routes.get(path)
            if handler is None:
                return respond(HTTPStatus.NOT_FOUND, f"no such page: {path}\n")
            if request.method not in ("GET", "HEAD"):
                return respond(HTTPStatus.METHOD_NOT_ALLOWED, "only GET\n")
            response = handler(request)
            return response if isinstance(response, Response) else await response
        if [value.lower() for value in request.headers.get_all("Upgrade")] != ["websocket"]:
            return respond(HTTPStatus.BAD_REQUEST, "this is a WebSocket: connect with a WebSocket client\n")
        ask: protocol.Ask | Refused
        assert isinstance(socket, Socket)
        for gate in self.gates:
            verdict = gate(socket, request)
            if isinstance(verdict, Response):
                return verdict
            if verdict is not None:
                ask = verdict
                break
        else:
            try:
                ask = protocol.parse_ask(query, self.settings.compat)
            except BadInput as error:
                ask = protocol.refusal(error)
        socket.ask = ask  # type: ignore[attr-defined]
        return None

    async def _serve(self, socket: ServerConnection) -> None:
        assert isinstance(socket, Socket)
        client = Client(socket, self.hub)
        self.clients.add(client)
        try:
            await client.serve(socket.ask)  # type: ignore[attr-defined]
        finally:
            self.clients.discard(client)


def _subprotocol(_socket: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    ours = Subprotocol(protocol.SUBPROTOCOL)
    return ours if ours in offered else None


async def _addresses(host: str, port: int) -> list[str]:
    """What to listen on: tried before models are opened, which may take minutes.

    A name may stand for addresses that this machine has not (`localhost` for ::1 without IPv6): any other is enough.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM, flags=AI_PASSIVE)
    good, problem = list[str](), OSError(errno.EADDRNOTAVAIL, "there is no such address")
    for family, kind, number, _, address in dict.fromkeys(found):
        try:
            with socket(family, kind, number) as trial:
                if family == AF_INET6:
                    trial.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)  # as asyncio has it
                trial.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
                trial.bind(address)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
            problem = error
        else:
            good.append(str(address[0]))
    if not good:
        raise problem
    return good


def _cannot_listen(settings: Settings, error: OSError | UnicodeError) -> GharialError:
    where = f"{settings.host}:{settings.port}"
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return BadInput(
            "is in use", where, "another server", "a free port", "end the other server, or take another port"
        )
    reason = (error.strerror or error) if isinstance(error, OSError) else "no name of a machine"
    return BadInput("cannot be listened on", where, reason, "an address of this machine, a free port")
