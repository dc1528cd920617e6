# SPDX-License-Identifier: Apache-2.0
"""Training of the demo model from start to end on made-up recordings: it learns, stops, goes on, and is served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import training_data
from recordings import SHORT
from scripts.training import checkpoints, run
from scripts.training.batches import BatchMaker, encoder, string_maker
from scripts.training.network import DEMO, Network
from scripts.training.recipe import Recipe
from scripts.training.trainer import Trainer

import gharial
from gharial.checkpoint import load_hardware
from gharial.errors import BadInput
from gharial.features import FeatureSpec
from gharial.floating.yardstick import TorchRnnt
from gharial.model import demo_model

SHORTENED = Recipe(steps=24, strings=20, longest=3, easy=8, ramp=16, warm_up=4, check=8)
STRINGS = 12  # of the dev and test sets


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As the script has it: otherwise sums may come in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return training_data.write(tmp_path_factory.mktemp("recordings"))


@pytest.fixture
def script(monkeypatch):
    monkeypatch.setattr(run, "SET_STRINGS", STRINGS)
    monkeypatch.setattr(run, "STATISTICS_STRINGS", STRINGS)
    return run


def test_the_network_is_the_demo_model_s_shape():
    state = Network().state_dict()
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == DEMO.shapes()
    assert load_hardware(demo_model()).dims == DEMO


def test_the_network_computes_what_the_yardstick_does(data):
    """The shipped weights in it decode a padded batch as the yardstick decodes each string."""
    checkpoint = load_hardware(demo_model())
    network = Network().eval()
    network.load_state_dict({name: torch.tensor(array) for name, array in checkpoint.state.items()})
    maker = string_maker(data, "train")
    plan = replace(SHORTENED.plan, strings=8)
    batch = BatchMaker(plan, maker, FeatureSpec.from_checkpoint(checkpoint), encoder(checkpoint.sentencepiece)).make(20)
    yardstick = TorchRnnt(checkpoint)
    features, lengths = torch.from_numpy(batch.features), torch.from_numpy(batch.lengths)
    with torch.inference_mode():
        outputs = network.encode(features, lengths)
    found = network.greedy(features, lengths)
    assert len(set(batch.lengths)) > 1
    for row, length in enumerate(batch.lengths):
        own = batch.features[:length, row]
        expected = yardstick.encode(own)
        np.testing.assert_allclose(outputs[row, : len(expected)], expected, atol=1e-5)
        assert found[row] == yardstick.greedy(own).tokens


def test_updates_lower_the_loss(data):
    recipe = replace(SHORTENED, dropout=0.0, rate=1e-2, steps=40)
    torch.manual_seed(recipe.seed)
    trainer = Trainer(recipe, Network(dropout=0.0))
    checkpoint = load_hardware(demo_model())
    maker = string_maker(data, "train")
    spec = FeatureSpec.from_checkpoint(checkpoint)
    batch = BatchMaker(recipe.plan, maker, spec, encoder(checkpoint.sentencepiece)).make(0)
    losses = [trainer.update(batch) for _ in range(recipe.steps)]
    assert losses[-1] < losses[0] / 4
    # The averaged weights followed.
    with torch.no_grad():
        trainer.average.eval()
        parts = (torch.from_numpy(part) for part in (batch.features, batch.lengths, batch.labels, batch.tokens))
        assert float(trainer.average.loss(*parts)) / int(batch.tokens.sum()) < losses[0] / 2


def test_a_training_ends_in_a_checkpoint_that_is_served(data, tmp_path, script, capsys):
    out = tmp_path / "out"
    target = script.train(data, out, SHORTENED, 0)
    lines = capsys.readouterr().out
    assert "step 8 of 24" in lines and "step 24 of 24" in lines and "min left" in lines
    checkpoint = load_hardware(target)
    assert checkpoint.dims == DEMO
    assert checkpoint.sentencepiece == load_hardware(demo_model()).sentencepiece
    # What is served is the averaged weights of the look at the dev set that had the fewest errors.
    best = checkpoints.read_training(out / checkpoints.BEST)
    assert best["step"] in (8, 16, 24) and best["logmel_norm_weight"] == 1.0
    for name, tensor in best["ema_state_dict"].items():
        np.testing.assert_array_equal(checkpoint.state[name], tensor.numpy())
    with gharial.load(target) as recogniser:
        assert isinstance(recogniser.transcribe(SHORT).text, str)
    # Called again, it has nothing left to do and gives the same file.
    before = target.read_bytes()
    assert script.train(data, out, SHORTENED, 0).read_bytes() == before


def test_a_training_that_was_stopped_goes_on_to_the_same_weights(data, tmp_path, script, monkeypatch):
    whole = load_hardware(script.train(data, tmp_path / "whole", SHORTENED, 0))
    original = run.batches

    def interrupted(plan, data, spec, model, first, end, processes):
        yield from original(plan, data, spec, model, first, 11, processes)
        raise KeyboardInterrupt

    monkeypatch.setattr(script, "batches", interrupted)
    with pytest.raises(KeyboardInterrupt):
        script.train(data, tmp_path / "stopped", SHORTENED, 0)
    assert not (tmp_path / "stopped" / "demo-small.hw.pt").exists()
    monkeypatch.setattr(script, "batches", original)
    resumed = load_hardware(script.train(data, tmp_path / "stopped", SHORTENED, 0))
    for name, array in whole.state.items():
        np.testing.assert_array_equal(resumed.state[name], array)


def test_another_recipe_does_not_go_on_from_a_folder_s_training(data, tmp_path, script):
    script.train(data, tmp_path, replace(SHORTENED, steps=2, check=1), 0)
    with pytest.raises(BadInput, match="another recipe"):
        script.train(data, tmp_path, replace(SHORTENED, steps=2, check=1, rate=1e-3), 0)


def test_a_training_can_be_given_more_steps(data, tmp_path, script, capsys):
    script.train(data, tmp_path, replace(SHORTENED, steps=2, check=1), 0)
    script.train(data, tmp_path, replace(SHORTENED, steps=3, check=1), 0)
    lines = capsys.readouterr().out
    assert "going on from step 2" in lines and "step 3 of 3" in lines and "step 2 of 3" not in lines


def test_recordings_that_are_missing_are_named(tmp_path, script, capsys):
    code = script.main(["--data", str(tmp_path), "--out", str(tmp_path / "out")])
    assert code == 2
    error = capsys.readouterr().err
    assert "no recordings of 'down'" in error and str(tmp_path / "speech_commands") in error and "--data" in error


def test_what_cannot_be_done_is_said(tmp_path, capsys):
    (tmp_path / "file").touch()
    for words in (["--steps", "0"], ["--processes", "-1"], ["--seed", "-1"], ["--out", str(tmp_path / "file" / "in")]):
        assert run.main(["--out", str(tmp_path / "out"), *words]) == 2
        assert words[0] in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_rate_rises_and_falls():
    recipe = Recipe()
    rates = [recipe.rate_at(step) for step in range(recipe.steps)]
    assert max(rates) == pytest.approx(recipe.rate) == rates[recipe.warm_up]
    assert rates[0] == pytest.approx(recipe.rate / recipe.warm_up)
    assert rates[-1] == pytest.approx(recipe.last_rate, rel=1e-2)
