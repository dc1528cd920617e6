# SPDX-License-Identifier: Apache-2.0
"""Training checkpoint, export, compile, transcribe: the transcript is the float model's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from command import Run
from recordings import FILES
from training_files import training

import gharial
from gharial.checkpoint import load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.features import FeatureSpec
from gharial.floating.yardstick import TorchRnnt
from gharial.model import demo_model, vocabulary

OLD_KEYS = ("version", "epoch", "step", "best_wer", "ngram_binary", "ngram_scale", "path", "state", "rnnt_config")


def transcripts(cli: Run, folder: Path, source: Path, files: list[Path]) -> None:
    """Asserts that the whole way gives each recording the transcript of the original model in float."""
    original = torch.load(source, weights_only=False)
    run = training(folder, source=original)
    output, program_file = folder / "model.hw.pt", folder / "model.gprog"
    assert cli(*run.words(output)).code == 0
    assert cli("compile", output, "-o", program_file).code == 0
    truth = load_hardware(source)
    yardstick, spec = TorchRnnt.from_checkpoint(truth), FeatureSpec.from_checkpoint(truth)
    tokens = vocabulary(gharial.Program.read(program_file))
    expected = [tokens.text(list(yardstick.greedy(audio_features(path, spec)).tokens)) for path in files]
    assert any(expected)
    with gharial.load(program_file) as recogniser:
        assert [recogniser.transcribe(path).text for path in files] == expected


def test_demo_model_on_the_shipped_recordings(cli: Run, tmp_path: Path) -> None:
    transcripts(cli, tmp_path, demo_model(), FILES)


def test_medium_model(cli: Run, tmp_path: Path, data_dir: Path) -> None:
    files = sorted((data_dir / "sets/sc_speakers").glob("*.flac"))[:6]
    transcripts(cli, tmp_path, data_dir / "models/demo-medium.hw.pt", files)


def test_what_is_exported_is_what_was_trained(cli: Run, tmp_path: Path) -> None:
    truth = load_hardware(demo_model())
    output = tmp_path / "model.hw.pt"
    assert cli(*training(tmp_path).words(output)).code == 0
    found = load_hardware(output)
    for name in truth.__dataclass_fields__:
        if name not in (*OLD_KEYS, "melmeans", "melvars", "post_pad"):
            assert getattr(found, name) == getattr(truth, name), name
    assert list(found.state) == list(truth.state)
    for name, array in truth.state.items():
        np.testing.assert_array_equal(found.state[name], array)
    np.testing.assert_array_equal(found.melmeans, truth.melmeans)
    np.testing.assert_array_equal(found.melvars, truth.melvars)
    assert (found.epoch, found.step, found.best_wer) == (7, 1147, 0.1739)
    assert (found.ngram_binary, found.ngram_scale) == (None, 0.05)
    # torch, which knows nothing of ours, reads the same out of it, without running code.
    by_torch = torch.load(output, weights_only=True)
    keys = "state_dict epoch step best_wer melmeans melvars melalpha sentpiece_model ngram version rnnt_config"
    assert list(by_torch) == keys.split()
    assert list(by_torch["state_dict"]) == list(truth.state)
    for name, tensor in by_torch["state_dict"].items():
        np.testing.assert_array_equal(tensor.numpy(), truth.state[name])
    assert by_torch["ngram"] == {"scale_factor": 0.05}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_the_pickle_protocol_makes_no_difference(cli: Run, tmp_path: Path, protocol: int) -> None:
    run = training(tmp_path, protocol=5)
    assert cli(*run.words(tmp_path / "first")).code == 0
    run.checkpoint.unlink()
    again = tmp_path / "again"
    again.mkdir()
    training(again, protocol=protocol).checkpoint.rename(run.checkpoint)
    assert cli(*run.words(tmp_path / "second")).code == 0
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
