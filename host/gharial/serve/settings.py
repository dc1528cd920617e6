# SPDX-License-Identifier: Apache-2.0
"""All that a server can be told, in one place. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gharial.cli.decoding import Decoding

PORT = 3030
HOST = "localhost"
DEVICE = "emulator:u50"
"""The emulated device of a configuration with thousands of slots: the smallest one has places for two streams."""


@dataclass(frozen=True)
class ModelSettings:
    """A model that is served.

    Attributes:
        name: by which clients ask for it (`model=general`).
        version: the same (`version=1`); `latest` is the last one of a name in `Settings.models`.
        model: checkpoint or program; None for the shipped demo model.
        devices: names of the devices that it runs on, one worker each; a name may come more than once.
        decoding: decoder, its settings and what streams are told that their clients do not choose; None for beam
            search of width 4 with state resets.
        languages: what clients may name as `lang`.
    """

    name: str = "general"
    version: str = "1"
    model: str | None = None
    devices: tuple[str, ...] = (DEVICE,)
    decoding: Decoding | None = None
    languages: tuple[str, ...] = ("en",)


@dataclass(frozen=True)
class Settings:
    """A server.

    Attributes:
        host: address to listen on.
        port: port to listen on, 0 for any that is free.
        models: what is served; a client that names no model gets the first one's name.
        compat: `confidence` is 1.0, as the closed server sends it, and unknown parameters are passed over.
        batch_wait_s: longest wait for more streams to have a step ready before the device is asked.
        max_message: bytes of a client's message, at most.
        max_ahead: bytes of audio of a stream that wait for the recogniser before its socket is read no further.
        max_unread: bytes of replies that wait for a client to read them before its socket is read no further.
        unread_timeout_s: seconds after which a client that reads nothing of them is given up.
    """

    host: str = HOST
    port: int = PORT
    models: tuple[ModelSettings, ...] = field(default_factory=lambda: (ModelSettings(),))
    compat: bool = False
    batch_wait_s: float = 0.002
    max_message: int = 1 << 20
    max_ahead: int = 1 << 17
    max_unread: int = 1 << 20
    unread_timeout_s: float = 60.0
