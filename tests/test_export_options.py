# SPDX-License-Identifier: Apache-2.0
"""`gharial export`: where everything is taken from, what options change, and which variants pass through."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ngram_files
import numpy as np
import pytest
import torch
from checkpoint_files import demo
from checkpoint_variants import SPEC, normalised, with_symbols
from command import Run
from training_files import Training, training

import gharial
from gharial.checkpoint import HardwareCheckpoint, load_hardware
from gharial.checkpoint.dims import GROUPS, PREDICTION
from gharial.model import demo_model
from gharial.ngram import append_mark, checking

Tree = dict[str, Any]


def exported(cli: Run, run: Training, *more: object) -> HardwareCheckpoint:
    """The checkpoint that an export gives."""
    output = run.folder / "out.hw.pt"
    outcome = cli(*run.words(output, *more))
    assert outcome.code == 0, outcome.err
    return load_hardware(output)


def test_what_is_said(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path)
    output = tmp_path / "out.hw.pt"
    outcome = cli(*run.words(output))
    lines = outcome.out.splitlines()
    assert lines[0] == f"{output}: hardware checkpoint, good"
    assert lines[-1] == f"  n-gram to use with it: {tmp_path}/ngrams/ngram.binary"
    assert outcome.err == (
        f"gharial: note: the SentencePiece model had another name in training; the one taken is {tmp_path}/spm.model\n"
    )
    facts = json.loads(cli(*run.words(output, "--json")).out)
    assert (facts["good"], facts["parameters"], facts["version"]) == (True, 269120, "1.15.0")
    assert facts["ngram_path"] == f"{tmp_path}/ngrams/ngram.binary"
    assert (facts["ngram"]["embedded"], facts["ngram"]["scale"]) == (False, 0.05)
    assert cli(*run.words(output, "--skip-ngram")).out.endswith("n-gram to use with it: left out\n")


@pytest.mark.parametrize("names", ["--output_ckpt --skip_ngram", "--output-ckpt --skip-ngram", "--output --skip_ngram"])
def test_names_of_options(cli: Run, tmp_path: Path, names: str) -> None:
    run = training(tmp_path)
    output, skip = names.split()
    words = ["export", "--ckpt", run.checkpoint, "--config", run.config, output, tmp_path / "out", skip]
    assert cli(*words).code == 0
    assert load_hardware(tmp_path / "out").ngram_scale is None


def test_from_python(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path)
    found = gharial.export_checkpoint(run.checkpoint, run.config, tmp_path / "a")
    assert (found.path, found.ngram_scale) == (str(tmp_path / "a"), 0.05)
    assert found.ngram_path == str(tmp_path / "ngrams/ngram.binary")
    assert cli(*run.words(tmp_path / "b")).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_ngram_is_found_and_left_where_it_is(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path)
    other = tmp_path / "other.binary"
    append_mark(ngram_files.copy(tmp_path, "trie", "other.binary"), load_hardware(demo_model()).sentencepiece)
    # The binary goes before the text form, and one that is given before both.
    (tmp_path / "ngrams/ngram.arpa").write_bytes(b"\\data\\\n")
    before = {path: path.stat().st_size for path in (other, tmp_path / "ngrams/ngram.binary")}
    for option, path in (("", tmp_path / "ngrams/ngram.binary"), ("--override_ngram_path", other)):
        output = tmp_path / "out"
        more = (option, path, "--json") if option else ("--json",)
        assert json.loads(cli(*run.words(output, *more)).out)["ngram_path"] == str(path)
        assert b"kheafield" not in output.read_bytes()
        assert load_hardware(output).ngram_scale == 0.05
    assert before == {path: path.stat().st_size for path in before}


def test_an_ngram_that_does_not_say_whom_it_is_for(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_warned", set())  # by inode, which an earlier test's file may have had
    run = training(tmp_path)
    file = ngram_files.copy(tmp_path / "ngrams", name="ngram.binary")
    outcome = cli(*run.words(tmp_path / "out"))
    assert outcome.code == 0
    assert f"gharial: note: {file} is not marked" in outcome.err


def test_an_ngram_without_a_scale(cli: Run, tmp_path: Path) -> None:
    """A configuration from before 1.11 has no section ngram."""

    def change(tree: Tree) -> None:
        del tree["ngram"]

    run = training(tmp_path, config=change)
    output = tmp_path / "out"
    outcome = cli(*run.words(output, "--override-ngram-path", tmp_path / "ngrams/ngram.binary"))
    assert "scale_factor is not stated; 0.05 is taken" in outcome.err
    assert load_hardware(output).ngram_scale == 0.05
    assert exported(cli, run, "--skip-ngram").ngram_scale is None


def test_paths_relative_to_the_working_folder_or_the_configuration(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(tree: Tree) -> None:
        tree["tokenizer"]["sentpiece_model"] = "spm.model"
        tree["input_val"]["filterbank_features"]["stats_path"] = "stats"
        tree["ngram"]["ngram_path"] = "ngrams"

    run = training(tmp_path, config=change)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in (tmp_path, elsewhere):
        monkeypatch.chdir(folder)
        words = ["export", "--ckpt", run.checkpoint, "--config", os.path.relpath(run.config), "-o", "out"]
        assert cli(*words).code == 0
    assert (tmp_path / "out").read_bytes() == (elsewhere / "out").read_bytes()
    # What is there in both is taken from the working folder, as training does.
    (elsewhere / "spm.model").write_bytes(b"another")
    cli(*words).refused("spm.model: this is no SentencePiece model")


def test_files_given_in_place_of_the_configurations(cli: Run, tmp_path: Path) -> None:
    def change(tree: Tree) -> None:
        tree["tokenizer"]["sentpiece_model"] = "/datasets/sentencepieces/spm.model"
        tree["input_val"]["filterbank_features"]["stats_path"] = "/datasets/stats"

    run = training(tmp_path, config=change)
    statistics = [("--melmeans", tmp_path / "stats/melmeans.pt"), ("--melvars", tmp_path / "stats/melvars.pt")]
    torch.save(torch.load(statistics[0][1]).double(), statistics[0][1])
    given = [word for pair in statistics for word in pair]
    found = exported(cli, run, "--sentpiece-model", tmp_path / "spm.model", *given)
    truth = load_hardware(demo_model())
    assert found.sentencepiece == truth.sentencepiece
    np.testing.assert_array_equal(found.melmeans, truth.melmeans)
    np.testing.assert_array_equal(found.melvars, truth.melvars)
    assert found.rnnt_config["tokenizer"]["sentpiece_model"] == "/datasets/sentencepieces/spm.model"


def test_numbers_in_tensors_are_taken(cli: Run, tmp_path: Path) -> None:
    def change(tree: Tree) -> None:
        tree |= {"epoch": torch.tensor(7), "step": torch.tensor([1147]), "best_wer": torch.tensor(0.25)}

    found = exported(cli, training(tmp_path, change))
    assert (found.epoch, found.step, found.best_wer) == (7, 1147, 0.25)


def test_what_the_checkpoint_itself_has_is_taken(cli: Run, tmp_path: Path) -> None:
    means = torch.arange(80.0)

    def change(tree: Tree) -> None:
        tree |= {"melmeans": means, "melvars": means + 1, "sentpiece_model": (tmp_path / "spm.model").read_bytes()}

    def away(tree: Tree) -> None:
        tree["tokenizer"]["sentpiece_model"] = "/no/such"
        del tree["input_val"]["filterbank_features"]["stats_path"]

    run = training(tmp_path, change, away)
    found = exported(cli, run)
    np.testing.assert_array_equal(found.melmeans, means.numpy())
    np.testing.assert_array_equal(found.melvars, means.numpy() + 1)
    assert found.sentencepiece == load_hardware(demo_model()).sentencepiece
    # But what the command line names goes before it.
    files = [word for name in ("melmeans", "melvars") for word in (f"--{name}", tmp_path / f"stats/{name}.pt")]
    given = exported(cli, run, *files)
    np.testing.assert_array_equal(given.melmeans, load_hardware(demo_model()).melmeans)
    np.testing.assert_array_equal(given.melvars, load_hardware(demo_model()).melvars)
    (tmp_path / "other.model").write_bytes(b"another")
    cli(*run.words(tmp_path / "out", "--sentpiece-model", tmp_path / "other.model")).refused("other.model")


def test_streaming_normalisation_of_old_models(cli: Run, tmp_path: Path) -> None:
    def change(tree: Tree) -> None:
        del tree["logmel_norm_weight"]

    assert exported(cli, training(tmp_path, change), "--melalpha", "0.001").melalpha == 0.001


NONE = {"valid_prefix": "^$", "default_prefix": None}


@pytest.mark.parametrize(
    ("checkpoint", "config", "options", "expected"),
    [
        ({}, {}, (), None),
        ({"prefix_spec": None}, {"prefix_spec": None}, (), None),
        ({"prefix_spec": NONE}, {}, (), NONE),
        ({"args": {"seed": 1, "prefix_spec": NONE}}, {}, (), NONE),
        ({"training_args": {"valid_prefix": "^$"}}, {"prefix_spec": NONE}, (), NONE),
        ({}, {"prefix_spec": NONE}, (), NONE),
        ({}, {}, ("--valid-prefix", "^$"), NONE),
        ({}, {}, ("--valid_prefix", "^$", "--default_prefix", ""), {"valid_prefix": "^$", "default_prefix": ""}),
        ({"prefix_spec": SPEC}, {}, (), SPEC),
        ({}, {"prefix_spec": {"valid_prefix": ".*"}}, (), {"valid_prefix": ".*", "default_prefix": None}),
    ],
)
def test_prefixes(cli: Run, tmp_path: Path, checkpoint: Tree, config: Tree, options: Any, expected: Any) -> None:
    model = demo()
    model["sentpiece_model"] = with_symbols(model["sentpiece_model"], SPEC["valid_prefix"])
    run = training(tmp_path, lambda tree: tree | checkpoint, lambda tree: tree | config, model)
    spec = exported(cli, run, *options).prefix_spec
    assert torch.load(run.folder / "out.hw.pt", weights_only=True).get("prefix_spec") == expected
    if expected is None:
        assert spec is None
    else:
        assert spec is not None
        assert (spec.pattern, spec.default) == (expected["valid_prefix"], expected["default_prefix"])


def test_prefixes_in_a_layout_that_is_not_known(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path, lambda tree: tree | {"raw_prefix_token_map": {"pnc": {"yes": "<pnc>"}}})
    outcome = cli(*run.words(tmp_path / "out"))
    assert (outcome.code, load_hardware(tmp_path / "out").prefix_spec) == (0, None)
    assert "raw_prefix_token_map" in outcome.err and "--valid-prefix" in outcome.err
    assert "raw_prefix" not in cli(*run.words(tmp_path / "out", "--valid-prefix", "^$")).err


def test_hard_activations(cli: Run, tmp_path: Path) -> None:
    """CAIMAN-ASR's training follows the key up to 1.5; a checkpoint from 1.9 on shows that it did not: export asks."""

    def asked(tree: Tree) -> None:
        tree["rnnt"]["hard_activation_functions"] = True

    for name in ("new", "old", "off"):
        (tmp_path / name).mkdir()
    new = training(tmp_path / "new", config=asked)
    outcome = cli(*new.words(tmp_path / "out"))
    assert outcome.code == 2 and not (tmp_path / "out").exists()
    assert "rnnt.hard_activation_functions" in outcome.err and "--no-hard-activations" in outcome.err, outcome.err
    for flag, expected in (("--hard-activations", True), ("--no_hard_activations", False)):
        found = exported(cli, new, flag)
        assert (found.hard_sigmoid, found.hard_tanh) == (expected, expected)
        assert ("hard_activation_functions" in str(found.rnnt_config)) == expected
    old = training(tmp_path / "old", lambda tree: tree.pop("logmel_norm_weight") and None, asked)
    for flags, expected in (((), True), (("--no-hard-activations",), False)):
        found = exported(cli, old, "--melalpha", "0.001", *flags)
        assert (found.hard_sigmoid, found.hard_tanh) == (expected, expected)
    off = training(tmp_path / "off")
    assert cli(*off.words(tmp_path / "out", "--no-hard-activations")).code == 0
    outcome = cli(*off.words(tmp_path / "other", "--hard-activations"))
    assert outcome.code == 2 and "leave --hard-activations out" in outcome.err and not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("tokens", "told"),
    [({"eos": "<end>"}, True), ({"eos": "<EOS>"}, False), ({"eos": None}, False), (None, False)],
)
def test_end_of_sequence_of_another_name(cli: Run, tmp_path: Path, tokens: Tree | None, told: bool) -> None:
    outcome = cli(*training(tmp_path, config=lambda tree: tree | {"user_tokens": tokens}).words(tmp_path / "out"))
    assert outcome.code == 0
    assert ("user_tokens.eos is <end>; only a token <EOS>" in outcome.err) == told


