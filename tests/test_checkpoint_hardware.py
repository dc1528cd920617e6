# SPDX-License-Identifier: Apache-2.0
"""Hardware checkpoints: what is read, and that each fault is named by key or tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_files import DEMO, demo, refused, saved

from gharial.checkpoint import FeatureSettings, ModelDims, load_hardware

Checkpoint = dict[str, Any]


def test_demo() -> None:
    checkpoint = load_hardware(DEMO)
    truth = demo()
    assert checkpoint.path == str(DEMO)
    assert checkpoint.dims == ModelDims(240, 64, 2, 2, 2, 64, 1, 64, 256)
    assert list(checkpoint.state) == list(checkpoint.dims.shapes())
    for name, array in checkpoint.state.items():
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        assert not array.flags.writeable
        np.testing.assert_array_equal(array, truth["state_dict"][name].numpy())
    np.testing.assert_array_equal(checkpoint.melmeans, truth["melmeans"].numpy())
    np.testing.assert_array_equal(checkpoint.melvars, truth["melvars"].numpy())
    assert not checkpoint.post_pad.any()
    assert checkpoint.post_pad.shape == (64,)
    assert checkpoint.sentencepiece == truth["sentpiece_model"]
    assert checkpoint.rnnt_config == truth["rnnt_config"]
    assert checkpoint.features == FeatureSettings(16000, 0.025, 0.01, 512, 80, 3, 3, 1e-5)
    assert (checkpoint.features.window_samples, checkpoint.features.hop_samples) == (400, 160)
    assert (checkpoint.version, checkpoint.epoch, checkpoint.step) == ("1.15.0", 0, 8000)
    assert checkpoint.best_wer == 100 * 267 / 1597
    assert (checkpoint.ngram_binary, checkpoint.ngram_scale, checkpoint.prefix_spec) == (None, None, None)
    assert (checkpoint.melalpha, checkpoint.hard_sigmoid, checkpoint.hard_tanh) == (0.0, False, False)
    assert not checkpoint.batch_norm
    assert checkpoint.other_keys == ()


def test_medium(data_dir: Path) -> None:
    assert load_hardware(data_dir / "models/demo-medium.hw.pt").dims == ModelDims(240, 128, 2, 2, 2, 128, 1, 128, 256)


# Sizes

BASE = ModelDims(240, 1024, 2, 6, 2, 512, 2, 768, 8704)
LARGE = ModelDims(240, 1536, 2, 6, 2, 768, 2, 1024, 17408)
TESTING = ModelDims(240, 1024, 2, 3, 2, 512, 2, 512, 1024)
SMALL = ModelDims(240, 64, 2, 2, 2, 64, 1, 64, 256)


def test_work_of_the_known_models() -> None:
    assert (BASE.encode_macs, BASE.joint_macs, BASE.prediction_macs) == (82_444_288, 6_684_672, 4_587_520)
    assert (SMALL.encode_macs, SMALL.joint_macs, SMALL.prediction_macs) == (307_200, 16_384, 36_864)
    assert SMALL.parameters == sum(tensor.numel() for tensor in demo()["state_dict"].values()) == 269_120
    assert [round(dims.parameters / 1e6) for dims in (TESTING, BASE, LARGE)] == [49, 85, 196]


# Keys that came and went with versions


def test_first_version(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        for key in ("version", "rnnt_config", "ngram"):
            del c[key]
        c["melalpha"] = 0.001

    checkpoint = load_hardware(saved(tmp_path, change, protocol=2))
    assert checkpoint.version == ""
    assert checkpoint.rnnt_config == {}
    assert checkpoint.melalpha == 0.001
    assert checkpoint.features == FeatureSettings()
    assert checkpoint.dims == SMALL


def test_version_decides_nothing(tmp_path: Path) -> None:
    truth = load_hardware(DEMO)

    def change(c: Checkpoint) -> None:
        c["version"] = "0.0.0-\x1b[31m"

    checkpoint = load_hardware(saved(tmp_path, change))
    assert checkpoint.dims == truth.dims
    assert checkpoint.features == truth.features


@pytest.mark.parametrize(
    ("ngram", "binary", "scale"),
    [
        ({"binary": b"mmap lm", "scale_factor": 0.05}, b"mmap lm", 0.05),
        ({"binary": None, "scale_factor": None}, None, None),
        ({"scale_factor": 0.1}, None, 0.1),
        ({"scale_factor": 1}, None, 1.0),
        (None, None, None),
    ],
)
def test_ngram(tmp_path: Path, ngram: Any, binary: bytes | None, scale: float | None) -> None:
    def change(c: Checkpoint) -> None:
        c["ngram"] = ngram

    checkpoint = load_hardware(saved(tmp_path, change))
    assert (checkpoint.ngram_binary, checkpoint.ngram_scale) == (binary, scale)


def test_prefix_spec(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["prefix_spec"] = {
            "valid_prefix": "^(?:<pnc>|<nopnc>)(?:<lang_en>|<lang_fr>)$",
            "default_prefix": "<pnc><lang_en>",
        }

    spec = load_hardware(saved(tmp_path, change)).prefix_spec
    assert spec is not None
    assert spec.prefixes == ("<nopnc><lang_en>", "<nopnc><lang_fr>", "<pnc><lang_en>", "<pnc><lang_fr>")
    assert spec.default == "<pnc><lang_en>"


def test_keys_from_the_future(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["novelty"] = {"weights": torch.ones(3)}

    assert load_hardware(saved(tmp_path, change)).other_keys == ("novelty",)


def test_hard_activations_elsewhere_are_not_passed_over(tmp_path: Path) -> None:
    def write(section: str | None, value: Any) -> Path:
        def change(c: Checkpoint) -> None:
            tree = c["rnnt_config"] if section is None else c["rnnt_config"].setdefault(section, {})
            tree["hard_activation_functions"] = value

        return saved(tmp_path, change)

    for section in (None, "encoder"):
        where = "rnnt_config: " + ("" if section is None else f"{section}.") + "hard_activation_functions"
        for value, found in ((True, "found True"), ("yes", "found yes"), ([], "found a list")):
            refused(write(section, value), f"{where}: ", "outside the section rnnt is not understood", found)
        for off in (False, None):
            assert not load_hardware(write(section, off)).hard_sigmoid


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"hard_activation_functions": True, "custom_lstm": True}, True),
        ({"hard_activation_functions": True}, True),
        ({"hard_activation_functions": True, "custom_lstm": False}, False),
        ({"hard_activation_functions": False, "custom_lstm": True}, False),
        ({"custom_lstm": True}, False),
    ],
)
def test_hard_activations(tmp_path: Path, section: dict[str, bool], expected: bool) -> None:
    def change(c: Checkpoint) -> None:
        c["rnnt_config"]["rnnt"] |= section

    checkpoint = load_hardware(saved(tmp_path, change))
    assert (checkpoint.hard_sigmoid, checkpoint.hard_tanh) == (expected, expected)


def test_whole_training_configuration(tmp_path: Path) -> None:
    # Up to 1.7 the configuration held everything the training was told.
    def change(c: Checkpoint) -> None:
        c["rnnt_config"] |= {"input_train": {"audio_dataset": {}}, "grad_noise_scheduler": {"noise_level": 0.0}}
        c["rnnt_config"]["input_val"]["filterbank_features"]["stats_path"] = "/datasets/stats"
        c["rnnt_config"]["rnnt"] |= {"enc_dropout": 0.1, "joint_apex_transducer": "pack"}

    assert load_hardware(saved(tmp_path, change)).dims == SMALL


def test_best_wer_before_validation(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> None:
        c["best_wer"] = float("inf")

    assert load_hardware(saved(tmp_path, change)).best_wer == float("inf")


def test_window_without_configuration(tmp_path: Path) -> None:
    # The testing model, known by its classes, has the shorter window.
    def change(c: Checkpoint) -> None:
        del c["rnnt_config"]
        state = c["state_dict"]
        state["joint_net.2.weight"], state["joint_net.2.bias"] = torch.zeros(1024, 64), torch.zeros(1024)
        state["prediction.embed.weight"] = torch.zeros(1023, 64)
        # 1023 pieces of one letter each, as the protocol buffer writes them.
        c["sentpiece_model"] = b"\x0a\x03\x0a\x01a" * 1023

    assert load_hardware(saved(tmp_path, change)).features.window_size == 0.02


# Other files


def test_training_checkpoint(tmp_path: Path) -> None:
    def change(c: Checkpoint) -> Checkpoint:
        state = c["state_dict"]
        return {"state_dict": state, "ema_state_dict": state, "optimizer": {"state": {0: {"step": 1}}}, "epoch": 1}

    error = refused(saved(tmp_path, change), "training checkpoint: export it first", "ema_state_dict, optimizer")
    assert "gharial export" in (error.remedy or "")


def test_bare_state_dict(tmp_path: Path) -> None:
    refused(saved(tmp_path, lambda c: c["state_dict"]), "bare state dict")


@pytest.mark.parametrize("value", [[1, 2], "text", 3, None])
def test_no_dict(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "m.pt"
    torch.save(value, path)
    refused(path, "no hardware checkpoint")


# Top-level keys


@pytest.mark.parametrize("key", ["state_dict", "melmeans", "melvars", "sentpiece_model"])
@pytest.mark.parametrize("how", ["absent", "none"])
def test_missing_key(tmp_path: Path, key: str, how: str) -> None:
    def change(c: Checkpoint) -> None:
        del c[key]
        if how == "none":
            c[key] = None

    refused(saved(tmp_path, change), f"the key {key} is missing")


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("epoch", "1", "epoch has a value"),
        ("epoch", True, "epoch has a value"),
        ("epoch", -1, "epoch has a value"),
        ("step", 1.5, "step has a value"),
        ("best_wer", float("nan"), "best_wer has a value"),
        ("best_wer", torch.tensor(3.0), "best_wer has a value"),
        ("best_wer", 1 << 1100, "best_wer has a value"),
        ("version", 1, "version has a value"),
        ("version", "1" * 1025, "found 1,025 characters, expected at most 1,024"),
        ("epoch", "3", "found the text '3', expected an integer"),
        ("melalpha", -0.1, "melalpha has a value"),
        ("melalpha", 1.0, "melalpha has a value"),
        ("melalpha", None, ""),
        ("ngram", [], "ngram: this must be a dict"),
        ("ngram", {"binary": "text"}, "binary has a value"),
        ("ngram", {"binary": b""}, "binary has a value"),
        ("ngram", {"scale_factor": "x"}, "scale_factor has a value"),
        ("rnnt_config", [1], "rnnt_config: this must be a dict"),
        ("rnnt_config", {"rnnt": 3}, "rnnt_config.rnnt: this must be a dict"),
        ("rnnt_config", {"rnnt": {"enc_n_hid": "64"}}, "enc_n_hid has a value"),
        ("rnnt_config", {"rnnt": {"enc_n_hid": 1 << 40}}, "enc_n_hid has a value"),
        ("rnnt_config", {"rnnt": {"hard_activation_functions": 1}}, "hard_activation_functions has a value"),
        ("prefix_spec", "x", "prefix_spec: this must be a dict"),
        ("prefix_spec", {}, "valid_prefix is missing"),
        ("prefix_spec", {"valid_prefix": "^(?:a|b)$", "default_prefix": "c"}, "default prefix is not a valid one"),
        ("prefix_spec", {"valid_prefix": "a" * 5000}, "too long"),
        ("sentpiece_model", "text", "sentpiece_model has a value"),
        ("sentpiece_model", b"not a model", "no SentencePiece model"),
        ("sentpiece_model", b"\x0a\x03\x0a\x01a" * 99, "does not fit the output layer"),
        ("state_dict", [], "must be a dict of tensors"),
        ("state_dict", {}, "must be a dict of tensors"),
        ("state_dict", {"a": 3}, "entry a is no tensor"),
        ("state_dict", {3: torch.ones(3)}, "entry 3 is no tensor"),
        ("state_dict", {"a": torch.ones(3)}, "no weights of an RNN-T"),
        ("melmeans", torch.zeros(79), "melmeans does not fit"),
        ("melmeans", torch.zeros(80, dtype=torch.float64), "float64 (80,)"),
        ("melmeans", [0.0] * 80, "melmeans does not fit"),
        ("melmeans", torch.full((80,), float("nan")), "80 of 80 values"),
        ("melvars", torch.zeros(80), "melvars must be above 0"),
        ("melvars", torch.full((80,), float("inf")), "NaN or infinity"),
    ],
)
def test_bad_key(tmp_path: Path, key: str, value: Any, part: str) -> None:
    def change(c: Checkpoint) -> None:
        c[key] = value

    path = saved(tmp_path, change)
    if part:
        refused(path, part)
    else:
        load_hardware(path)


@pytest.mark.parametrize("key", [*demo(), "prefix_spec"])
def test_a_tensor_where_something_else_should_be(tmp_path: Path, key: str) -> None:
    def change(c: Checkpoint) -> None:
        c[key] = torch.zeros(3)

    refused(saved(tmp_path, change), key)


@pytest.mark.parametrize(
    ("section", "key", "value", "part"),
    [
        ("filterbank_features", "n_filt", 40, "features do not fit"),
        ("filterbank_features", "window", "hamming", "with this window"),
        ("filterbank_features", "normalize", "all_features", "with this normalize"),
        ("filterbank_features", "window_size", 0.064, "longer than the Fourier transform"),
        ("filterbank_features", "sample_rate", 0, "sample_rate has a value"),
        ("filterbank_features", "window_stride", float("nan"), "window_stride has a value"),
        ("filterbank_features", "n_fft", 512.0, "n_fft has a value"),
        ("frame_splicing", "frame_stacking", 2, "features do not fit"),
        ("frame_splicing", "frame_subsampling", 0, "frame_subsampling has a value"),
        ("filterbank_features", "n_fft", 511, "n_fft is out of range\nfound 511, expected a power of two"),
        ("filterbank_features", "window_stride", 0.026, "window is out of range\nfound 400, expected at least the hop"),
        ("frame_splicing", "frame_subsampling", 1, "subsampling is out of range\nfound 1, expected stacking, 3"),
    ],
)
def test_bad_feature_settings(tmp_path: Path, section: str, key: str, value: Any, part: str) -> None:
    def change(c: Checkpoint) -> None:
        c["rnnt_config"]["input_val"][section][key] = value

    refused(saved(tmp_path, change), "rnnt_config", part)


@pytest.mark.parametrize(
    ("key", "value", "right"),
    [
        ("in_feats", 241, 240),
        ("enc_n_hid", 65, 64),
        ("enc_pre_rnn_layers", 3, 2),
        ("enc_post_rnn_layers", 1, 2),
        ("enc_stack_time_factor", 3, 2),
        ("pred_n_hid", 63, 64),
        ("pred_rnn_layers", 2, 1),
        ("joint_n_hid", 128, 64),
    ],
)
def test_configuration_against_tensors(tmp_path: Path, key: str, value: int, right: int) -> None:
    def change(c: Checkpoint) -> None:
        c["rnnt_config"]["rnnt"][key] = value

    refused(saved(tmp_path, change), f"rnnt_config.rnnt.{key} contradicts", f"found {value}, expected {right}")
