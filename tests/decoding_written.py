# SPDX-License-Identifier: Apache-2.0
"""The fast search on networks that are written down: probabilities by step and tokens so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.decoding_device import Answers, FakeDevice, History

from gharial.decoding import BeamSearch, DecoderOptions, Hypothesis, Keywords, SearchModel, Token

Row = Mapping[int, float]
"""Probabilities by class; -1 is blank. They need not sum to one."""

BITS = 8
FREE = DecoderOptions(width=8, temperature=1.0, topk_threshold=20.0, score_threshold=-1, final_limit_s=-1)
"""Nothing of what is written down is left out but by the width."""


@dataclass
class Written:
    """One stream of a fast search over a table.

    Args:
        pieces: texts of the tokens; blank is the class behind the last.
        rows: by (step, tokens so far), or by step alone for whatever was said; else blank for certain.
        options: settings.
        keywords, ngram: what scores tokens besides.

    Attributes:
        finals: tokens that became final, a list for each step.
        asked: (step, tokens) that were evaluated, in order.
    """

    pieces: Sequence[str]
    rows: Mapping[Any, Row]
    options: DecoderOptions = FREE
    keywords: Keywords | None = None
    ngram: Any = None
    finals: list[list[Token]] = field(default_factory=list)
    asked: list[tuple[int, History]] = field(default_factory=list)

    def __post_init__(self) -> None:
        blank = len(self.pieces)
        slots = range(2 * (self.options.expansions + self.options.width))
        model = SearchModel([*self.pieces, ""], blank, BITS)
        self.search = BeamSearch(model, self.options, streams=1, slots=slots, ngram=self.ngram)

        def logits(_: int, step: int, history: History) -> np.ndarray:
            row = self.rows.get((step, history), self.rows.get(step, {-1: 1.0}))
            found = np.full(blank + 1, -32768)
            for token, p in row.items():
                found[token % (blank + 1)] = max(-32768, round(math.log(p) * 2**BITS))
            return found

        self.answers = Answers(logits, self.search.k, self.search.named, self.search.temperature, BITS)
        self.device = FakeDevice(self.answers, slots)
        self.open()

    def open(self) -> None:
        """Begin anew."""
        self.search.open(0, self.keywords)
        self.finals, self.asked = [], []

    def step(self) -> list[Token]:
        """The next step; its finals."""
        at = len(self.finals)
        self.device.encoded[0, 0] = 0, at
        entries = self.search.begin(0, [0], [0], [0])
        outcomes = self.search.outcomes(0)
        while len(entries):
            results = self.device.decode(entries)
            slots = entries.copy().view("<u2").reshape(-1, 8)[:, 3].tolist()
            self.asked += [(at, self.device.states[slot]) for slot in slots]
            entries = self.search.feed(0, results)
            outcomes += self.search.outcomes(0)
        (outcome,) = outcomes
        if outcome.error is not None:
            raise outcome.error
        self.finals.append(list(outcome.finals))
        return self.finals[-1]

    def run(self, steps: int) -> Written:
        """So many steps."""
        for _ in range(steps):
            self.step()
        return self

    def tokens(self, one: Hypothesis | None = None) -> list[Token]:
        """All of a hypothesis, the best one as a rule."""
        return [*(t for some in self.finals for t in some), *(one or self.search.best(0)[0]).tokens]

    def heard(self) -> dict[tuple[int, ...], float]:
        """Score of each hypothesis by its tokens, the best first; without those that nothing written down leads to."""
        found = {tuple(t.id for t in self.tokens(one)): one.score for one in self.search.best(0, 33)}
        return {tokens: score for tokens, score in found.items() if score > -60}

    @property
    def text(self) -> str:
        """The best hypothesis', with word marks."""
        return "".join(self.pieces[token.id] for token in self.tokens())