@pytest.mark.parametrize("groups", [GROUPS, GROUPS[:1], (PREDICTION,)])
def test_batch_normalisation(cli: Run, tmp_path: Path, seed: int, groups: tuple[str, ...]) -> None:
    random = np.random.default_rng(seed)
    kept: Tree = {}

    def change(tree: Tree) -> None:
        state = {name.removeprefix("module."): tensor for name, tensor in tree["ema_state_dict"].items()}
        kept.update(normalised(state, groups, random))
        tree["ema_state_dict"] = {f"module.{name}": tensor for name, tensor in kept.items()}

    def state(tree: Tree) -> None:
        tree["rnnt"]["enc_batch_norm"] = groups != (PREDICTION,)
        tree["rnnt"]["pred_batch_norm"] = PREDICTION in groups

    found = exported(cli, training(tmp_path, change, state))
    assert found.batch_norm
    written = torch.load(tmp_path / "out.hw.pt", weights_only=True)["state_dict"]
    dropped = ("joint_fc.weight", "joint_fc.bias", "num_batches_tracked")
    assert set(written) == {name for name in kept if not name.endswith(dropped)}
    for name, tensor in written.items():
        assert torch.equal(tensor, kept[name]), name


def test_bfloat16_weights_become_float32(cli: Run, tmp_path: Path) -> None:
    def change(tree: Tree) -> None:
        tree["ema_state_dict"] = {name: tensor.bfloat16() for name, tensor in tree["ema_state_dict"].items()}

    found = exported(cli, training(tmp_path, change))
    for name, array in load_hardware(demo_model()).state.items():
        np.testing.assert_array_equal(found.state[name], torch.tensor(array).bfloat16().float().numpy())


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "\nnovelty: {weights: [1, 2], date: 2026-01-01}\n",
        lambda text: text.replace("enc_n_hid: 64", "enc_n_hid: 64.0\n  unheard_of: 3"),
        lambda text: text.replace("dither: 1.0e-05", "dither: 1e-5"),
        lambda text: text.replace("scale_factor: 0.05", "scale_factor: 5e-2"),
        lambda text: text.replace("window_size: 0.025", "window_size: '0.025'"),
        lambda text: "# a comment, Grüße\n" + text,
    ],
)
def test_ways_to_write_the_same_configuration(cli: Run, tmp_path: Path, change: Callable[[str], str]) -> None:
    run = training(tmp_path)
    text = run.config.read_text()
    assert cli(*run.words(tmp_path / "a")).code == 0
    assert change(text) != text
    run.config.write_text(change(text))
    assert cli(*run.words(tmp_path / "b")).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_anchors_and_merges_as_shipped_configurations_have_them(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path)
    assert cli(*run.words(tmp_path / "a")).code == 0
    anchored = f"""
tokenizer:
  sentpiece_model: {tmp_path}/spm.model
  labels: [" ", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u",
    "v", "w", "x", "y", "z", "'"]
input_val:
  audio_dataset: &val_dataset
    sample_rate: &sample_rate 16000
    replacements:
  filterbank_features: &val_features
    normalize: per_feature
    sample_rate: *sample_rate
    window_size: 0.025
    window_stride: 0.01
    window: hann
    n_fft: 512
    n_filt: &n_filt 80
    dither: 0.00001
    stats_path: {tmp_path}/stats
  frame_splicing: &val_splicing
    frame_stacking: 3
    frame_subsampling: 3
input_train:
  audio_dataset:
    !!merge <<: *val_dataset
    max_duration: MAX_DURATION
  filterbank_features:
    <<: *val_features
    dither: 0.1
  frame_splicing: *val_splicing
rnnt: &rnnt
  in_feats: 240 # n_filt x frame_stacking
  enc_n_hid: 64
  enc_pre_rnn_layers: 2
  enc_post_rnn_layers: 2
  enc_stack_time_factor: 2
  pred_n_hid: 64
  pred_rnn_layers: 1
  joint_n_hid: 64
  custom_lstm: true
ngram:
  ngram_path: {tmp_path}/ngrams
  scale_factor: 0.05
"""
    run.config.write_text(anchored)
    assert cli(*run.words(tmp_path / "b")).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
