# SPDX-License-Identifier: Apache-2.0
"""The plain beam search on a device's own results, one entry at a time: what the engine is held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import sim.decoding as plain

from gharial.decoding import DecoderOptions, EosStrategy, asked_for
from gharial.driver import DecodeEntry, Driver, EncodeEntry
from gharial.features import FeatureStream, quantise_features
from gharial.isa.commands import Kind, Mode
from gharial.ngram import NgramModel
from gharial.recognise import Recogniser
from gharial.recognise.decoders import search_model

Said = tuple[int, int, float]
"""Token, step, confidence."""


def vectors_of(recogniser: Recogniser, samples: np.ndarray) -> np.ndarray:
    """int8 feature vectors of a whole recording."""
    stream = FeatureStream(recogniser.front_end)
    found = np.concatenate([stream.push(samples), stream.finish()])
    return quantise_features(found, recogniser.feature_bits)


@dataclass
class Spoken:
    """What the plain search found.

    Attributes:
        finals, partials: of each step.
        alternatives: (mean, tokens) of all hypotheses at the end, tokens behind the finals.
    """

    finals: list[list[Said]] = field(default_factory=list)
    partials: list[list[Said]] = field(default_factory=list)
    alternatives: list[tuple[float, list[Said]]] = field(default_factory=list)

    @property
    def tokens(self) -> list[Said]:
        """All of them in the end."""
        return [token for finals in self.finals for token in finals] + self.alternatives[0][1]


class _OnDevice:
    """`sim.decoding.Scoring` by a driver: a prediction slot for each state, used round and round."""

    def __init__(self, driver: Driver, options: DecoderOptions, k: int, named: tuple[int, ...], mode: Mode) -> None:
        self._driver, self._options, self._k, self._named, self._mode = driver, options, k, named, mode
        self._slots = driver.prediction_slots.count
        self._slot = -1
        self._known: dict[tuple[int, ...], int] = {}
        self.prefix: tuple[int, ...] = ()

    def start(self) -> tuple[int, ...]:
        return self.prefix

    def advance(self, state: tuple[int, ...], token: int) -> tuple[int, ...]:
        return (*state, token)

    def _slot_of(self, state: tuple[int, ...]) -> int:
        """A slot with that state; a state that was pushed out is made anew."""
        if state not in self._known:
            source = self._slot_of(state[:-1]) if state else 0
            self._slot = (self._slot + 1) % self._slots
            if self._slot == source and state:
                self._slot = (self._slot + 1) % self._slots
            self._known = {other: slot for other, slot in self._known.items() if slot != self._slot}
            kind, token = (Kind.TOKEN, state[-1]) if state else (Kind.START, 0)
            self._driver.decode([DecodeEntry(0, 0, kind, source, self._slot, token, joint=False)])
            self._known[state] = self._slot
        return self._known[state]

    def scores(self, step: int, state: tuple[int, ...]) -> plain.Scores:
        slot = self._slot_of(state)
        ticket = self._driver.decode(
            [DecodeEntry(0, step & 1, Kind.NONE, slot, slot)],
            k=self._k,
            mode=self._mode,
            named=self._named,
            temperature=self._options.inverse_temperature,
        )
        found = ticket.result()
        log_p, named = found.log_probabilities[0].tolist(), found.named_log_probabilities[0].tolist()
        classes = found.classes[0].tolist()
        if self._mode == Mode.ALL:
            order = np.argsort(-found.logits[0].astype(int), kind="stable")[: self._k].tolist()
            classes, log_p = [classes[at] for at in order], [log_p[at] for at in order]
        scores = dict(zip(classes, log_p, strict=True))
        return plain.Scores(scores | dict(zip(self._named, named, strict=True)))


def plain_search(
    recogniser: Recogniser,
    vectors: np.ndarray,
    options: DecoderOptions,
    *,
    prefix: tuple[int, ...] = (),
    boosts: Mapping[str, float] | None = None,
    ngram: NgramModel | None = None,
    mode: Mode = Mode.TOP_K,
) -> Spoken:
    """Search int8 vectors (n, F) on the driver of a greedy recogniser without streams."""
    driver, program = recogniser.driver, recogniser.program
    model = search_model(program, recogniser.vocabulary)
    k, named = asked_for(model, options, mode)
    scoring = _OnDevice(driver, options, k, named, mode)
    scoring.prefix = prefix
    eos = None
    if options.eos != EosStrategy.NONE:
        assert model.eos is not None
        eos = plain.Eos(model.eos, plain.EosStrategy(options.eos), options.eos_alpha, options.eos_beta)
    search = plain.BeamSearch(
        scoring,
        model.blank,
        model.pieces,
        plain.BeamOptions(
            options.width,
            options.max_symbols,
            options.max_expansions,
            options.topk_threshold,
            options.score_threshold,
            options.final_limit_s,
            options.blank_penalty,
            options.ngram_scale or 0.0,
            eos,
            model.user_tokens,
            options.merge_lone_marks,
        ),
        ngram,
        plain.Keywords(boosts) if boosts else None,
    )
    stack, spoken = program.header["vectors"], Spoken()
    for step, first in enumerate(range(0, len(vectors), stack)):
        driver.encode([EncodeEntry(0, vectors[first : first + stack], step & 1, step == 0)])
        spoken.finals.append(_said(search.step()))
        spoken.partials.append(_said(search.best()[0].tokens[search.finals :]))
    spoken.alternatives = [(one.mean, _said(one.tokens[search.finals :])) for one in search.best()]
    return spoken


def _said(tokens: list[plain.Token] | tuple[plain.Token, ...]) -> list[Said]:
    return [(token.id, token.step, min(1.0, token.confidence)) for token in tokens]
