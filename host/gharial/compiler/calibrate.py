# SPDX-License-Identifier: Apache-2.0
"""Activation ranges of a checkpoint over recordings: those that a user names, or the shipped ones."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gharial.audio import open_audio
from gharial.checkpoint.hardware import HardwareCheckpoint
from gharial.checkpoint.prefixes import Prefixes
from gharial.errors import BadInput
from gharial.features import FeatureSpec, FeatureStream, quantise_features
from gharial.features.vectors import SUFFIX, read_vectors
from gharial.floating.calibrate import Ranges, calibrate_ranges
from gharial.floating.network import FloatNetwork
from gharial.floating.path import TALK

AUDIO_SUFFIXES = (".flac", ".wav", ".ogg", ".mp3")
FEATURE_BITS = range(2, 8)
FEATURE_SAMPLE = 8  # recordings that decide the feature unit
FEATURE_SECONDS = 3.0  # of each of them

_NAME_ONE = "name a folder of recordings, or none for the shipped ones"


def audio_features(path: Path, spec: FeatureSpec) -> npt.NDArray[np.float32]:
    """All feature vectors of a recording, float32 (n, F)."""
    stream = FeatureStream(spec)
    with open_audio(path, spec.sample_rate) as audio:
        vectors = [stream.push(block) for block in audio.blocks()]
    return np.concatenate([*vectors, stream.finish()])


def recorded_features(path: Path, spec: FeatureSpec) -> npt.NDArray[np.float32]:
    """What a network takes of one file of `calibration_files`: of a recording, or of vectors that are given."""
    return read_vectors(path, spec) if spec.given else audio_features(path, spec)


def calibration_files(folder: Path | None, given: bool = False) -> list[Path]:
    """The recordings in a folder (and below it), sorted; None for the shipped ones.

    Args:
        folder: where to look.
        given: for files of vectors that are made elsewhere, of which none are shipped.

    Raises:
        BadInput: the folder is missing or holds no recording.
    """
    if given:
        return _vector_files(folder)
    root = Path(str(files("gharial"))) / "data" / "calibration" if folder is None else folder
    if not root.is_dir():
        raise BadInput("calibration folder not found", root, "no such folder", "a folder of recordings", _NAME_ONE)
    found = sorted(path for path in root.rglob("*") if path.suffix.lower() in AUDIO_SUFFIXES and path.is_file())
    if not found:
        raise BadInput(
            "no recordings to calibrate with",
            root,
            "no such file",
            f"files ending in {', '.join(AUDIO_SUFFIXES)}",
            _NAME_ONE,
        )
    return found


def _vector_files(folder: Path | None) -> list[Path]:
    found = sorted(folder.rglob(f"*{SUFFIX}")) if folder is not None else []
    if not found:
        raise BadInput(
            "no vectors to calibrate with: this network takes vectors that are made elsewhere",
            where=folder,
            expected=f"files ending in {SUFFIX}, each an array (n, features)",
            remedy="name a folder of them (--calibrate DIR); the network's converter writes one",
        )
    return found


@dataclass(frozen=True)
class Calibration:
    """What the compiler learns from recordings: activation ranges, and qf, the fraction bits of the features."""

    ranges: Ranges
    feature_bits: int


def best_feature_bits(network: FloatNetwork, recordings: Sequence[npt.NDArray[np.float32]]) -> int:
    """The fraction bits of int8 features that change the encoder's output least, everything else in float.

    Digital silence lies far below every other value of a log-mel feature, so clipping it is harmless and a range or a
    mean error of the features themselves would mislead.

    Args:
        network: the model.
        recordings: (n, F) feature vectors each, at least one not empty.
    """
    coarse = [
        quantise_features(x, bits).astype(np.float32) * np.float32(2.0**-bits)
        for bits in FEATURE_BITS
        for x in recordings
    ]
    # All together: the weights are read once a step for all of them.
    outputs = [tensors["joint_enc"] for tensors in network.encode_many([*recordings, *coarse])]
    count = len(recordings)
    exact = outputs[:count]

    def error(bits: int) -> float:
        at = count * (1 + FEATURE_BITS.index(bits))
        return float(
            sum(np.square(a - b, dtype=np.float64).sum() for a, b in zip(outputs[at : at + count], exact, strict=True))
        )

    return min(FEATURE_BITS, key=error)


def calibrate(
    checkpoint: HardwareCheckpoint,
    folder: Path | None = None,
    progress: Callable[[int], object] | None = None,
    network: FloatNetwork | None = None,
) -> Calibration:
    """Run recordings through the model in float, decoding greedily after its default prefix, if it has one.

    Where that babbles, it is led along drawn tokens in its place (gharial.floating.path).

    Args:
        checkpoint: the model.
        folder: recordings of speech like the model's task, or vectors for a network that takes these; None for the
            shipped recordings.
        progress: called with the number of recordings done since the last call.
        network: the model's network, where the caller has it already.

    Raises:
        BadInput: no recordings, or one that cannot be read; a prefix that the vocabulary cannot spell.
    """
    spec = FeatureSpec.from_checkpoint(checkpoint)
    float_network = network or FloatNetwork(checkpoint)
    prefixes = Prefixes.of(checkpoint)
    usual = prefixes.usual()
    others = [prefixes.tokens(prefix) for prefix in prefixes.valid or ()]
    sample: list[npt.NDArray[np.float32]] = []
    most = round(FEATURE_SECONDS * spec.sample_rate / (spec.hop * spec.subsampling))

    def features() -> Iterator[npt.NDArray[np.float32]]:
        for path in calibration_files(folder, spec.given):
            vectors = recorded_features(path, spec)
            if len(sample) < FEATURE_SAMPLE:
                sample.append(vectors[:most])
            yield vectors

    different = [prefix for prefix in others if prefix != usual]
    ranges = calibrate_ranges(float_network, features(), progress, usual, different, TALK, checkpoint.path)
    return Calibration(ranges, best_feature_bits(float_network, sample))
