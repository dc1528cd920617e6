# SPDX-License-Identifier: Apache-2.0
"""Addresses and replies of a speech server: CAIMAN-ASR's WebSocket interface, as docs/serving.md tells it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from gharial.errors import BadInput, ServerError

DEFAULT_URL = "ws://localhost:3030"
PATH = "/asr/v0.1/stream"
SUBPROTOCOL = "stream.asr.api.myrtle.ai"

_CONTENT_TYPE = "audio/x-raw;format=S16LE;channels=1;rate=16000"
_PORT = 3030
_SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}
_UNESCAPED = "/;=,:<>"  # as clients of this interface have always sent them
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of what was said.

    Attributes:
        transcript: its text, a space in front of each word, the first one too.
        confidence: how sure the model is of it, 0 to 1.
    """

    transcript: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Reply:
    """A message of the server: what was said since the last text that became final.

    Attributes:
        start, end: seconds from the start of the stream between which it was said.
        provisional: whether it may still change. Text that is not provisional is final: joined, it is the transcript.
        alternatives: readings, the best first; at least one.
    """

    start: float
    end: float
    provisional: bool
    alternatives: tuple[Reading, ...]

    @property
    def text(self) -> str:
        """The best reading's text; empty where nothing was said."""
        return self.alternatives[0].transcript

    @classmethod
    def parse(cls, message: str | bytes) -> Reply:
        """A reply out of a text message.

        Raises:
            ServerError: the message is no such reply.
        """
        try:
            fields = json.loads(message)
            readings = tuple(
                Reading(str(one["transcript"]), float(one["confidence"])) for one in fields["alternatives"]
            )
            reply = cls(float(fields["start"]), float(fields["end"]), fields["is_provisional"] is True, readings)
            if not readings:
                raise ValueError("no alternative")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            shown = message if isinstance(message, str) else message.decode("utf-8", "replace")
            raise ServerError(
                f"a reply that is none of this interface: {shown[:_SHOWN]!r}",
                remedy="is the address that of a speech server?",
            ) from error
        return reply


class Caption:
    """Text as a screen shows it: what is final, and behind it what may still change.

    Attributes:
        final: joined text of all final replies, a space in front of it where the server sent one.
        partial: text of the last provisional reply; it continues `final`.
    """

    def __init__(self) -> None:
        self.final = ""
        self.partial = ""

    @property
    def text(self) -> str:
        """All that is shown: words with one space between."""
        return (self.final + self.partial).strip()

    def take(self, reply: Reply) -> str:
        """Bring the caption up to date; the text that became final with this reply."""
        if reply.provisional:
            self.partial = reply.text
            return ""
        self.final += reply.text
        self.partial = ""  # what of it is not final comes again, with the next reply
        return reply.text


def stream_url(url: str = DEFAULT_URL, parameters: Mapping[str, Any] | None = None) -> str:
    """Address of a stream.

    Args:
        url: of the server: `ws://`, `wss://`, `http://` or `https://`, or a host alone; the port is 3030 where a host
            alone names none. A path, where there is one, is kept.
        parameters: put behind the type of audio (model, version, lang, alternatives, and what else docs/serving.md
            names); those that are None are left out.

    Raises:
        BadInput: an address that is none.
    """
    bare = "://" not in url
    try:
        parts = urlsplit(f"ws://{url}" if bare else url)
        port = parts.port
    except ValueError as error:
        raise BadInput("this is no address of a server", "--url", url, DEFAULT_URL) from error
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.username is not None:
        raise BadInput("this is no address of a server", "--url", url, f"{DEFAULT_URL}, or wss://HOST:PORT")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port is None and bare:
        port = _PORT
    place = host if port is None else f"{host}:{port}"
    path = parts.path if parts.path.strip("/") else PATH
    query = [parts.query] if parts.query else []
    if "content_type=" not in parts.query:
        query.append(f"content_type={_CONTENT_TYPE}")
    for name, value in (parameters or {}).items():
        if value is not None:
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            query.append(f"{quote(name)}={quote(shown, safe=_UNESCAPED)}")
    return f"{_SCHEMES[parts.scheme]}://{place}{path}?{'&'.join(query)}"
