# SPDX-License-Identifier: Apache-2.0
"""Live transcripts for many clients at once (docs/serving.md).

- `Settings`, `ModelSettings`: all that can be configured.
- `Server`: what listens; `await start()`, `await stop()`.
- `Watcher`: told what happens, for logs and metrics.

It speaks CAIMAN-ASR's WebSocket API (`gharial.serve.protocol`). Connections are asyncio's; each model on each device
has a thread that does the recognising (`gharial.serve.worker`).

Everything is imported when it is first used: the command line looks at the settings alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gharial.serve.hub import Hub, StreamHandle
    from gharial.serve.server import Request, Response, Server, respond
    from gharial.serve.settings import ModelSettings, Settings
    from gharial.serve.watcher import Watcher

__all__ = [
    "Hub",
    "ModelSettings",
    "Request",
    "Response",
    "Server",
    "Settings",
    "StreamHandle",
    "Watcher",
    "respond",
]

_HOMES = {
    "gharial.serve.hub": ("Hub", "StreamHandle"),
    "gharial.serve.server": ("Request", "Response", "Server", "respond"),
    "gharial.serve.settings": ("ModelSettings", "Settings"),
    "gharial.serve.watcher": ("Watcher",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gharial.serve' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
