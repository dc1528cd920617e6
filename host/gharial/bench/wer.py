# SPDX-License-Identifier: Apache-2.0
"""Word errors of the integer model against those of the float model on one set, by greedy or another decoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from tqdm import tqdm

from gharial.bench.bootstrap import RESAMPLES, SEED, Bootstrap, Difference
from gharial.bench.manifest import Utterance, read_set
from gharial.bench.words import word_count, word_error_rate, word_errors
from gharial.errors import GharialError
from gharial.floating.path import Decoded, LatticePath


class TransducerModel(Protocol):
    """What the bench needs of a model, integer or float."""

    def greedy(self, features: np.ndarray) -> Decoded:
        """Greedy decoding of one recording.

        Args:
            features: (T2, F) float32 normalised feature vectors; T2 may be 0.
        """

    def forced(self, features: np.ndarray, path: LatticePath) -> np.ndarray:
        """Best class at each joint evaluation along a given path, in order, (Q,) integers.

        The path's tokens are fed at the path's steps, whatever the model itself would choose. The joint is evaluated
        before each token and once more before each step is left, except after as many tokens as a step may have
        (`gharial.floating.path.path_targets` lists the evaluations). Of equal logits the lower class is the best.
        """


IntegerModel = TransducerModel
"""The model under test: a compiled program on a device."""

Features = Callable[[Path], np.ndarray]
"""Feature vectors (T2, F) of a recording, given its file."""

Text = Callable[[Sequence[int]], str]
"""Text of a list of token ids."""

Decode = Callable[[np.ndarray], Sequence[int]]
"""Token ids that are heard in a recording's feature vectors."""


@dataclass(frozen=True)
class Heard:
    """What float and integer model make of an utterance.

    Attributes:
        utterance: which one.
        text_float, text_int: their texts.
    """

    utterance: Utterance
    text_float: str
    text_int: str

    @property
    def changed(self) -> bool:
        """Whether their texts differ."""
        return self.text_float != self.text_int


@dataclass(frozen=True)
class Agreement:
    """Joint evaluations along the float model's path, and those at which the integer model's best class is the same."""

    evaluations: int = 0
    agreements: int = 0


def bench_wer(
    set_dir: Path,
    model_name: str,
    float_model: TransducerModel,
    integer_model: IntegerModel,
    features: Features,
    text: Text,
    quiet: bool = False,
    limit: int | None = None,
) -> dict[str, Any]:
    """Decode a set greedily with both models and compare them with the references and with each other.

    `token_agreement` compares the models where texts cannot: both are led along the float model's own greedy path, and
    it is the share of joint evaluations at which the integer model's best class is the one that the path takes. One
    wrong token thus counts once, however the text goes on after it.

    Args:
        set_dir: folder of the set.
        model_name: name of the model, for the result.
        float_model: the yardstick.
        integer_model: the model under test.
        features: feature vectors of a recording.
        text: text of token ids.
        quiet: no progress bar; there is none either where standard error is not a terminal.
        limit: only so many utterances from the start of the set.

    Returns:
        As `summary`.

    Raises:
        BadInput: the set or a recording cannot be used.
        GharialError: a model did not give one class an evaluation.
    """
    heard, agreement = hear_greedily(
        read_set(set_dir)[:limit], float_model, integer_model, features, text, quiet, set_dir.name
    )
    return summary(set_dir.resolve().name, model_name, heard, agreement)


def hear_greedily(
    utterances: Sequence[Utterance],
    float_model: TransducerModel,
    integer_model: IntegerModel,
    features: Features,
    text: Text,
    quiet: bool = False,
    told: str = "greedy",
) -> tuple[list[Heard], Agreement]:
    """Both models' greedy decoding, and how they agree along the float model's path; arguments as for `bench_wer`."""
    heard, evaluations, agreements = [], 0, 0
    for utterance in tqdm(utterances, told, unit="utt", disable=True if quiet else None):
        vectors = features(utterance.path)
        wanted = float_model.greedy(vectors)
        got = integer_model.greedy(vectors)
        # The float model's classes along its own path are computed rather than derived from the path: an evaluation
        # that one of the models leaves out then shows as a different count.
        best_float = np.asarray(float_model.forced(vectors, wanted.path))
        best_int = np.asarray(integer_model.forced(vectors, wanted.path))
        if best_float.shape != best_int.shape:
            raise GharialError(
                f"{utterance.name}: the models disagree on the number of joint evaluations: "
                f"{best_float.shape} of the float model, {best_int.shape} of the integer model"
            )
        heard.append(Heard(utterance, text(wanted.tokens), text(got.tokens)))
        evaluations += best_int.size
        agreements += int(np.count_nonzero(best_int == best_float))
    return heard, Agreement(evaluations, agreements)


