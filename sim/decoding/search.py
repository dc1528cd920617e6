# SPDX-License-Identifier: Apache-2.0
"""Time-synchronous beam search with adaptive pruning (docs/decoding.md, sections 2 to 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sim.decoding.eos import Eos, log_add
from sim.decoding.keywords import WORD_MARK, Keywords, Threads

STEP_S = 0.06
ROUNDING_S = 1e-6  # times are whole steps but for their rounding, and so is a limit such as 0.3


@dataclass(frozen=True)
class Scores:
    """What one joint evaluation says.

    Attributes:
        log_probs: natural-log probability at the search's temperature by class: the classes of the largest logits in
            falling order, the lower class first where two are equal, then blank and the end-of-sequence token if they
            are not among these.
    """

    log_probs: dict[int, float]


class Scoring(Protocol):
    """The network, or a device: prediction states are whatever it makes of them."""

    def start(self) -> Any:
        """The prediction state behind the start of the sequence."""

    def advance(self, state: Any, token: int) -> Any:
        """The prediction state behind a token."""

    def scores(self, step: int, state: Any) -> Scores:
        """The joint of an encoder step and a prediction state."""


class Ngram(Protocol):
    """A language model over pieces."""

    def begin(self) -> Any:
        """The state of the sentence's begin."""

    def score(self, state: Any, token: int) -> tuple[float, Any]:
        """ln p of a token, not scaled, and the state behind it."""


@dataclass(frozen=True)
class BeamOptions:
    """Settings, as docs/decoding.md, section 1, names them; a negative threshold or limit is none.

    Attributes:
        max_expansions: hypotheses that a step expands at most; None: 4 width + max_symbols.
        merge_lone_marks: a lone word mark at the start counts as no text (the public decoder's rule).
    """

    width: int = 4
    max_symbols: int = 8
    max_expansions: int | None = None
    topk_threshold: float = 1.5
    score_threshold: float = 0.4
    final_limit_s: float = 1.25
    blank_penalty: float = 0.0
    ngram_scale: float = 0.0
    eos: Eos | None = None
    user_tokens: frozenset[int] = frozenset()
    merge_lone_marks: bool = False

    @property
    def expansions(self) -> int:
        """The limit."""
        return 4 * self.width + self.max_symbols if self.max_expansions is None else self.max_expansions


@dataclass(frozen=True)
class Token:
    """A token of a hypothesis: id, encoder step, probability when it was chosen."""

    id: int
    step: int
    confidence: float


@dataclass(frozen=True)
class Hypothesis:
    """One.

    Attributes:
        score: natural log.
        tokens: since the start of the stream.
        text: that decides whether two are the same.
        state: of the prediction network.
        symbols: tokens of this step.
        ngram: state of the n-gram.
        threads: of the keywords.
    """

    score: float
    tokens: tuple[Token, ...]
    text: str
    state: Any
    symbols: int
    ngram: Any
    threads: Threads

    @property
    def mean(self) -> float:
        """Score by length."""
        return self.score / (len(self.tokens) + 1)


