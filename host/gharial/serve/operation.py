# SPDX-License-Identifier: Apache-2.0
"""What an operator sees and decides of a server: who may connect, what is logged and counted, how it stops."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from gharial.errors import Refused
from gharial.serve.connection import BYTES_A_SECOND, Socket, peer_of
from gharial.serve.keys import PARAMETER, Keys
from gharial.serve.limits import Admission
from gharial.serve.logs import Bridge, Log
from gharial.serve.meters import Meters
from gharial.serve.metrics import CONTENT_TYPE, DeviceState, Metrics, ServerState, health, load, ready
from gharial.serve.protocol import CLOSE_FAILED
from gharial.serve.server import Request, Response, Server, respond
from gharial.serve.settings import Settings
from gharial.serve.tls import Tls
from gharial.serve.watcher import Watcher

if TYPE_CHECKING:
    from gharial.serve.hub import StreamHandle, WorkerSlot

IDLE, TOO_LONG, STOPPING, FULL = 1008, 1008, 1001, 503
_UNAUTHORISED = 401
_UNAVAILABLE = 503
_PRIVATE, _BY_CLIENT = 3000, "3000-4999"
_LAST_S = 5.0  # for streams that are ended to say what they have heard
_LOOK_S = 60.0  # between two looks at the certificate
_JSON = "application/json"


class Operation(Watcher):
    """The watcher, the gates and the pages of a server.

    Make it, make a `Server` with it as its watcher, then `attach` it.

    Args:
        settings: of the server.
        tell: called with sentences for a person at the terminal.

    Attributes:
        log, meters, keys, tls: as far as they are configured.
        draining: whether the server is about to stop.

    Raises:
        BadInput: a file of keys, a certificate or a log that cannot be used.
    """

    def __init__(self, settings: Settings, tell: Callable[[str], object] = lambda sentence: None) -> None:
        self.settings = settings
        self.draining = False
        self.meters = Meters()
        self.tls = None
        self._tell = tell
        self._server: Server | None = None
        self._began = self._looked = monotonic()
        self._door = Admission(settings.max_connections, settings.max_per_address)
        if settings.tls_certificate is not None:
            self.tls = Tls(settings.tls_certificate, settings.tls_key, self._said)
        self.keys = None if settings.api_keys is None else Keys(settings.api_keys, self._said)
        self._metrics = Metrics(self.meters, self.state)
        self.log: Log | None = Log(settings.log_file, settings.log_level, settings.log_transcripts, tell)

    def attach(self, server: Server) -> None:
        """Add gates, pages and options to a server that was not started yet."""
        self._server = server
        server.gates.append(self._gate)
        server.routes["/health"] = lambda request: _json(200, health(self.state()))
        server.routes["/ready"] = self._ready
        server.routes["/metrics"] = self._guarded(lambda: respond(200, self._metrics.text(), CONTENT_TYPE))
        server.routes["/load"] = self._guarded(lambda: _json(200, load(self.meters, self.state())))
        logger = logging.getLogger("gharial.serve.websockets")
        logger.propagate = False
        logger.handlers = [Bridge(self.event, "websocket", {"opening handshake failed": "debug"})]
        server.options |= {"logger": logger, "open_timeout": self.settings.handshake_s}
        if self.tls is not None:
            server.options |= {"ssl": self.tls.context, "ssl_handshake_timeout": self.settings.handshake_s}

    def event(self, level: str, name: str, /, **fields: Any) -> None:
        """Log something."""
        if self.log is not None:
            self.log.event(level, name, **fields)

    def close(self) -> None:
        """Write what waits to be logged."""
        if self.log is not None:
            self.log.close()

    # --- What the server tells ---------------------------------------------------------------------------------------

    def refused(self, status: int, reason: str, peer: str) -> None:
        """See `Watcher`."""
        self.meters.count("refused", str(status))
        self.event("info", "refused", status=status, reason=reason, peer=peer)

    def opened(self, stream: StreamHandle) -> None:
        """See `Watcher`."""
        self.event("info", "stream opened", stream=stream.number, peer=stream.peer, model=stream.model.name)

    def replied(self, stream: StreamHandle, messages: list[str], latencies_s: list[float]) -> None:
        """See `Watcher`."""
        self.meters.frames(latencies_s, stream.live)
        if self.settings.log_transcripts:
            for message in map(json.loads, messages):
                text = message["alternatives"][0]["transcript"]
                if text and not message["is_provisional"]:
                    self.event("info", "final", stream=stream.number, start=message["start"], text=text)

    def moved(self, stream: StreamHandle, before: str, after: str) -> None:
        """See `Watcher`."""
        self.meters.count("moved")
        self.event("warning", "stream moved", stream=stream.number, before=before, after=after)

    def closed(self, stream: StreamHandle, code: int, reason: str) -> None:
        """See `Watcher`."""
        # Clients may close with any code of theirs: all of these are one, or there would be thousands of series.
        self.meters.count("closed", str(code) if code < _PRIVATE else _BY_CLIENT)
        if code == CLOSE_FAILED:
            self.meters.count("lost")
        self.meters.audio(stream.received / BYTES_A_SECOND)
        self.event(
            "info",
            "stream closed",
            stream=stream.number,
            peer=stream.peer,
            code=code,
            reason=reason or None,
            audio_s=round(stream.received / BYTES_A_SECOND, 3),
            messages=stream.messages,
            seconds=round(perf_counter() - stream.started, 3),
        )

    def ran(self, worker: str, streams: int, steps: int, seconds: float, queued: int) -> None:
        """See `Watcher`."""
        if streams:
            self.meters.batch(worker, streams, seconds, queued)

    def fault(self, worker: str, reason: str) -> None:
        """See `Watcher`."""
        self.meters.fault(worker)
        self.event("error", "device failed", device=worker, reason=" ".join(reason.split()))

    # --- What it asks ------------------------------------------------------------------------------------------------

    def _gate(self, socket: Socket, request: Request) -> Response | Refused | None:
        name = None
        if self.keys is not None and (name := self._whose(request)) is None:
            self.refused(_UNAUTHORISED, "no key, or none that is known", peer_of(socket))
            return _unauthorised()
        if self.draining:
            return Refused(FULL, "the server stops")
        address = peer_of(socket).rpartition(":")[0]
        reason = self._door.enter(address)
        if reason is not None:
            return Refused(FULL, f"too many connections: {reason}")
        socket.leave = partial(self._door.leave, address)
        if name is not None:
            self.event("debug", "key", name=name, peer=peer_of(socket))
        return None

    def _whose(self, request: Request) -> str | None:
        assert self.keys is not None
        query: str | None = None
        with suppress(ValueError):
            query = dict(parse_qsl(request.path.partition("?")[2], max_num_fields=100)).get(PARAMETER)
        headers = request.headers.get_all("Authorization")
        return self.keys.name(headers[0] if len(headers) == 1 else None, query)

    def _guarded(self, page: Callable[[], Response]) -> Callable[[Request], Response]:
        return lambda request: _unauthorised() if self.keys is not None and self._whose(request) is None else page()

    def _ready(self, request: Request) -> Response:
        good, told = ready(self.state())
        return _json(200 if good else _UNAVAILABLE, told)

    def state(self) -> ServerState:
        """The server as it is now."""
        found: dict[str, DeviceState] = {}
        if self._server is not None:
            swaps = self._server.hub.swaps
            for model in (*swaps.retired, *swaps.models):
                for slot in model.slots:
                    device = _device(slot, model.settings.name, model.settings.version)
                    # Of a model that was replaced by one of the same name and version both are told as one.
                    streams = device.streams + (found[device.device].streams if device.device in found else 0)
                    queue = self.meters.queued(device.device)
                    found[device.device] = replace(device, streams=streams, queue=queue)
        devices = list(found.values())
        places = sum(device.capacity for device in devices if device.up)
        return ServerState(
            connections=sum(device.streams for device in devices),
            capacity=min(places, self._door.most or places),
            draining=self.draining,
            devices=devices,
            uptime_s=monotonic() - self._began,
            log_lines_lost=0 if self.log is None else self.log.lost,
            certificate_ends=None if self.tls is None else self.tls.ends,
        )

    # --- What has to be looked at now and then -----------------------------------------------------------------------

    def look(self) -> None:
        """End streams that are idle or too old, and see whether the certificate was renewed; about once a second."""
        assert self._server is not None
        now, settings = monotonic(), self.settings
        for client in list(self._server.clients):
            if settings.idle_s and now - client.heard > settings.idle_s:
                client.finish(IDLE, f"408 no audio for {settings.idle_s:g} s")
            elif settings.max_duration_s and now - client.began > settings.max_duration_s:
                client.finish(TOO_LONG, f"408 longer than {settings.max_duration_s:g} s")
        if self.tls is not None and now - self._looked > _LOOK_S:
            self._looked = now
            self.tls.refresh()

    async def drain(self) -> bool:
        """Take no more streams and wait for those that run; those that take too long are ended. False if any was."""
        assert self._server is not None
        server, self.draining = self._server, True
        self.event("info", "stopping", streams=len(server.clients), seconds=self.settings.drain_s)
        if await self._empty(self.settings.drain_s):
            return True
        for client in list(server.clients):
            client.finish(STOPPING, "503 the server stops")
        await self._empty(_LAST_S)
        return False

    def abort(self) -> None:
        """Drop all connections as they are."""
        assert self._server is not None
        for client in list(self._server.clients):
            client.abort()

    async def _empty(self, seconds: float) -> bool:
        """Wait until no stream is left; False after so many seconds."""
        assert self._server is not None
        until = monotonic() + seconds
        while self._server.clients and monotonic() < until:
            await asyncio.sleep(0.02)
            self.look()
        return not self._server.clients

    def _said(self, sentence: str) -> None:
        """Something about keys or the certificate: for the log; before there is one, for the terminal."""
        if getattr(self, "log", None) is None:
            self._tell(sentence)
        else:
            self.event("warning", "configuration", message=sentence)


def _device(slot: WorkerSlot, model: str, version: str) -> DeviceState:
    up = slot.worker.up and not slot.closing
    return DeviceState(slot.worker.name, model, version, up, len(slot.streams), slot.places)


def _json(status: int, told: object) -> Response:
    return respond(status, json.dumps(told) + "\n", _JSON)


def _unauthorised() -> Response:
    response = respond(_UNAUTHORISED, "a key is needed: Authorization: Bearer KEY\n")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response