def hear(
    utterances: Sequence[Utterance],
    float_model: Decode,
    integer_model: Decode,
    features: Features,
    text: Text,
    quiet: bool = False,
    told: str = "beam",
) -> list[Heard]:
    """What both models hear by another decoder; arguments as for `bench_wer`."""
    heard = []
    for utterance in tqdm(utterances, told, unit="utt", disable=True if quiet else None):
        vectors = features(utterance.path)
        heard.append(Heard(utterance, text(float_model(vectors)), text(integer_model(vectors))))
    return heard


def summary(
    set_name: str,
    model_name: str,
    heard: Sequence[Heard],
    agreement: Agreement,
    greedy: Sequence[Heard] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Any]:
    """Word errors and what follows from them, as data that can be written as JSON.

    Args:
        set_name, model_name: for the result.
        heard: what was heard by the decoder under test.
        agreement: along the float model's greedy path.
        greedy: what was heard by greedy decoding, where that is not the decoder under test.
        resamples, seed: of the bootstrap (gharial.bench.bootstrap).

    Returns:
        set, model, utterances, words; errors_float, errors_int; wer_float, wer_int (fractions, see `word_error_rate`);
        changed_utterances (utterances whose texts differ); evaluations, token_agreement (a fraction, 1 where there is
        no evaluation); changed (name, reference, float and int text of each of those utterances); wer_ci: {float, int,
        difference}, 95 % intervals [low, high] of the rates and of int less float, None where the set has no words;
        with `greedy`: errors and rates of the same names in an object `greedy`, and against_greedy: {float, int}, each
        {rate, ci, better, by_chance} of the decoder's rate less that of greedy decoding.
    """
    words = np.array([word_count(item.utterance.transcript) for item in heard], np.int64)
    columns = [_errors(heard), *([] if greedy is None else [_errors(greedy)])]
    totals = [column.sum(axis=0).tolist() for column in columns]
    drawn = Bootstrap(np.hstack(columns), words, resamples, seed) if len(words) else None
    changed = [item for item in heard if item.changed]
    found = {
        "set": set_name,
        "model": model_name,
        "utterances": len(heard),
        "words": int(words.sum()),
        **_rates(totals[0], int(words.sum())),
        "changed_utterances": len(changed),
        "evaluations": agreement.evaluations,
        "token_agreement": agreement.agreements / agreement.evaluations if agreement.evaluations else 1.0,
        "changed": [
            {
                "file": item.utterance.name,
                "reference": item.utterance.transcript,
                "float": item.text_float,
                "int": item.text_int,
            }
            for item in changed
        ],
        "wer_ci": _intervals(drawn, 0),
    }
    if greedy is not None:
        found["greedy"] = _rates(totals[1], int(words.sum())) | {"wer_ci": _intervals(drawn, 2)}
        found["against_greedy"] = {"float": _apart(drawn, 0, 2), "int": _apart(drawn, 1, 3)}
    return found


def _errors(heard: Sequence[Heard]) -> np.ndarray:
    """(n, 2) word errors of each utterance: float, int."""
    rows = [[word_errors(h.utterance.transcript, text) for text in (h.text_float, h.text_int)] for h in heard]
    return np.array(rows, np.int64).reshape(-1, 2)


def _rates(errors: Sequence[int], words: int) -> dict[str, Any]:
    in_float, in_int = errors
    return {
        "errors_float": in_float,
        "errors_int": in_int,
        "wer_float": word_error_rate(in_float, words),
        "wer_int": word_error_rate(in_int, words),
    }


def _intervals(drawn: Bootstrap | None, first: int) -> dict[str, list[float] | None]:
    """Intervals of a float model's rate, an integer model's, and of the latter less the former."""
    apart = None if drawn is None else drawn.difference(first + 1, first)
    both = [None if drawn is None else drawn.interval(system) for system in (first, first + 1)]
    return {
        "float": None if both[0] is None else list(both[0]),
        "int": None if both[1] is None else list(both[1]),
        "difference": None if apart is None else [apart.low, apart.high],
    }


def _apart(drawn: Bootstrap | None, system: int, other: int) -> dict[str, Any] | None:
    found: Difference | None = None if drawn is None else drawn.difference(system, other)
    return None if found is None else found.as_json()
