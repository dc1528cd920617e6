# SPDX-License-Identifier: Apache-2.0
"""Activation ranges of a checkpoint over recordings: those that a user names, or the shipped ones."""

from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gharial.audio import open_audio
from gharial.checkpoint.hardware import HardwareCheckpoint
from gharial.errors import BadInput
from gharial.features import FeatureSpec, FeatureStream
from gharial.floating.calibrate import Ranges, calibrate_ranges
from gharial.floating.network import FloatNetwork

AUDIO_SUFFIXES = (".flac", ".wav", ".ogg", ".mp3")


def checkpoint_spec(checkpoint: HardwareCheckpoint) -> FeatureSpec:
    """The front end that a checkpoint was trained with."""
    settings = checkpoint.features
    return FeatureSpec(
        sample_rate=settings.sample_rate,
        window=settings.window_samples,
        hop=settings.hop_samples,
        n_fft=settings.n_fft,
        n_mels=settings.n_filt,
        stacking=settings.stacking,
        subsampling=settings.subsampling,
        melmeans=checkpoint.melmeans,
        melvars=checkpoint.melvars,
        melalpha=checkpoint.melalpha,
    )


def audio_features(path: Path, spec: FeatureSpec) -> npt.NDArray[np.float32]:
    """All feature vectors of a recording, float32 (n, F)."""
    stream = FeatureStream(spec)
    with open_audio(path, spec.sample_rate) as audio:
        vectors = [stream.push(block) for block in audio.blocks()]
    return np.concatenate([*vectors, stream.finish()])


def calibration_files(folder: Path | None) -> list[Path]:
    """The recordings in a folder (and below it), sorted; None for the shipped ones.

    Raises:
        BadInput: the folder is missing or holds no recording.
    """
    root = Path(str(files("gharial"))) / "data" / "calibration" if folder is None else folder
    if not root.is_dir():
        raise BadInput(
            "calibration folder not found", where=root, remedy="name a folder of recordings, or leave out --calibrate"
        )
    found = sorted(path for path in root.rglob("*") if path.suffix.lower() in AUDIO_SUFFIXES and path.is_file())
    if not found:
        raise BadInput(
            "no recordings to calibrate with",
            where=root,
            expected=f"files ending in {', '.join(AUDIO_SUFFIXES)}",
            remedy="name a folder of recordings, or leave out --calibrate",
        )
    return found


def calibrate(
    checkpoint: HardwareCheckpoint, folder: Path | None = None, progress: Callable[[int], object] | None = None
) -> Ranges:
    """Measure the ranges of every activation in float, decoding greedily.

    Args:
        checkpoint: the model.
        folder: recordings of speech like the model's task; None for the shipped ones.
        progress: called with the number of recordings done since the last call.

    Raises:
        BadInput: no recordings, or one that cannot be read.
    """
    spec = checkpoint_spec(checkpoint)

    def features() -> Iterator[npt.NDArray[np.float32]]:
        for path in calibration_files(folder):
            yield audio_features(path, spec)

    return calibrate_ranges(FloatNetwork(checkpoint), features(), progress)
