# SPDX-License-Identifier: Apache-2.0
"""What recognition gives: tokens, words, transcripts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Token:
    """One token of a transcript.

    Attributes:
        id: its number in the model's vocabulary.
        text: what it adds to the text so far, with a space in front where it begins a word; may be empty.
        step: encoder step that emitted it, from 0.
        start: seconds from the start of the audio to the step's start, less the head offset.
        end: seconds to the step's end, less the tail offset.
        confidence: probability that the model gave it, 0 to 1.
    """

    id: int
    text: str
    step: int
    start: float
    end: float
    confidence: float


@dataclass(frozen=True)
class Word:
    """One word of a transcript.

    Attributes:
        text: the word, without spaces.
        start: start of its first token in seconds.
        end: end of its last token in seconds.
        confidence: product of its tokens' confidences.
    """

    text: str
    start: float
    end: float
    confidence: float


@dataclass(frozen=True)
class TranscriptAlternative:
    """A reading of a whole stream.

    Attributes:
        text: words with one space between.
        tokens: tokens in order, those that were final before the end in front.
        score: natural logarithm, of the search (docs/decoding.md, section 7).
        confidence: geometric mean of the tokens' confidences, 1 for none.
    """

    text: str
    tokens: tuple[Token, ...]
    score: float
    confidence: float

    @classmethod
    def of(cls, tokens: Sequence[Token], score: float) -> TranscriptAlternative:
        """The reading that has these tokens."""
        return cls(joined(tokens), tuple(tokens), score, _mean_confidence(tokens))


@dataclass(frozen=True)
class Transcript:
    """A finished stream or recording.

    Attributes:
        text: words with one space between.
        tokens: tokens in order; their texts joined and stripped are `text`.
        audio_s: seconds of audio.
        compute_s: seconds that features and device took; of rounds shared with other streams, an equal share.
        device: name of the device.
        decoder: name of the decoder.
        cycles: device clocks of the commands that worked on it, None where the device is not clocked.
        notes: remarks about the audio (resampled, mixed, cut short), and what ended the stream by itself.
        ended_by: "eos" or "silence" if the stream ended by itself, else None.
        alternatives: the best readings, the first of which is this transcript; none if they were not asked for.
    """

    text: str
    tokens: tuple[Token, ...]
    audio_s: float
    compute_s: float
    device: str
    decoder: str
    cycles: int | None = None
    notes: tuple[str, ...] = ()
    ended_by: str | None = None
    alternatives: tuple[TranscriptAlternative, ...] = ()

    @property
    def words(self) -> list[Word]:
        """The words with their times."""
        return words_of(self.tokens)

    def as_json(self, file: str) -> dict[str, Any]:
        """The object that `gharial transcribe --json` prints for a file of that name."""
        facts: dict[str, Any] = {
            "file": file,
            "text": self.text,
            "tokens": [token_json(token) for token in self.tokens],
            "audio_s": round(self.audio_s, 6),
            "compute_s": round(self.compute_s, 6),
            "device": self.device,
            "decoder": self.decoder,
            "cycles": self.cycles,
        }
        if self.ended_by is not None:
            facts["ended_by"] = self.ended_by
        if self.alternatives:
            facts["alternatives"] = [
                {
                    "text": one.text,
                    "score": round(one.score, 6),
                    "confidence": round(one.confidence, 6),
                    "tokens": [token_json(token) for token in one.tokens],
                }
                for one in self.alternatives
            ]
        return facts


def token_json(token: Token) -> dict[str, Any]:
    """A token as `gharial transcribe --json` prints it."""
    return {
        "text": token.text,
        "start": token.start,
        "end": token.end,
        "confidence": round(token.confidence, 6),
    }


def distinct(readings: Iterable[TranscriptAlternative]) -> tuple[TranscriptAlternative, ...]:
    """Those that do not read like one in front of them."""
    found: dict[str, TranscriptAlternative] = {}
    for reading in readings:
        found.setdefault(reading.text, reading)
    return tuple(found.values())


def _mean_confidence(tokens: Sequence[Token]) -> float:
    confidences = [token.confidence for token in tokens]
    if not confidences:
        return 1.0
    if min(confidences) <= 0.0:
        return 0.0
    return math.exp(math.fsum(map(math.log, confidences)) / len(confidences))


def joined(tokens: Iterable[Token]) -> str:
    """Text of a stream's tokens from its start."""
    return "".join([token.text for token in tokens]).strip()


def words_of(tokens: Iterable[Token]) -> list[Word]:
    """Tokens grouped into words. A token whose text holds a space inside belongs to the words on both sides."""
    words: list[Word] = []
    parts: list[tuple[str, Token]] = []

    def close() -> None:
        if parts:
            text = "".join([part for part, _ in parts])
            confidence = math.prod(token.confidence for _, token in parts)
            words.append(Word(text, parts[0][1].start, parts[-1][1].end, confidence))
            parts.clear()

    for token in tokens:
        for index, part in enumerate(token.text.split(" ")):
            if index > 0:
                close()
            if part:
                parts.append((part, token))
    close()
    return words
