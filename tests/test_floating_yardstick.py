# SPDX-License-Identifier: Apache-2.0
"""The PyTorch yardstick: against figures of CAIMAN-ASR's own decoder, and where it cannot run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from random_checkpoint import LESS_BLANK, SMALL, random_checkpoint, random_features

from gharial.bench.manifest import read_set
from gharial.bench.words import word_count, word_errors
from gharial.checkpoint import load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.errors import BadInput
from gharial.features import FeatureSpec
from gharial.floating import RangeCollector, path_targets
from gharial.floating.calibrate import collect
from gharial.floating.network import FloatNetwork
from gharial.floating.yardstick import TorchRnnt


def test_reproduces_the_public_greedy_decoder(data_dir: Path) -> None:
    wanted = json.loads((data_dir / "golden" / "decode.json").read_text())["greedy"]
    checkpoint = load_hardware(data_dir / "models" / "demo-small.hw.pt")
    yardstick = TorchRnnt.from_checkpoint(checkpoint)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.sentencepiece)
    with np.load(data_dir / "golden" / "decode_features.npz") as archive:
        features = {name: archive[name] for name in archive.files}
    assert len(features) == 40 and features.keys() == wanted.keys()
    for name, vectors in features.items():
        decoded = yardstick.greedy(vectors)
        assert decoded.tokens == wanted[name]["tokens"], name
        assert decoded.steps == wanted[name]["steps"], name
        np.testing.assert_allclose(decoded.confidences, wanted[name]["confidence"], rtol=0, atol=1e-4, err_msg=name)
        assert pieces.decode(decoded.tokens) == wanted[name]["text"]
    found = collect(FloatNetwork(checkpoint), list(features.values()), RangeCollector())
    assert found == [list(zip(item["steps"], item["tokens"], strict=True)) for item in wanted.values()]


@pytest.mark.parametrize(
    ("model", "name", "words", "errors"),
    [
        ("demo-small", "sc_speakers", 1081, 188),
        ("demo-medium", "sc_speakers", 1081, 179),
        ("demo-medium", "fsdd_takes", 488, 25),
    ],
)
def test_reproduces_published_word_errors(data_dir: Path, model: str, name: str, words: int, errors: int) -> None:
    """From the recordings on: front end, network and decoding together."""
    checkpoint = load_hardware(data_dir / "models" / f"{model}.hw.pt")
    yardstick = TorchRnnt.from_checkpoint(checkpoint)
    spec = FeatureSpec.from_checkpoint(checkpoint)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.sentencepiece)
    utterances = read_set(data_dir / "sets" / name)
    texts = [pieces.decode(yardstick.greedy(audio_features(item.path, spec)).tokens) for item in utterances]
    assert sum(word_count(item.transcript) for item in utterances) == words
    found = sum(word_errors(item.transcript, text) for item, text in zip(utterances, texts, strict=True))
    assert found == errors


def test_forced_logits_equal_the_whole_lattice(seed: int) -> None:
    """Computed another way: the prediction network over all tokens at once, the joint over every pair of positions."""
    checkpoint = random_checkpoint(seed, pad=True)
    yardstick = TorchRnnt(checkpoint, "float64")
    features = random_features(seed + 1, 11)
    path = [(0, 4), (2, 0), (2, 9), (2, 4), (5, 7)]
    state = {name: torch.tensor(array, dtype=torch.float64) for name, array in checkpoint.state.items()}
    prefix = "prediction.dec_rnn.lstm."
    lstm = torch.nn.LSTM(SMALL.pred_hidden, SMALL.pred_hidden, SMALL.pred_layers, dtype=torch.float64)
    lstm.load_state_dict({name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)})
    inputs = torch.zeros((len(path) + 1, SMALL.pred_hidden), dtype=torch.float64)
    inputs[1:] = state["prediction.embed.weight"][[token for _, token in path]]
    with torch.inference_mode():
        pred = lstm(inputs)[0] @ state["joint_pred.weight"].T + state["joint_pred.bias"]
        enc = torch.tensor(yardstick.encode(features))
        hidden = torch.relu(enc[:, None] + pred[None])
        lattice = (hidden @ state["joint_net.2.weight"].T + state["joint_net.2.bias"]).numpy()
    # (encoder step, tokens so far) of each evaluation: one before each token, one to leave each of the six steps.
    places = [(0, 0), (0, 1), (1, 1), (2, 1), (2, 2), (2, 3), (2, 4), (3, 4), (4, 4), (5, 4), (5, 5)]
    found = yardstick.forced_logits(features, path)
    np.testing.assert_allclose(found, [lattice[place] for place in places], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(yardstick.forced(features, path), found.argmax(axis=1))


def test_forced_along_its_own_path_chooses_that_path(seed: int) -> None:
    checkpoint = random_checkpoint(seed, blank_bias=LESS_BLANK)
    yardstick = TorchRnnt.from_checkpoint(checkpoint)
    features = random_features(seed + 1, 31)
    decoded = yardstick.greedy(features)
    assert decoded.tokens
    targets = path_targets(decoded.path, 16, SMALL.classes - 1, 30)
    assert yardstick.forced(features, decoded.path).tolist() == [label for _, label in targets]
    logits = yardstick.forced_logits(features, decoded.path).astype(np.float64)
    shares = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    tokens = [row for row, (_, label) in enumerate(targets) if label != SMALL.classes - 1]
    np.testing.assert_allclose(decoded.confidences, shares[tokens].max(axis=1), rtol=0, atol=1e-5)


def test_empty_recording() -> None:
    yardstick = TorchRnnt.from_checkpoint(random_checkpoint(1))
    nothing = np.zeros((0, SMALL.features), np.float32)
    assert yardstick.greedy(nothing).tokens == []
    assert yardstick.forced_logits(nothing, []).shape == (0, SMALL.classes)


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BadInput, match=r"pip install gharial\[float\]"):
        TorchRnnt.from_checkpoint(random_checkpoint(1))
