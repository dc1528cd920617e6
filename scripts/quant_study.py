#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what each choice of the compiler costs or gains: one choice changed at a time, everything else as it is.

The models are the shipped one, those of the folder that GHARIAL_DATA names, and one of the size of base with random
weights. Trained models are led along the float model's own path through utterances that calibration has not seen, the
random one along fixed labels through five seconds of speech. docs/quantisation.md tells what came of it.

  python -m scripts.quant_study --utterances 20
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import gharial
from gharial.checkpoint import HardwareCheckpoint, load_hardware
from gharial.compiler.calibrate import Calibration, audio_features, calibrate
from gharial.compiler.compile import compile_checkpoint
from gharial.compiler.quantise import INT4, INT8, WeightType, row_scales
from gharial.compiler.units import Units, choose_units
from gharial.features import FeatureSpec, quantise_features
from gharial.fidelity import Recording, compare
from gharial.fidelity.compare import Comparison
from gharial.fidelity.forced import float_tensors
from gharial.fidelity.noise import TensorNoise
from gharial.floating import FloatNetwork, RangeCollector
from gharial.floating.calibrate import decode_greedily
from gharial.model import demo_model
from scripts import random_models
from scripts.bench import RECORDINGS, data_folder
from scripts.bench_fidelity import labels, speech

FITTED = WeightType("int8", 127, fitted=True)
PLAIN4 = WeightType("int4", 7, fitted=False)


@dataclass(frozen=True)
class Subject:
    """A model and the speech it is measured on."""

    name: str
    checkpoint: HardwareCheckpoint
    calibration: Calibration
    network: FloatNetwork
    recordings: list[Recording]


def subjects(utterances: int, folder: Path) -> Iterator[Subject]:
    """The models, each with its speech."""
    data = data_folder()
    trained = [("demo-small", demo_model())]
    if data is not None and (data / "models" / "demo-medium.hw.pt").is_file():
        trained.append(("demo-medium", data / "models" / "demo-medium.hw.pt"))
    speech_folder = RECORDINGS if data is None else data / "sets" / "sc_speakers"
    for name, path in trained:
        checkpoint = load_hardware(path)
        spec = FeatureSpec.from_checkpoint(checkpoint)
        files = sorted(speech_folder.rglob("*.flac"))[:utterances]
        recordings = [Recording(file.name, audio_features(file, spec)) for file in files]
        yield Subject(name, checkpoint, calibrate(checkpoint), FloatNetwork(checkpoint), recordings)
    checkpoint = load_hardware(random_models.named(folder, "base"))
    features = speech(FeatureSpec.from_checkpoint(checkpoint))
    recording = Recording("speech", features, labels(features, checkpoint.dims))
    yield Subject("random base", checkpoint, calibrate(checkpoint), FloatNetwork(checkpoint), [recording])


def floats(subject: Subject, units: Units) -> Iterator[tuple[str, Comparison]]:
    """The float model with a single thing quantised: what that alone costs."""

    def coarse(x: np.ndarray) -> np.ndarray:
        return quantise_features(x, units.feature_bits) * np.float32(2.0**-units.feature_bits)

    def two_bytes(x: np.ndarray) -> np.ndarray:
        rest = x - coarse(x)
        bits = units.feature_bits + 8
        return coarse(x) + quantise_features(rest, bits) * np.float32(2.0**-bits)

    state = {}
    for name, array in subject.checkpoint.state.items():
        if array.ndim == 2 and "embed" not in name:
            scale = row_scales(array, INT8)[:, None]
            array = (np.floor(array / np.where(scale > 0, scale, 1) + 0.5) * scale).astype(np.float32)
        state[name] = array
    rounded = FloatNetwork(replace(subject.checkpoint, state=state))
    for name, network, change in (
        ("int8 features alone", subject.network, coarse),
        ("features of two bytes alone", subject.network, two_bytes),
        ("int8 weights alone", rounded, lambda x: x),
    ):
        yield name, _float_only(subject, network, change)


def _float_only(subject: Subject, network: FloatNetwork, change: object) -> Comparison:
    """As gharial.fidelity.compare, of two float models."""
    assert callable(change)
    result = Comparison({"logits": TensorNoise(1.0, -(2**31), 2**31)})
    for recording in subject.recordings:
        encoded = subject.network.encode(recording.features)
        path = recording.path
        if path is None:
            (path,) = decode_greedily(subject.network, [encoded["joint_enc"]], RangeCollector())
        exact = float_tensors(subject.network, encoded, path)["logits"]
        found = float_tensors(network, network.encode(change(recording.features)), path)["logits"]
        result.logits.add(exact, found)
        result.evaluations += len(exact)
        result.agreeing += int((exact.argmax(axis=1) == found.argmax(axis=1)).sum())
    return result


def integers(subject: Subject, units: Units) -> Iterator[tuple[str, Comparison]]:
    """Programs with one choice changed."""

    def program(name: str, kind: WeightType = INT8, **changed: object) -> tuple[str, Comparison]:
        other = replace(units, **changed)  # type: ignore[arg-type]
        made = compile_checkpoint(subject.checkpoint, None, subject.calibration, kind, other)
        return name, compare(made, subject.network, subject.recordings, only="logits")

    def shifted(bits: dict[str, int], by: int, low: int, high: int) -> dict[str, int]:
        return {name: min(high, max(low, value + by)) for name, value in bits.items()}

    yield program("as compiled")
    yield program("weights: scale by least squares", FITTED)
    yield program("weights: int4, least squares", INT4)
    yield program("weights: int4, by the largest", PLAIN4)
    for bits in range(2, 7):
        mark = " (chosen)" if bits == units.feature_bits else ""
        yield program(f"features: qf {bits}{mark}", feature_bits=bits)
    for by in (-1, 1):
        yield program(f"h: qh {by:+d}", h_bits=shifted(units.h_bits, by, 5, 14))
    for by in (-2, -4):
        yield program(f"c: qc {by:+d}", c_bits=shifted(units.c_bits, by, 8, 15))
    top = subject.calibration.ranges.joint.maximum / 127
    for name, unit in (
        ("the largest", top),
        ("0.85 of it as it is", 0.85 * units.joint),
        ("0.7", 0.7 * units.joint),
        ("0.5", 0.5 * units.joint),
    ):
        yield program(f"joint: u_z by {name}", joint=unit)
    yield program("joint: zs 2", joint_shift=min(2, units.joint_shift))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--utterances", metavar="N", type=int, default=20, help="of the set, for trained models (20)")
    parser.add_argument("--only", metavar="NAME", help="one of the models")
    args = parser.parse_args()
    print(f"| {'model':<12} | {'choice':<34} | logits | changes | best class the same  |")
    print(f"|{'-' * 14}|{'-' * 36}|{'-' * 8}|{'-' * 9}|{'-' * 22}|")
    with tempfile.TemporaryDirectory() as folder:
        for subject in subjects(args.utterances, Path(folder)):
            if args.only not in (None, subject.name):
                continue
            units = choose_units(subject.calibration.ranges, subject.calibration.feature_bits)
            for found in (floats(subject, units), integers(subject, units)):
                for name, result in found:
                    logits, changes = (
                        "exact" if value is None else f"{value:.1f} dB"
                        for value in (result.logits.sqnr, result.logits.sqnr_changes)
                    )
                    same = f"{100 * result.agreement:.2f} % of {result.evaluations}"
                    print(f"| {subject.name:<12} | {name:<34} | {logits:>7} | {changes:>7} | {same:<20} |", flush=True)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"quant_study: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
