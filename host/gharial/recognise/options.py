# SPDX-License-Identifier: Apache-2.0
"""What a stream may be told, each its own (docs/decoding.md, section 7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gharial.decoding import Keywords
from gharial.errors import BadInput

MAX_ALTERNATIVES = 32
MAX_SECONDS = 1e9
"""Thirty years: longer than any stream, and few enough to be counted in steps."""


class EosMode(StrEnum):
    """What becomes of an end-of-sequence token that was chosen."""

    CLASSIC = "classic"
    STREAM = "stream"
    TERMINAL = "terminal"


@dataclass(frozen=True)
class StateResets:
    """A network that begins anew now and then, for long audio.

    Attributes:
        segment_s: seconds that it hears from one beginning.
        overlap_s: seconds at its beginning that the segment before hears too, half of `segment_s` at most.

    Raises:
        BadInput: a length is out of its range; names it.
    """

    segment_s: float = 15.0
    overlap_s: float = 3.0

    def __post_init__(self) -> None:
        _seconds("segment_s", self.segment_s, above=0.0)
        _seconds("overlap_s", self.overlap_s)
        if 2 * self.overlap_s > self.segment_s:
            raise BadInput(
                "segments overlap by more than half",
                "overlap_s",
                self.overlap_s,
                f"{self.segment_s / 2:g} at most, half of segment_s",
                "make segments longer, or the overlap shorter",
            )

    def steps(self, step_s: float) -> tuple[int, int]:
        """Segment and overlap in encoder steps of that many seconds.

        Raises:
            BadInput: a segment is shorter than a step.
        """
        segment = round(self.segment_s / step_s)
        if segment < 1:
            raise BadInput("a segment is shorter than a step", "segment_s", self.segment_s, f"{step_s:g} or more")
        return segment, min(round(self.overlap_s / step_s), segment // 2)


@dataclass(frozen=True)
class StreamOptions:
    """Options of one stream.

    Attributes:
        prefix: what the model is told before the audio, as in "<pnc><lang_en>"; None for its default prefix, if it has
            one; "" for no prefix.
        keywords: boosts, ready or by keyword; beam search alone.
        eos_mode: an end-of-sequence token is left out, shown, or ends the stream.
        state_resets: None for none.
        silence_s: seconds without a token that end the stream, above 0; None for no end.
        alternatives: readings that the transcript is to have, 1 to 32; with 1 it has none beside its text.

    Raises:
        BadInput: an option is out of its range; names it.
    """

    prefix: str | None = None
    keywords: Keywords | Mapping[str, float] | None = None
    eos_mode: EosMode = EosMode.CLASSIC
    state_resets: StateResets | None = None
    silence_s: float | None = None
    alternatives: int = 1

    def __post_init__(self) -> None:
        if self.prefix is not None and not isinstance(self.prefix, str):
            raise BadInput("prefix is no text", "prefix", self.prefix, 'a string as "<pnc><lang_en>"')
        if not isinstance(self.keywords, Keywords | Mapping | None):
            raise BadInput("keywords are no boosts by text", "keywords", self.keywords, '{"text": score}')
        if not isinstance(self.eos_mode, str) or self.eos_mode not in list(EosMode):
            raise BadInput("no such mode", "eos_mode", self.eos_mode, ", ".join(EosMode))
        object.__setattr__(self, "eos_mode", EosMode(self.eos_mode))
        if not isinstance(self.state_resets, StateResets | None):
            raise BadInput("no description of state resets", "state_resets", self.state_resets, "StateResets or None")
        if self.silence_s is not None:
            _seconds("silence_s", self.silence_s, above=0.0)
        number = self.alternatives
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_ALTERNATIVES:
            expected = f"a whole number from 1 to {MAX_ALTERNATIVES}"
            raise BadInput("option is out of its range", "alternatives", number, expected)

    @property
    def places(self) -> int:
        """Streams without state resets that could run in its place (docs/decoding.md, section 7)."""
        return 1 if self.state_resets is None else 2

    def silence_steps(self, step_s: float) -> int | None:
        """Encoder steps of silence that end the stream, None for no end."""
        if self.silence_s is None:
            return None
        # Rounded as times are, so that 0.3 s are 5 steps of 0.06 s.
        return max(1, math.ceil(round(self.silence_s / step_s, 6)))


def _seconds(name: str, value: object, above: float | None = None) -> None:
    wanted = f"seconds, {'0 or more' if above is None else 'above 0'}, {MAX_SECONDS:g} at most"
    # Compared first: a whole number of any length is an int, but not always a float.
    if isinstance(value, bool) or not isinstance(value, int | float) or not -math.inf < value < math.inf:
        raise BadInput("option is no span of time", name, value, wanted)
    if value < 0 or (above is not None and value <= above) or value > MAX_SECONDS:
        raise BadInput("option is out of its range", name, value, wanted)
