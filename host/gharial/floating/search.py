# SPDX-License-Identifier: Apache-2.0
"""The beam search over the logits of a network in float: what the search over a device's results is measured against.

The search is the one that serves devices (`gharial.decoding`), and works on their bytes. So the float network stands
behind it as a device would: it keeps a prediction state in each slot, answers DECODE entries, and rounds its logits to
int16, of a unit so small (2^-10 as a rule) that it decides between classes that are equal as good as.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gharial.decoding import BeamSearch, DecoderOptions, Keywords, SearchModel, Token
from gharial.decoding.search import NgramScorer
from gharial.floating.path import Decoded
from gharial.isa.commands import MAX_NAMED, UNIT_TEMPERATURE, Kind

LOGIT_BITS = 10
_LSE_UNITS = 65536.0
_MAX_ENTRIES = 64


class StepwiseNetwork(Protocol):
    """A network, step by step (gharial.floating.yardstick.TorchRnnt is one)."""

    def encode(self, features: np.ndarray) -> np.ndarray:
        """(T, J) of (T2, F) feature vectors."""

    def predict(self, token: int | None, state: Any) -> tuple[Any, Any]:
        """Output of the prediction network and its new state; token None starts a sequence."""

    def logits(self, encoded: np.ndarray, predicted: Any) -> np.ndarray:
        """(V,) of a row of `encode` and an output of `predict`."""


class FloatSearch:
    """Beam search with a float network, one recording after the other.

    Args:
        network: the network.
        model: what the search must know of it; its `logit_bits` set the unit that logits are rounded to.
        options: settings of the search.
        ngram: an n-gram over the pieces, or None.
        keywords: those boosted, or None.
        prefix: tokens that the prediction network hears before everything else.

    Raises:
        BadInput: options that do not fit the model.
    """

    def __init__(
        self,
        network: StepwiseNetwork,
        model: SearchModel,
        options: DecoderOptions,
        *,
        ngram: NgramScorer | None = None,
        keywords: Keywords | None = None,
        prefix: Sequence[int] = (),
    ) -> None:
        self._network = network
        self._keywords, self._prefix = keywords, tuple(prefix)
        # What a step can hold at most (docs/decoding.md, section 8).
        slots = range(2 * options.expansions + options.width)
        self._search = BeamSearch(model, options, streams=1, slots=slots, max_entries=_MAX_ENTRIES, ngram=ngram)
        self._unit = 2.0**model.logit_bits
        self._temperature = self._search.temperature * 2.0**-model.logit_bits / UNIT_TEMPERATURE
        self._slots: dict[int, tuple[Any, Any]] = {}

    def decode(self, features: np.ndarray) -> Decoded:
        """The best hypothesis of a recording, (T2, F) normalised feature vectors."""
        return self.decode_encoded(self._network.encode(features))

    def decode_encoded(self, encoded: np.ndarray) -> Decoded:
        """The same, of the encoder's output (T, J)."""
        search = self._search
        search.open(0, self._keywords, self._prefix)
        self._slots.clear()
        found: list[Token] = []
        for row in encoded:
            entries = search.begin(0, [0], [0], [0])
            while len(entries):
                entries = search.feed(0, self._results(entries, row))
                for outcome in search.outcomes(0):
                    if outcome.error is not None:
                        raise outcome.error
                    found += outcome.finals
        found += search.best(0)[0].tokens
        return Decoded([t.id for t in found], [t.step for t in found], [t.confidence for t in found])

    def _results(self, entries: np.ndarray, row: np.ndarray) -> bytes:
        """What a device would answer to a DECODE command (docs/isa.md, section 5)."""
        answers = []
        for first, slots, token, _ in entries.copy().view("<u4").reshape(-1, 4).tolist():
            kind, source, destination, joint = Kind(first >> 21 & 3), slots & 0xFFFF, slots >> 16, not first >> 23 & 1
            if kind == Kind.START:
                self._slots[destination] = self._network.predict(None, None)
            elif kind == Kind.TOKEN:
                self._slots[destination] = self._network.predict(token, self._slots[source][1])
            answers.append(self._answer(row, self._slots[destination][0]) if joint else bytes(self._search.stride))
        return b"".join(answers)

    def _answer(self, row: np.ndarray, predicted: Any) -> bytes:
        logits = self._network.logits(row, predicted).astype(np.float64)
        units = np.clip(np.rint(logits * self._unit), -32768, 32767)
        scaled = units * self._temperature
        largest = float(scaled.max())
        lse = largest + math.log(float(np.exp(scaled - largest).sum()))
        listed = np.argsort(-units, kind="stable")[: self._search.k]  # of equal ones the lower class first
        named = [int(units[name]) for name in self._search.named]
        named += [0] * (MAX_NAMED - len(named))
        head = struct.pack("<i4hHH", math.floor(lse * _LSE_UNITS + 0.5), *named, len(listed), 0)
        return head + b"".join(struct.pack("<hH", int(units[at]), int(at)) for at in listed)
