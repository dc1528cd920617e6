# SPDX-License-Identifier: Apache-2.0
"""What is shown of a stream's tokens, and what ends a stream by itself (docs/decoding.md, section 7)."""

from __future__ import annotations

from dataclasses import replace

from gharial.recognise.options import EosMode
from gharial.recognise.segments import Heard
from gharial.recognise.session import Emitted

EOS = "eos"
SILENCE = "silence"


class Endings:
    """The end-of-sequence token and silence, step by step.

    Args:
        eos: the end-of-sequence token, None if the model has none.
        mode: what becomes of it.
        silence: steps without a token that end the stream, None for no end.

    Attributes:
        reason: what has ended the stream: `EOS`, `SILENCE`, or None as long as nothing has.
    """

    def __init__(self, eos: int | None, mode: EosMode, silence: int | None) -> None:
        self._eos = None if mode is EosMode.STREAM else eos
        self._terminal = mode is EosMode.TERMINAL
        self._silence = silence
        self._last: int | None = None  # step of the last token that is final and shown
        self.reason: str | None = None

    def apply(self, heard: Heard) -> Heard:
        """What is shown of a step. Where `reason` is set by it, nothing comes after."""
        if self._eos is not None:
            heard = self._shown(heard, self._eos)
        if self._silence is not None and self.reason is None:
            heard = self._silenced(heard, self._silence)
        return heard

    def _shown(self, heard: Heard, eos: int) -> Heard:
        finals, final_end = self._cut(heard.finals, eos)
        if final_end:  # every reading goes on behind it, and nothing there counts
            self.reason = EOS
            readings = tuple([replace(reading, tokens=()) for reading in heard.readings])
            return Heard(heard.step, finals, (), (), readings)
        rest, rest_end = self._cut(heard.rest, eos)
        if rest_end:
            self.reason = EOS
        readings = tuple([replace(reading, tokens=self._cut(reading.tokens, eos)[0]) for reading in heard.readings])
        return Heard(heard.step, finals, rest, self._cut(heard.partial, eos)[0], readings)

    def _cut(self, tokens: tuple[Emitted, ...], eos: int) -> tuple[tuple[Emitted, ...], bool]:
        """Tokens that are shown, and whether the first end-of-sequence token ends them."""
        places = [place for place, token in enumerate(tokens) if token.token == eos]
        if not places:
            return tokens, False
        if self._terminal:
            return tokens[: places[0]], True
        return tuple([token for token in tokens if token.token != eos]), False

    def _silenced(self, heard: Heard, silence: int) -> Heard:
        final = heard.rest or heard.finals
        if final:
            self._last = final[-1].step
        last = heard.partial[-1].step if heard.partial else self._last
        if last is None or heard.step - last < silence:
            return heard
        self.reason = SILENCE
        return Heard(heard.step, heard.finals, heard.rest + heard.partial, (), heard.readings)
