# SPDX-License-Identifier: Apache-2.0
"""All that a server can be told, in one place. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gharial.errors import BadInput
from gharial.serve.configuration import checked, setting, settings_of
from gharial.serve.logs import LEVELS

if TYPE_CHECKING:
    from gharial.cli.decoding import Decoding

PORT = 3030
HOST = "localhost"
DEVICE = "emulator:u50"
"""The emulated device of a configuration with thousands of slots: the smallest one has places for two streams."""

_NETWORK = "network"
_SECURITY = "who may connect"
_LIMITS = "limits"
_LOGS = "logs"
_DAY = 86400.0


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
    """A server. What each setting is for says its help; docs/operating.md says more.

    Attributes:
        models: what is served; a client that names no model gets the first one's name.
        (the others): by the same names in a file, in the environment and on the command line.

    Raises:
        BadInput: one is out of its range, or says nothing without another; names it.
    """

    host: str = setting(HOST, "address to listen on; 0.0.0.0 for all", group=_NETWORK, metavar="H")
    port: int = setting(PORT, "port to listen on, 0 for any free one", least=0, most=65535, group=_NETWORK, metavar="N")
    compat: bool = setting(
        False, "confidence 1.0, as CAIMAN-ASR's server sends it; unknown parameters are passed over", group=_NETWORK
    )
    batch_wait_s: float = setting(
        0.005, "longest wait for more streams to have a step ready", least=0.0, most=1.0, group=_NETWORK, metavar="S"
    )
    drain_s: float = setting(
        30.0,
        "seconds that streams may go on when the server is to stop",
        least=0.0,
        most=_DAY,
        group=_NETWORK,
        metavar="S",
    )

    tls_certificate: str | None = setting(None, "certificate and its chain, PEM", group=_SECURITY, metavar="F")
    tls_key: str | None = setting(None, "its private key, PEM; default: in the same file", group=_SECURITY, metavar="F")
    api_keys: str | None = setting(
        None, "file of hashed API keys; without it anybody may connect", group=_SECURITY, metavar="F"
    )

    max_connections: int = setting(
        0, "streams at a time; 0: as many as the devices take", least=0, group=_LIMITS, metavar="N"
    )
    max_per_address: int = setting(
        0, "streams at a time from one address; 0: any number", least=0, group=_LIMITS, metavar="N"
    )
    max_message: int = setting(1 << 20, "bytes of a message", least=1, most=1 << 30, group=_LIMITS, metavar="N")
    max_rate: float = setting(
        4.0,
        "times real time that audio is read at after a burst; 0: any",
        least=0.0,
        group=_LIMITS,
        metavar="X",
    )
    max_burst_s: float = setting(
        60.0, "seconds of audio that may come in a burst", least=0.0, most=_DAY, group=_LIMITS, metavar="S"
    )
    handshake_s: float = setting(
        10.0, "seconds that a client has for its request", least=0.1, most=_DAY, group=_LIMITS, metavar="S"
    )
    idle_s: float = setting(
        60.0, "seconds without audio that end a stream; 0: none", least=0.0, most=_DAY, group=_LIMITS, metavar="S"
    )
    max_duration_s: float = setting(
        4 * 3600.0, "seconds that a stream may last; 0: any", least=0.0, group=_LIMITS, metavar="S"
    )
    max_ahead: int = setting(
        1 << 17, "bytes of a stream's audio that wait for the device", least=1920, group=_LIMITS, metavar="N"
    )
    max_unread: int = setting(
        1 << 20, "bytes of replies that wait for a client", least=1024, group=_LIMITS, metavar="N"
    )
    unread_timeout_s: float = setting(
        60.0, "seconds without reading them that end a stream", least=0.1, most=_DAY, group=_LIMITS, metavar="S"
    )

    log_file: str | None = setting(None, "file to add to; default: standard error", group=_LOGS, metavar="F")
    log_level: str = setting("info", "the least that is logged", choices=LEVELS, group=_LOGS)
    log_transcripts: bool = setting(False, "log what was said, too", group=_LOGS)

    models: tuple[ModelSettings, ...] = field(default_factory=lambda: (ModelSettings(),))

    def __post_init__(self) -> None:
        for rule in settings_of(type(self)):
            value = getattr(self, rule.name)
            if value is not None or rule.default is not None:
                checked(rule, value, rule.name)
        if self.tls_key is not None and self.tls_certificate is None:
            raise BadInput("there is no certificate for it", "tls_key", self.tls_key, "tls_certificate as well")
        if not self.models:
            raise BadInput("there is none to serve", "models", "none", "one at least")
        known: set[tuple[str, str]] = set()
        for model in self.models:
            if (model.name, model.version) in known:
                found = f"{model.name}, version {model.version}"
                raise BadInput("the same model twice", "models", found, "names or versions that differ")
            known.add((model.name, model.version))
            if not model.devices:
                raise BadInput("has no device", f"models: {model.name}", "none", "one at least")
