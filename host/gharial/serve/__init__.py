# SPDX-License-Identifier: Apache-2.0
"""Live transcripts for many clients at once (docs/serving.md).

- `Settings`, `ModelSettings`: all that can be configured.
- `Server`: what listens; `await start()`, `await stop()`.
- `Watcher`: told what happens, for logs and metrics.

It speaks CAIMAN-ASR's WebSocket API (`gharial.serve.protocol`). Connections are asyncio's; each model on each device
has a thread that does the recognising (`gharial.serve.worker`).
"""

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
