# SPDX-License-Identifier: Apache-2.0
"""What a stream shows, as docs/decoding.md, section 7, says it: plain and slow, over whole sequences.

`hear` is given what each segment's search brought, step by step, and works the whole stream out anew for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.decoding.search import Token

BORDER = 3


@dataclass(frozen=True)
class Step:
    """What a search brought in a step: tokens that became final, and what its best hypothesis has behind all finals."""

    finals: tuple[Token, ...] = ()
    partial: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Rules:
    """A stream's options.

    Attributes:
        segment, overlap: in steps; None for one segment that never ends.
        eos: the end-of-sequence token, None if there is none.
        mode: "classic", "stream" or "terminal".
        silence: steps that end the stream, None for no end.
    """

    segment: int | None = None
    overlap: int = 0
    eos: int | None = None
    mode: str = "classic"
    silence: int | None = None


def spans(steps: int, rules: Rules) -> list[tuple[int, int, int]]:
    """For each segment of a stream of so many steps: its first step, its first own one, and the one behind its last."""
    if rules.segment is None:
        return [(0, 0, steps)] if steps else []
    found: list[tuple[int, int, int]] = []
    first = 0
    while True:
        own = first + rules.overlap if found else 0
        if own >= steps:
            return found
        found.append((first, own, min(first + rules.segment, steps)))
        first += rules.segment - rules.overlap


def hear(steps: int, segments: Sequence[Sequence[Step]], rules: Rules) -> tuple[list[Step], str | None]:
    """What the stream shows in each step, steps of tokens being the stream's, and what ended it by itself.

    Args:
        steps: of the stream.
        segments: what each span's search brought, in its own steps.
    """
    shown: list[Step] = []
    finals: list[Token] = []
    for now in range(steps):
        final, best = _sequences(now, steps, segments, rules)
        ended = None
        if rules.mode != "stream":
            ends = [place for place, token in enumerate(final) if token.id == rules.eos]
            if rules.mode == "terminal" and ends:
                ended, final, best = "eos", final[: ends[0]], final[: ends[0]]
            final, best = _without(final, rules), _without(best, rules)
        if rules.silence is not None and ended is None and best and now - best[-1].step >= rules.silence:
            ended, final = "silence", best
        shown.append(Step(tuple(final[len(finals) :]), tuple(best[len(final) :])))
        finals = final
        if ended:
            return shown, ended
    return shown, None


def _sequences(
    now: int, steps: int, segments: Sequence[Sequence[Step]], rules: Rules
) -> tuple[list[Token], list[Token]]:
    """All that is final after a step, and all that the best hypothesis has."""
    final: list[Token] = []
    best: list[Token] = []
    before: list[Token] | None = None
    for (first, own, end), brought in zip(spans(steps, rules), segments, strict=True):
        if own > now:
            break
        past = brought[: now + 1 - first]
        certain = [token for step in past for token in step.finals]
        likely = certain + list(past[-1].partial)
        if now >= end - 1:
            certain = likely
        certain, likely = _kept(certain, first, own, before), _kept(likely, first, own, before)
        best = final + likely
        final = final + certain
        before = certain
    return final, best


def _kept(tokens: Sequence[Token], first: int, own: int, before: Sequence[Token] | None) -> list[Token]:
    """A segment's tokens that are the stream's."""
    moved = [Token(token.id, token.step + first, token.confidence) for token in tokens]
    mine = [token for token in moved if token.step >= own]
    if before is None:
        return mine
    repeatable = [token.id for token in before[-BORDER:]]
    kept = []
    for token in mine[:BORDER]:
        if token.id in repeatable:
            del repeatable[: repeatable.index(token.id) + 1]
        else:
            kept.append(token)
    return kept + mine[BORDER:]


def _without(tokens: Sequence[Token], rules: Rules) -> list[Token]:
    """Tokens that are shown: none from the first end of sequence on, or all but those."""
    ends = [place for place, token in enumerate(tokens) if token.id == rules.eos]
    if rules.mode == "terminal" and ends:
        return list(tokens[: ends[0]])
    return [token for token in tokens if token.id != rules.eos]
