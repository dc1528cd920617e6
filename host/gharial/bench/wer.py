# SPDX-License-Identifier: Apache-2.0
"""Word errors of the integer model against those of the float model, on one test set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from tqdm import tqdm

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


@dataclass(frozen=True)
class _Scored:
    utterance: Utterance
    text_float: str
    text_int: str
    errors_float: int
    errors_int: int
    evaluations: int
    agreements: int


def bench_wer(
    set_dir: Path,
    model_name: str,
    float_model: TransducerModel,
    integer_model: IntegerModel,
    features: Callable[[Path], np.ndarray],
    text: Callable[[Sequence[int]], str],
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
        features: feature vectors of a recording, given its file.
        text: text of a list of token ids.
        quiet: no progress bar; there is none either where standard error is not a terminal.
        limit: only so many utterances from the start of the set; None for all.

    Returns:
        set, model, utterances, words; errors_float, errors_int; wer_float, wer_int (fractions, see `word_error_rate`);
        changed_utterances (utterances whose texts differ); evaluations, token_agreement (a fraction, 1 where there is
        no evaluation); changed (name, reference, float and int text of each of those utterances).

    Raises:
        BadInput: the set or a recording cannot be used.
        GharialError: a model did not give one class an evaluation.
    """
    utterances = read_set(set_dir)[:limit]
    scored = [
        _score(utterance, float_model, integer_model, features, text)
        for utterance in tqdm(utterances, set_dir.name, unit="utt", disable=True if quiet else None)
    ]
    return _summary(set_dir.resolve().name, model_name, scored)


def _score(
    utterance: Utterance,
    float_model: TransducerModel,
    integer_model: IntegerModel,
    features: Callable[[Path], np.ndarray],
    text: Callable[[Sequence[int]], str],
) -> _Scored:
    vectors = features(utterance.path)
    wanted = float_model.greedy(vectors)
    got = integer_model.greedy(vectors)
    # The float model's classes along its own path are computed rather than derived from the path: an evaluation that
    # one of the models leaves out then shows as a different count.
    best_float = np.asarray(float_model.forced(vectors, wanted.path))
    best_int = np.asarray(integer_model.forced(vectors, wanted.path))
    if best_float.shape != best_int.shape:
        raise GharialError(
            f"{utterance.name}: the models disagree on the number of joint evaluations: "
            f"{best_float.shape} of the float model, {best_int.shape} of the integer model"
        )
    text_float, text_int = text(wanted.tokens), text(got.tokens)
    return _Scored(
        utterance,
        text_float,
        text_int,
        word_errors(utterance.transcript, text_float),
        word_errors(utterance.transcript, text_int),
        best_int.size,
        int(np.count_nonzero(best_int == best_float)),
    )


def _summary(set_name: str, model_name: str, scored: Sequence[_Scored]) -> dict[str, Any]:
    words = sum(word_count(item.utterance.transcript) for item in scored)
    errors_float = sum(item.errors_float for item in scored)
    errors_int = sum(item.errors_int for item in scored)
    evaluations = sum(item.evaluations for item in scored)
    changed = [item for item in scored if item.text_float != item.text_int]
    return {
        "set": set_name,
        "model": model_name,
        "utterances": len(scored),
        "words": words,
        "errors_float": errors_float,
        "errors_int": errors_int,
        "wer_float": word_error_rate(errors_float, words),
        "wer_int": word_error_rate(errors_int, words),
        "changed_utterances": len(changed),
        "evaluations": evaluations,
        "token_agreement": sum(item.agreements for item in scored) / evaluations if evaluations else 1.0,
        "changed": [
            {
                "file": item.utterance.name,
                "reference": item.utterance.transcript,
                "float": item.text_float,
                "int": item.text_int,
            }
            for item in changed
        ],
    }
