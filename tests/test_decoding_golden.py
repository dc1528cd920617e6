# SPDX-License-Identifier: Apache-2.0
"""The plain beam search gives what CAIMAN's public decoders gave for the demo model in float, token for token."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from sim.decoding import BeamOptions, BeamSearch, Keywords, Scores

from gharial.checkpoint import load_hardware
from gharial.floating import FloatNetwork, PredictionState
from gharial.ngram import NgramModel


class FloatScoring:
    """A float network over one recording.

    Args:
        network: the network.
        features: (T2, F) of the recording.
        temperature: of the search.
        most: classes that a joint gives in any case.
    """

    def __init__(self, network: FloatNetwork, features: np.ndarray, temperature: float, most: int) -> None:
        self._network, self._temperature, self._most = network, temperature, most
        self._encoded = network.encode(features)["joint_enc"]

    def __len__(self) -> int:
        return len(self._encoded)

    def start(self) -> PredictionState:
        return self._network.predict(None)[0]

    def advance(self, state: PredictionState, token: int) -> PredictionState:
        return self._network.predict(token, state)[0]

    def scores(self, step: int, state: PredictionState) -> Scores:
        logits = self._network.joint(self._encoded[step], state.output[0])[1].astype(np.float64) / self._temperature
        log_probs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        chosen = {int(k): float(log_probs[k]) for k in np.argsort(-log_probs, kind="stable")[: self._most]}
        return Scores(chosen | {self._network.blank: float(log_probs[self._network.blank])})


@pytest.fixture(scope="module")
def demo(data_dir: Path) -> tuple[FloatNetwork, list[str], Any, dict[str, Any]]:
    """The network, its pieces, features and what is wanted."""
    checkpoint = load_hardware(data_dir / "models" / "demo-small.hw.pt")
    processor = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.sentencepiece)
    pieces = [processor.id_to_piece(token) for token in range(checkpoint.dims.vocabulary)]
    wanted = json.loads((data_dir / "golden" / "decode.json").read_text())
    return FloatNetwork(checkpoint), pieces, np.load(data_dir / "golden" / "decode_features.npz"), wanted


SETTINGS = {
    "beam4": (BeamOptions(), 1.4),
    "beam4_noprune": (BeamOptions(topk_threshold=-1, score_threshold=-1), 1.4),
    "beam8_t1": (BeamOptions(width=8), 1.0),
    "beam4_ngram": (BeamOptions(ngram_scale=0.3), 1.4),
    "beam4_keywords": (BeamOptions(), 1.4),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_golden(demo: tuple[FloatNetwork, list[str], Any, dict[str, Any]], data_dir: Path, name: str) -> None:
    """Those decoders ran whole utterances, without a limit on finals."""
    network, pieces, features, wanted = demo
    options, temperature = SETTINGS[name]
    options = replace(options, final_limit_s=-1.0, merge_lone_marks=True)
    keywords, ngram = None, None
    if name == "beam4_ngram":
        pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")
        model = (data_dir / "models" / "en255.model").read_bytes()
        ngram = NgramModel(data_dir / "models" / "words_4gram.binary", model, note=lambda _: None)
    if name == "beam4_keywords":
        keywords = Keywords(json.loads((data_dir / "golden" / "decode_keywords.json").read_text())["keywords"])
    for utterance, want in wanted[name].items():
        scoring = FloatScoring(network, features[utterance], temperature, options.width + 1)
        search = BeamSearch(scoring, network.blank, pieces, options, ngram, keywords)
        finals = [token for _ in range(len(scoring)) for token in search.step()]
        tokens = [*finals, *search.finish()]
        assert [token.id for token in tokens] == want["tokens"], utterance
        assert [token.step for token in tokens] == want["steps"], utterance
        np.testing.assert_allclose([token.confidence for token in tokens], want["confidence"], atol=2e-5)
