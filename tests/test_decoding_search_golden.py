# SPDX-License-Identifier: Apache-2.0
"""The fast search on the demo model's logits, rounded as a device has them, gives what the public decoders gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.decoding_device import Answers, FakeDevice, History
from tests.test_decoding_golden import SETTINGS, demo  # noqa: F401 - a fixture
from tests.test_decoding_search import run_step

from gharial.decoding import BeamSearch, DecoderOptions, Keywords, SearchModel, Token
from gharial.floating import FloatNetwork, PredictionState
from gharial.ngram import NgramModel

LOGIT_BITS = 10


class Network:
    """Logits of several recordings by what a hypothesis has said."""

    def __init__(self, network: FloatNetwork, features: list[np.ndarray]) -> None:
        self._network = network
        self.encoded = [network.encode(one)["joint_enc"] for one in features]
        self._states: dict[History, PredictionState] = {(): network.predict(None)[0]}

    def logits(self, recording: int, step: int, history: History) -> np.ndarray:
        if history not in self._states:
            self._states[history] = self._network.predict(history[-1], self._states[history[:-1]])[0]
        row = self._network.joint(self.encoded[recording][step], self._states[history].output[0])[1]
        return np.clip(np.rint(row * 2.0**LOGIT_BITS), -32768, 32767)


@pytest.mark.parametrize("name", SETTINGS)
def test_golden(demo: tuple[FloatNetwork, list[str], Any, dict[str, Any]], data_dir: Path, name: str) -> None:  # noqa: F811
    network, pieces, features, wanted = demo
    plain, temperature = SETTINGS[name]
    options = DecoderOptions(
        plain.width,
        temperature,
        topk_threshold=plain.topk_threshold,
        score_threshold=plain.score_threshold,
        final_limit_s=-1.0,
        ngram_scale=plain.ngram_scale,
        merge_lone_marks=True,
    )
    keywords, ngram = None, None
    if name == "beam4_ngram":
        pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")
        sentencepiece = (data_dir / "models" / "en255.model").read_bytes()
        ngram = NgramModel(data_dir / "models" / "words_4gram.binary", sentencepiece, note=lambda _: None)
    if name == "beam4_keywords":
        boosts = json.loads((data_dir / "golden" / "decode_keywords.json").read_text())["keywords"]
        keywords = Keywords(boosts, pieces)
    recordings = list(wanted[name])
    of_all = Network(network, [features[one] for one in recordings])
    slots = range(len(recordings) * 8 * options.width)
    model = SearchModel([*pieces, ""], network.blank, LOGIT_BITS)
    search = BeamSearch(model, options, streams=len(recordings), slots=slots, max_entries=256, ngram=ngram)
    answers = Answers(of_all.logits, search.k, search.named, search.temperature, LOGIT_BITS)
    device = FakeDevice(answers, slots)
    done = dict.fromkeys(range(len(recordings)), 0)
    found: dict[int, list[Token]] = {stream: [] for stream in done}
    for stream in done:
        search.open(stream, keywords)
    while who := [stream for stream in done if done[stream] < len(of_all.encoded[stream])]:
        for stream, finals in run_step(search, device, who, done, {one: one for one in who}).items():
            found[stream] += finals
    for stream, recording in enumerate(recordings):
        want, got = wanted[name][recording], [*found[stream], *search.best(stream)[0].tokens]
        assert [token.id for token in got] == want["tokens"], recording
        assert [token.step for token in got] == want["steps"], recording
        np.testing.assert_allclose([token.confidence for token in got], want["confidence"], atol=5e-3)
