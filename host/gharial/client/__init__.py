# SPDX-License-Identifier: Apache-2.0
"""Clients of a speech server: audio in, text as it becomes known (docs/clients.md).

Public names:

- `connect(url)`: one stream of audio to a server; `send`, `end`, and replies one by one.
- `Reply`, `Reading`: what a server sends.
- `Caption`: the text that a screen shows, made of replies as they come.
- `real_time(samples)`: audio in frames of 60 ms, each when somebody would have spoken it.
- `stream_url(url)`: address of a stream, for other WebSocket libraries.
"""

from gharial.client.connection import Connection, connect
from gharial.client.pace import FRAME_BYTES, FRAME_S, frames, real_time
from gharial.client.protocol import DEFAULT_URL, Caption, Reading, Reply, stream_url

__all__ = [
    "DEFAULT_URL",
    "FRAME_BYTES",
    "FRAME_S",
    "Caption",
    "Connection",
    "Reading",
    "Reply",
    "connect",
    "frames",
    "real_time",
    "stream_url",
]
