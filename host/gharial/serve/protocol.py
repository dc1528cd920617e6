# SPDX-License-Identifier: Apache-2.0
"""CAIMAN-ASR's WebSocket API: what a client asks for by its request, and the replies as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from gharial.errors import BadInput, Refused
from gharial.serve.keys import PARAMETER

if TYPE_CHECKING:
    from gharial.recognise import StreamStep, Token

STREAM_PATH = "/asr/v0.1/stream"
SUBPROTOCOL = "stream.asr.api.myrtle.ai"
LATEST = "latest"

# Close codes; the reasons begin with the API's own numbers, which no WebSocket can be closed with.
CLOSE_DONE = 1000
CLOSE_INVALID = 1008
CLOSE_FAILED = 1011
CLOSE_BUSY = 1013
CLOSE_TEXT = 1003

_INVALID = 400

SAMPLE_RATE = 16000
BYTES_A_SECOND = 2 * SAMPLE_RATE

_ENCODING = "audio/x-raw"
_AUDIO = {"format": "S16LE", "channels": "1", "rate": str(SAMPLE_RATE)}
_WANTED = ";".join([_ENCODING, *[f"{name}={value}" for name, value in _AUDIO.items()]])
_MOST_FIELDS = 32
_LONGEST_S = 1e9  # of a silence
_REASON = 123  # bytes that a close frame has for its reason
_MICROSECOND = 6  # digits of a time: 3 * 0.06 is to read 0.18


@dataclass(frozen=True)
class Ask:
    """What a client asks for.

    Attributes:
        model, version: of the model; None for the server's own.
        lang: its language, None if it names none.
        alternatives: readings in each message, at most.
        prefix, eos_mode, state_resets, silence_s, keywords: of the stream, None for what the server is set to.
    """

    model: str | None = None
    version: str = LATEST
    lang: str | None = None
    alternatives: int | None = None
    prefix: str | None = None
    eos_mode: str | None = None
    state_resets: bool | None = None
    silence_s: float | None = None
    keywords: str | None = None


def parse_ask(query: str, lenient: bool = False) -> Ask:
    """What the query of a request says; `;` and `/` may stand in it as they are.

    Args:
        query: what comes behind the `?`.
        lenient: whether parameters that there are not are passed over.

    Raises:
        BadInput: a parameter is missing, given twice, unknown or out of its range; it names it.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise BadInput("the query cannot be read", "parameters") from None
    given: dict[str, str] = {}
    for name, value in pairs:
        if name in given:
            raise BadInput("given twice", name)
        given[name] = value
    given.pop(PARAMETER, None)  # was looked at before
    _check_audio(given.pop("content_type", None))
    unknown = sorted(set(given) - set(_PARAMETERS))
    if unknown and not lenient:
        raise BadInput("no such parameter", unknown[0], None, ", ".join(["content_type", *_PARAMETERS]))
    read: dict[str, Any] = {
        _FIELDS.get(name, name): reader(name, given[name]) for name, reader in _PARAMETERS.items() if name in given
    }
    return Ask(**read)


def _check_audio(content_type: str | None) -> None:
    if content_type is None:
        raise BadInput("missing", "content_type", None, _WANTED)
    encoding, *parts = [part.strip() for part in content_type.split(";")]
    fields = dict(part.partition("=")[::2] for part in parts)
    wanted = {name: value.lower() for name, value in _AUDIO.items()}
    if encoding.lower() != _ENCODING or {name.lower(): value.lower() for name, value in fields.items()} != wanted:
        raise BadInput("not supported", "content_type", content_type, _WANTED)


def _text(name: str, value: str) -> str:
    if not value:
        raise BadInput("empty", name)
    return value


def _any(name: str, value: str) -> str:
    return value


def _count(name: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < 4 and int(value) >= 1):
        raise BadInput("no number", name, value, "1 or more")
    return int(value)


def _switch(name: str, value: str) -> bool:
    known = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
    if value.lower() not in known:
        raise BadInput("no switch", name, value, "true or false")
    return known[value.lower()]


