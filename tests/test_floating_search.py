# SPDX-License-Identifier: Apache-2.0
"""The beam search over float logits: the plain search's results, and those of CAIMAN's public decoders."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.test_decoding_golden import SETTINGS
from tests.test_decoding_search import USER, Case

from gharial.checkpoint import load_hardware
from gharial.checkpoint.sentencepiece_model import read_pieces
from gharial.decoding import DecoderOptions, EosStrategy, SearchModel
from gharial.floating.search import LOGIT_BITS, FloatSearch
from gharial.floating.yardstick import TorchRnnt
from gharial.model import demo_model
from gharial.ngram import NgramModel


class TableNetwork:
    """A network whose logits are those of a table: an encoder's row is (seed, step), a state what was heard."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def encode(self, features: np.ndarray) -> np.ndarray:
        return features

    def predict(self, token: int | None, state: Any) -> tuple[Any, Any]:
        heard = () if token is None else (*state, token)
        return heard, heard

    def logits(self, encoded: np.ndarray, predicted: Any) -> np.ndarray:
        seed, step = encoded.tolist()
        units = self._case.answers.table(seed, step, predicted) * 2.0**-self._case.logit_bits
        # A quarter of a unit off, which rounding takes away.
        return units + 2.0**-self._case.logit_bits / 4


def cases(seed: int) -> Iterator[Case]:
    widths, strategies, prefixes = (1, 4, 9), (EosStrategy.NONE, EosStrategy.PREDICT), ((), (3, USER))
    for number, (width, eos, prefix) in enumerate(itertools.product(widths, strategies, prefixes)):
        options = DecoderOptions(width, ngram_scale=0.2, final_limit_s=0.2, eos=eos, blank_penalty=0.5 * bool(prefix))
        boosts = {"ab": 0.4, "b a": -0.5} if eos == EosStrategy.NONE else {}
        yield Case(options, seed + number, 40, ngram=bool(prefix), boosts=boosts, blank_rise=600, prefix=prefix)


def test_equals_the_plain_search(seed: int) -> None:
    for case in cases(seed):
        case.fast(1)  # sets its answers
        ngram = case.toy if case.ngram else None
        search = FloatSearch(
            TableNetwork(case), case.model, case.options, ngram=ngram, keywords=case.keywords, prefix=case.prefix
        )
        for stream, steps in ((1, 9), (2, 0), (3, 6)):
            plain = case.plain(stream)
            wanted = [token for _ in range(steps) for token in plain.step()] + plain.finish()
            found = search.decode(np.array([(stream, step) for step in range(steps)]).reshape(-1, 2))
            assert (found.tokens, found.steps) == ([t.id for t in wanted], [t.step for t in wanted])
            assert found.confidences == pytest.approx([t.confidence for t in wanted], abs=1e-9)


@pytest.mark.parametrize("name", ["beam4", "beam4_ngram"])
def test_golden(data_dir: Path, name: str) -> None:
    """The first utterances; the search itself is held against all of them elsewhere."""
    checkpoint = load_hardware(data_dir / "models" / "demo-small.hw.pt")
    pieces = [piece.text for piece in read_pieces(checkpoint.sentencepiece, "demo-small")]
    plain, temperature = SETTINGS[name]
    options = DecoderOptions(
        temperature=temperature, final_limit_s=-1, ngram_scale=plain.ngram_scale, merge_lone_marks=True
    )
    ngram = None
    if plain.ngram_scale is not None:
        pytest.importorskip("kenlm", reason="the Python package kenlm is not installed")
        file = data_dir / "models" / "words_4gram.binary"
        ngram = NgramModel(file, checkpoint.sentencepiece, note=lambda _: None)
    model = SearchModel([*pieces, ""], len(pieces), LOGIT_BITS)
    search = FloatSearch(TorchRnnt.from_checkpoint(checkpoint), model, options, ngram=ngram)
    features = np.load(data_dir / "golden" / "decode_features.npz")
    for utterance, want in itertools.islice(
        json.loads((data_dir / "golden" / "decode.json").read_text())[name].items(), 12
    ):
        found = search.decode(features[utterance])
        assert (found.tokens, found.steps) == (want["tokens"], want["steps"]), utterance
        np.testing.assert_allclose(found.confidences, want["confidence"], atol=5e-3)


def test_a_step_of_the_yardstick_is_its_greedy_decoding(seed: int) -> None:
    """`predict` and `logits`, step by step, against `forced_logits`."""
    checkpoint = load_hardware(demo_model())
    network = TorchRnnt.from_checkpoint(checkpoint)
    random = np.random.default_rng(seed)
    features = random.standard_normal((9, checkpoint.dims.features)).astype(np.float32)
    wanted = network.forced_logits(features, [(1, 7), (1, 2), (4, 200)])
    encoded = network.encode(features)
    assert len(encoded) == 5
    output, state = network.predict(None, None)
    rows = []
    for step, token in ((0, None), (1, 7), (1, 2), (1, None), (2, None), (3, None), (4, 200), (4, None)):
        rows.append(network.logits(encoded[step], output))
        if token is not None:
            output, state = network.predict(token, state)
    np.testing.assert_array_equal(np.stack(rows), wanted)