class BeamSearch:
    """One stream.

    Args:
        scoring: the network.
        blank: class of blank.
        pieces: text of each token, with word marks.
        options: settings.
        ngram, keywords: what scores tokens besides the network.
    """

    def __init__(
        self,
        scoring: Scoring,
        blank: int,
        pieces: Sequence[str],
        options: BeamOptions | None = None,
        ngram: Ngram | None = None,
        keywords: Keywords | None = None,
    ) -> None:
        self.options = options or BeamOptions()
        self._scoring, self._blank, self._pieces = scoring, blank, pieces
        self._ngram, self._keywords = ngram, keywords
        begin = ngram.begin() if ngram is not None else None
        self.kept = [Hypothesis(0.0, (), "", scoring.start(), 0, begin, Threads())]
        self.finals = 0  # tokens that are final
        self.clock = 0.0  # seconds: since when a final has been due
        self.steps = 0

    def step(self) -> list[Token]:
        """The next encoder step; the tokens that are final with it."""
        options = self.options
        active, kept = [replace(one, symbols=0) for one in self.kept], list[Hypothesis]()
        expanded = 0
        while active and expanded < options.expansions:
            expanded += 1
            best = max(active, key=lambda one: one.score)  # the first of equal ones
            active.remove(best)
            for token, log_prob in self._candidates(best):
                if token == self._blank:
                    _put(kept, replace(best, score=best.score + log_prob), better_stays=False)
                else:
                    _put(active, self._extended(best, token, log_prob), better_stays=True)
            bar = max((one.score for one in active), default=-math.inf)
            if active and sum(one.score > bar for one in kept) >= options.width:
                break
        kept = sorted(kept, key=lambda one: -one.score)[: options.width]
        if options.score_threshold >= 0:
            least = max(one.mean for one in kept) - options.score_threshold
            kept = [one for one in kept if one.mean >= least]
        self.kept = kept
        self.steps += 1
        return self._finals()

    def finish(self) -> list[Token]:
        """The tokens of the best hypothesis that were not final."""
        return list(self.best()[0].tokens[self.finals :])

    def best(self) -> list[Hypothesis]:
        """All, the best first."""
        return sorted(self.kept, key=lambda one: -one.mean)

    def _candidates(self, one: Hypothesis) -> list[tuple[int, float]]:
        """Classes that a hypothesis goes on with, and their log-probabilities."""
        options, blank = self.options, self._blank
        log_probs = self._scoring.scores(self.steps, one.state).log_probs
        if options.blank_penalty:
            log_probs = penalised(log_probs, blank, options.blank_penalty)
        if options.eos is not None:
            log_probs = options.eos.applied(log_probs, blank)
        if one.symbols >= options.max_symbols:
            return [(blank, log_probs[blank])]
        best = sorted(log_probs.items(), key=lambda item: (-item[1], item[0]))[: options.width]
        if options.topk_threshold >= 0:
            best = [item for item in best if item[1] >= best[0][1] - options.topk_threshold]
        best = [item for item in best if item[1] > -math.inf]
        return best if blank in dict(best) else [*best, (blank, log_probs[blank])]

    def _extended(self, one: Hypothesis, token: int, log_prob: float) -> Hypothesis:
        """A hypothesis with one token more."""
        score, ngram, threads = one.score + log_prob, one.ngram, one.threads
        if self._ngram is not None and token not in self.options.user_tokens:
            log_p, ngram = self._ngram.score(one.ngram, token)
            score += self.options.ngram_scale * log_p
        if self._keywords is not None:
            delta, threads = self._keywords.advance(one.threads, self._pieces[token])
            score += delta
        tokens = (*one.tokens, Token(token, self.steps, math.exp(log_prob)))
        text = one.text
        for character in self._pieces[token]:
            behind_mark = text.endswith(WORD_MARK) or (not text and self.options.merge_lone_marks)
            if character != WORD_MARK or not behind_mark:
                text += character
        state = self._scoring.advance(one.state, token)
        return Hypothesis(score, tokens, text, state, one.symbols + 1, ngram, threads)

    def _finals(self) -> list[Token]:
        """The tokens that have become final; hypotheses that stand in the way for too long are dropped."""
        now, limit = STEP_S * (self.steps - 1), self.options.final_limit_s
        common = _common(self.kept)
        while common <= self.finals and len(self.kept) > 1 and limit >= 0 and now - self.clock > limit + ROUNDING_S:
            self.kept = self.best()[:-1]
            common = _common(self.kept)
        new = list(self.kept[0].tokens[self.finals : common])
        self.finals = common
        first = [one.tokens[common].step for one in self.kept if len(one.tokens) > common]
        if len(self.kept) == 1 or (new and not first):
            self.clock = now
        elif new:
            self.clock = STEP_S * min(first)
        return new


def _put(those: list[Hypothesis], one: Hypothesis, better_stays: bool) -> None:
    """Add a hypothesis, or merge it with the one of the same text."""
    for at, other in enumerate(those):
        if other.text == one.text:
            stays = one if better_stays and one.score > other.score else other
            those[at] = replace(stays, score=log_add(other.score, one.score))
            return
    those.append(one)


def _common(those: Sequence[Hypothesis]) -> int:
    """Length of the tokens that all begin with."""
    shortest = min(len(one.tokens) for one in those)
    for at in range(shortest):
        if len({one.tokens[at].id for one in those}) > 1:
            return at
    return shortest


def penalised(log_probs: dict[int, float], blank: int, penalty: float) -> dict[int, float]:
    """Log-probabilities where blank's logit, divided by the temperature, is less by `penalty`."""
    # The others' sum is 1 - p(blank), 0 at least; it stays, and blank becomes e^-penalty of what it was.
    rest = math.log1p(math.expm1(-penalty) * math.exp(min(log_probs[blank], 0.0)))
    return {name: value - rest - (penalty if name == blank else 0.0) for name, value in log_probs.items()}