def _seconds(name: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= _LONGEST_S:
        raise BadInput("no span of time", name, value, f"seconds, above 0, {_LONGEST_S:g} at most")
    return seconds


_PARAMETERS = {
    "model": _text,
    "version": _text,
    "lang": _text,
    "alternatives": _count,
    "prefix": _any,
    "eos_mode": _text,
    "state_resets": _switch,
    "silence": _seconds,
    "keywords": _text,
}
_FIELDS = {"silence": "silence_s"}
_OTHERS = ("content_type", "parameters")


def keywords_of(text: str) -> dict[str, float]:
    """Keywords of a parameter: a JSON object, score by keyword.

    Raises:
        BadInput: it is none, or names one twice.
    """
    expected = '{"text": boost}'
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise BadInput("no JSON", "keywords", text, expected) from None
    if not isinstance(found, dict):
        raise BadInput("no keywords", "keywords", text, expected)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadInput("one is there twice", "keywords")
    return found


def refusal(error: BadInput, reason: str | None = None) -> Refused:
    """How a request is refused that cannot be taken: its client is told what it has sent, the log is not.

    Args:
        error: what is wrong.
        reason: the text for the client, if it is not the error's own.
    """
    name = str(error.where).partition(":")[0]
    logged = f"{name}: {error.what}" if name in (*_PARAMETERS, *_OTHERS) else error.what
    return Refused(_INVALID, str(error) if reason is None else reason, logged)


def close_reason(status: int, text: str) -> str:
    """The reason of a close: status and text, as much as a close frame holds."""
    one_line = " ".join(f"{status} {text}".split())
    return one_line.encode()[:_REASON].decode(errors="ignore")


class Replies:
    """The messages of a stream, step by step.

    Args:
        step_s: seconds of an encoder step.
        provisional: whether what may still change is told; a greedy decoder has no such thing.
        compat: whether every confidence is told as 1.0.
    """

    def __init__(self, step_s: float, provisional: bool, compat: bool = False) -> None:
        self._step_s = step_s
        self._provisional = provisional
        self._compat = compat
        self._partial: tuple[Token, ...] = ()
        self._told = ""

    def of(self, step: StreamStep, last: bool = False) -> Iterator[str]:
        """The messages of a step, one at least: what became final, then what may still change.

        With a decoder that has the latter every step but the stream's last has it, empty or not: a client that counts
        them knows which frame a reply belongs to.
        """
        readings = step.readings if len(step.readings) > 1 else ()
        if step.finals:
            # Of the last step the readings are those of what became final.
            yield self._message(step.finals, False, readings if last and readings[:1] == (step.finals,) else ())
            if last or not self._provisional:
                return
        start, end = self._bounds(step.step)
        if readings and not last and (step.partial or any(readings)):
            yield self._message(step.partial, True, readings, start, end)
        elif not step.partial:
            yield _message(start, end, self._provisional and not last, [("", 1.0)])
        else:
            if step.partial is not self._partial:
                self._partial, self._told = step.partial, self._message(step.partial, True)
            yield self._told

    def _message(
        self,
        tokens: Sequence[Token],
        provisional: bool,
        readings: Sequence[Sequence[Token]] = (),
        start: float = 0.0,
        end: float = 0.0,
    ) -> str:
        """Tokens as a message, or readings the first of which they are; with the bounds given where there are none."""
        told: dict[str, float] = {}
        for reading in readings or (tokens,):
            told.setdefault("".join([token.text for token in reading]), self._confidence(reading))
        if tokens:
            start, end = tokens[0].start, tokens[-1].end
        return _message(start, end, provisional, told.items())

    def _confidence(self, tokens: Sequence[Token]) -> float:
        if self._compat or not tokens:
            return 1.0
        return round(sum([token.confidence for token in tokens]) / len(tokens), 6)

    def _bounds(self, step: int) -> tuple[float, float]:
        return round(step * self._step_s, _MICROSECOND), round((step + 1) * self._step_s, _MICROSECOND)


def _message(start: float, end: float, provisional: bool, alternatives: Iterable[tuple[str, float]]) -> str:
    told = ", ".join([f'{{"transcript": {quoted(text)}, "confidence": {mean!r}}}' for text, mean in alternatives])
    changes = "true" if provisional else "false"
    return f'{{"start": {start!r}, "end": {end!r}, "is_provisional": {changes}, "alternatives": [{told}]}}'
