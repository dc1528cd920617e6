# SPDX-License-Identifier: Apache-2.0
"""Every version and variant of hardware checkpoints (docs/checkpoints.md), as a whole and through a transcription."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_files import saved
from checkpoint_variants import INSIDE, KENLM, VARIANTS, VERSIONS, of_version
from recordings import FILES, samples

import gharial
from gharial.bench.models import DeviceModel
from gharial.bench.random_model import SHAPES
from gharial.checkpoint import FeatureSettings, HardwareCheckpoint, ModelDims, describe, load_hardware
from gharial.checkpoint.batchnorm import norm_shapes
from gharial.checkpoint.config import Section
from gharial.checkpoint.dims import GROUPS
from gharial.checkpoint.tensors import STORAGE_TYPES, StorageRef, TensorRef
from gharial.checkpoint.weights import weight_refs
from gharial.compiler.calibrate import audio_features
from gharial.errors import BadInput
from gharial.features import FeatureSpec
from gharial.features.logmel import logmel
from gharial.floating.yardstick import TorchRnnt
from gharial.model import demo_model

Tree = dict[str, Any]


def written(folder: Path, tree: Tree, protocol: int) -> Path:
    path = folder / "version.hw.pt"
    torch.save(tree, path, pickle_protocol=protocol)
    return path


def same_model(found: HardwareCheckpoint, truth: HardwareCheckpoint) -> None:
    """Asserts the same weights, statistics and sizes."""
    assert found.dims == truth.dims
    assert list(found.state) == list(truth.state)
    for name, array in truth.state.items():
        np.testing.assert_array_equal(found.state[name], array)
    np.testing.assert_array_equal(found.melmeans, truth.melmeans)
    np.testing.assert_array_equal(found.melvars, truth.melvars)
    assert not found.batch_norm
    assert not found.post_pad.any()


@pytest.mark.parametrize("name", VERSIONS)
def test_version(tmp_path: Path, name: str) -> None:
    version = VERSIONS[name]
    found = load_hardware(written(tmp_path, of_version(version), version.protocol))
    truth = load_hardware(demo_model())
    same_model(found, truth)
    assert (found.epoch, found.step, found.best_wer) == (truth.epoch, truth.step, truth.best_wer)
    assert (found.version, found.melalpha) == (version.stated, version.melalpha)
    assert found.features == truth.features == FeatureSettings()
    assert bool(found.rnnt_config) == ("rnnt_config" in version.keys)
    assert ("input_train" in found.rnnt_config) == version.whole
    assert found.ngram_binary == (KENLM if version.ngram == INSIDE else None)
    assert found.ngram_scale == version.ngram.get("scale_factor")
    if version.prefix_spec is None:
        assert found.prefix_spec is None
    else:
        assert found.prefix_spec is not None
        assert found.prefix_spec.default == version.prefix_spec["default_prefix"]
        assert len(found.prefix_spec.prefixes or ()) == (6 if version.prefix_spec["default_prefix"] else 1)
    facts = describe(tmp_path / "version.hw.pt")
    assert (facts["good"], facts["melalpha"], facts["other_keys"]) == (True, version.melalpha, [])


def test_any_variant_of_any_version(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = load_hardware(demo_model())
    for _ in range(12):
        version = VERSIONS[random.choice(list(VERSIONS))]
        names = random.permutation(list(VARIANTS))[: random.integers(1, len(VARIANTS) + 1)]
        protocol = int(random.integers(2, 6))
        print(f"{version.stated or '1.0'}, protocol {protocol}: {', '.join(names)}")
        tree = of_version(version)
        for name in names:
            VARIANTS[name](tree)
        same_model(load_hardware(written(tmp_path, tree, protocol)), truth)


# Sizes: a description of the tensors is all that is looked at before their data are read.


def described(dims: ModelDims, norms: bool) -> dict[str, TensorRef]:
    """Tensors of a model as a reader sees them before their data, wrapped and with duplicates."""
    shapes = dims.shapes()
    shapes |= {f"joint_fc.{part}": shapes[f"joint_net.2.{part}"] for part in ("weight", "bias")}
    if norms:
        for group in GROUPS:
            layers, _, units = dims.lstm(group)
            shapes |= norm_shapes(group, layers, units)
    return {f"module.{name}": reference(shape) for name, shape in shapes.items()}


def reference(shape: tuple[int, ...]) -> TensorRef:
    storage = StorageRef("0", STORAGE_TYPES["FloatStorage"], int(np.prod(shape)))
    return TensorRef(storage, 0, shape, (shape[-1], 1) if len(shape) == 2 else (1,))


def stated(dims: ModelDims) -> Section:
    """`rnnt_config.rnnt` of a model."""
    sizes = {"in_feats": dims.features, "enc_n_hid": dims.hidden, "enc_pre_rnn_layers": dims.pre_layers}
    sizes |= {"enc_post_rnn_layers": dims.post_layers, "enc_stack_time_factor": dims.stack}
    sizes |= {"pred_n_hid": dims.pred_hidden, "pred_rnn_layers": dims.pred_layers, "joint_n_hid": dims.joint}
    return Section(sizes, "m: rnnt")


def any_dims(random: np.random.Generator) -> ModelDims:
    draw = [int(size) for size in random.integers(1, 7, 4)]
    wide = [int(size) for size in random.integers(3, 2000, 5)]
    return ModelDims(wide[0], wide[1], draw[0], draw[1], draw[2], wide[2], draw[3], wide[3], wide[4])


@pytest.mark.parametrize("name", [*SHAPES, "any", "any other"])
@pytest.mark.parametrize("norms", [False, True])
def test_sizes(name: str, norms: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    dims = SHAPES.get(name) or any_dims(random)
    print(dims)
    good = described(dims, norms)
    for config in (stated(dims), Section(None, "m: rnnt")):
        refs = weight_refs(good, config, "m: state_dict")
        assert refs.dims == dims
        assert list(refs.tensors) == list(dims.shapes())
        assert len(refs.duplicates) == 2
    # One tensor that is not as it should be is named, and no other.
    victim = str(random.choice(list(good)))
    shape = good[victim].shape
    wrong = good | {victim: reference((shape[0] + 1, *shape[1:]))}
    lacking = {key: value for key, value in good.items() if key != victim}
    own = victim.removeprefix("module.")
    optional = own.startswith("joint_fc")
    for tree, word in ((wrong, "misshapen"), (lacking, "missing")):
        if word == "missing" and optional:
            continue
        with pytest.raises(BadInput, match=f"{word}: {own}") as caught:
            weight_refs(tree, stated(dims), "m: state_dict")
        assert "," not in caught.value.what.split(f"{word}: ")[1]
    with pytest.raises(BadInput, match="unexpected: novelty"):
        weight_refs(good | {"module.novelty": reference((3,))}, stated(dims), "m: state_dict")


def test_memory_is_bounded_by_the_file(tmp_path: Path) -> None:
    """Reading takes the file's size and a little; `make bench` shows the same of base and large."""
    dims = ModelDims(240, 640, 2, 2, 2, 256, 1, 256, 256)

    def change(c: Tree) -> None:
        c["state_dict"] = {name: torch.full(shape, 0.01) for name, shape in dims.shapes().items()}
        c["rnnt_config"]["rnnt"] = {}

    path = saved(tmp_path, change)
    size = path.stat().st_size
    assert size > 40 << 20
    tracemalloc.start()
    try:
        found = load_hardware(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.dims == dims
    assert peak < 1.5 * size


def test_bench_of_memory(
    load_script: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = load_script("scripts/bench_checkpoints.py")
    monkeypatch.setitem(bench.SHAPES, "base", ModelDims(240, 160, 1, 1, 2, 64, 1, 64, 64))
    # Of so small a file the interpreter's own growth is many times the size.
    for bound, code in ((1000.0, 0), (0.0, 1)):
        monkeypatch.setattr(bench, "BOUND", bound)
        assert bench.main(["base"]) == code
        assert capsys.readouterr().out.splitlines()[1].startswith("base ")


# Through a whole transcription


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibration")
    for path in FILES[:3]:
        shutil.copy(path, folder)
    return folder


def plain_formula(path: Path, checkpoint: HardwareCheckpoint) -> np.ndarray:
    """Feature vectors by the formula of streaming normalisation, frame by frame and channel by channel."""
    spec = FeatureSpec.from_checkpoint(checkpoint)
    alpha = checkpoint.melalpha
    frames = logmel(samples(path), spec, tail=spec.tail)
    normalised = np.zeros((-(-len(frames) // 3) * 3, 80))
    for channel in range(80):
        m, v = float(checkpoint.melmeans[channel]), float(checkpoint.melvars[channel])
        for t, x in enumerate(frames[:, channel]):
            d = x - m
            m = m + alpha * d
            v = (1 - alpha) * (v + alpha * d * d)
            normalised[t, channel] = (x - m) / v**0.5
    return normalised.astype(np.float32).reshape(-1, 240)


def test_streaming_normalisation(tmp_path: Path, calibration: Path) -> None:
    """A file of 1.0, its rate raised so that a few seconds show it."""
    tree = of_version(VERSIONS["1.0"]) | {"melalpha": 0.01}
    path = written(tmp_path, tree, 2)
    checkpoint = load_hardware(path)
    program_file = tmp_path / "m.gprog"
    gharial.compile_model(path, "ecp5-85f", calibration).write(program_file)
    with gharial.load(program_file) as recogniser:
        device = DeviceModel(recogniser)
        for file in FILES[:4]:
            features = plain_formula(file, checkpoint)
            fixed = audio_features(file, FeatureSpec.from_checkpoint(load_hardware(demo_model())))
            assert np.abs(features - fixed).max() > 0.5
            np.testing.assert_allclose(audio_features(file, recogniser.front_end), features, rtol=1e-5, atol=1e-5)
            expected, other = device.greedy(features), device.greedy(fixed)
            tokens = recogniser.transcribe(file).tokens
            assert [(token.id, token.step) for token in tokens] == list(
                zip(expected.tokens, expected.steps, strict=True)
            )
            assert [token.confidence for token in tokens] != other.confidences


def test_hard_activations(tmp_path: Path) -> None:
    """The integer model follows the float model with hard activations and not the one with soft ones."""

    def change(c: Tree) -> None:
        c["rnnt_config"]["rnnt"] |= {"hard_activation_functions": True, "custom_lstm": True}

    path = saved(tmp_path, change)
    hard, soft = load_hardware(path), load_hardware(demo_model())
    program_file = tmp_path / "m.gprog"
    gharial.compile_model(path, "ecp5-85f").write(program_file)
    exact, other = (TorchRnnt.from_checkpoint(checkpoint) for checkpoint in (hard, soft))
    same, same_soft = [], []
    with gharial.load(program_file) as recogniser:
        device = DeviceModel(recogniser)
        for file in FILES[:4]:
            features = audio_features(file, FeatureSpec.from_checkpoint(soft))
            along = exact.greedy(features).path
            wanted = exact.forced(features, along)
            same += list(device.forced(features, along) == wanted)
            same_soft += list(other.forced(features, along) == wanted)
    assert np.mean(same) >= 0.98 > np.mean(same_soft)
