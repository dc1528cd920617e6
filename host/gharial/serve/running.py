# SPDX-License-Identifier: Apache-2.0
"""A server from start to stop: signals, the service manager, and what is done every second."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict

from gharial.errors import GharialError
from gharial.serve.logs import Bridge
from gharial.serve.notify import notify, watchdog_s
from gharial.serve.operation import Operation
from gharial.serve.server import Server
from gharial.serve.settings import ModelSettings

STOPPING = (signal.SIGTERM, signal.SIGINT)
_TICK_S = 1.0
_BY_SIGNAL = 128


Models = Callable[[], Sequence[ModelSettings]]


async def run(server: Server, operation: Operation, listening: Callable[[], object], models: Models) -> int:
    """Serve until a signal comes, then let the streams finish; a second signal stops at once.

    SIGHUP has the models read again, and served from then on; at a terminal it stops as the others do.

    Args:
        server: not started yet, `operation` attached.
        operation: the server's.
        listening: called when the server listens.
        models: reads again which models are to be served.

    Returns:
        The exit code: 0, or 128 and the second signal's number.

    Raises:
        BadInput: models, devices or the address cannot be used.
        GharialError: a device failed.
    """
    loop = asyncio.get_running_loop()
    signals: asyncio.Queue[int] = asyncio.Queue()
    _allow_sockets()
    # asyncio's own messages would go to standard error; that a client went while it was written to is told already.
    quiet = {"socket.send() raised exception.": "debug"}
    logging.getLogger("asyncio").handlers = [Bridge(operation.event, "asyncio", quiet)]
    logging.getLogger("asyncio").propagate = False
    await server.start()
    for number in STOPPING:
        loop.add_signal_handler(number, signals.put_nowait, number)
    again = asyncio.Event()
    loop.add_signal_handler(signal.SIGHUP, *((signals.put_nowait, signal.SIGHUP) if _terminal() else (again.set,)))
    reloading = loop.create_task(_reload(server, operation, models, again))
    ticking = loop.create_task(_tick(operation))
    try:
        operation.event("info", "listening", port=server.port, tls=operation.tls is not None)
        listening()
        notify("READY=1", f"STATUS=listening on port {server.port}")
        first = await signals.get()
        notify("STOPPING=1", "STATUS=letting streams finish")
        draining = loop.create_task(operation.drain())
        second = loop.create_task(signals.get())
        await asyncio.wait({draining, second}, return_when=asyncio.FIRST_COMPLETED)
        second.cancel()
        if draining.done():
            operation.event("info", "stopped", signal=signal.Signals(first).name, all_finished=draining.result())
            return 0
        draining.cancel()
        operation.event("warning", "stopped at once", streams=len(server.clients))
        operation.abort()
        return _BY_SIGNAL + second.result()
    finally:
        for task in (ticking, reloading):
            task.cancel()
        await asyncio.gather(ticking, reloading, return_exceptions=True)
        await server.stop()
        operation.close()


async def _reload(server: Server, operation: Operation, models: Models, again: asyncio.Event) -> None:
    """Serve other models whenever that is asked for; if they cannot be, those that are served stay."""
    while True:
        await again.wait()
        again.clear()
        try:
            changes = await server.reload(models())
        except GharialError as error:
            operation.event("error", "models stay as they were", reason=" ".join(str(error).split()))
        else:
            operation.event("info", "models changed", **asdict(changes))


def _terminal() -> bool:
    """Whether a hangup means that whoever started the server has gone."""
    return sys.stderr is not None and sys.stderr.isatty()


def _allow_sockets() -> None:
    """As many open files as the system lets us: each client is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _tick(operation: Operation) -> None:
    limit = watchdog_s()
    while True:
        await asyncio.sleep(_TICK_S if limit is None else min(_TICK_S, limit / 3))
        operation.look()
        if limit is not None:
            notify("WATCHDOG=1")
