# SPDX-License-Identifier: Apache-2.0
"""Mel statistics of the training strings, and the sets that a training is judged by, as folders of recordings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import soundfile

from gharial.audio import SAMPLE_RATE
from gharial.bench.manifest import read_set
from gharial.features import FeatureSpec, logmel
from gharial.features.logmel import ENERGY_FLOOR
from scripts.training.batches import Batch, collate, vectors_of
from scripts.training.recordings import read
from scripts.training.strings import PLAIN, Mixture, StringMaker

_GROUP = 50  # strings decoded at once

_SEEDS = {"statistics": 101, "dev": 102, "test": 103}


def mel_statistics(maker: StringMaker, mixture: Mixture, longest: int, strings: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each log-mel bin over frames with sound, (80,) float32 each."""
    random = np.random.default_rng(_SEEDS["statistics"])
    spec = FeatureSpec()
    frames = np.concatenate(
        [logmel(maker.make(random, int(random.integers(1, longest + 1)), mixture)[0], spec) for _ in range(strings)]
    )
    frames = frames[frames.max(axis=1) > np.log(ENERGY_FLOOR) + 1.0]
    return frames.mean(axis=0).astype(np.float32), frames.var(axis=0).astype(np.float32)


def write_set(folder: Path, which: str, maker: StringMaker, longest: int, strings: int) -> None:
    """Write the set `which` (dev or test): FLAC files and a manifest in CAIMAN-ASR's format; the same at each call."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(_SEEDS[which])
    entries = []
    for index in range(strings):
        samples, text = maker.make(random, 1 + index * longest // strings, PLAIN)
        name = f"{which}{index:03d}.flac"
        soundfile.write(folder / name, samples, SAMPLE_RATE, subtype="PCM_16")
        seconds = round(len(samples) / SAMPLE_RATE, 4)
        file = {
            "channels": 1,
            "sample_rate": float(SAMPLE_RATE),
            "bitdepth": 16,
            "duration": seconds,
            "num_samples": len(samples),
            "encoding": "FLAC",
            "silent": False,
            "fname": name,
        }
        entries.append(
            {
                "transcript": text,
                "files": [file],
                "original_duration": seconds,
                "original_num_samples": len(samples),
            }
        )
    # The manifest last: a set that is there is whole.
    (folder / "manifest.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def load_set(folder: Path, spec: FeatureSpec, encode: Callable[[str], Sequence[int]]) -> list[Batch]:
    """A set's features, in groups of about one length."""
    items = sorted(
        ((vectors_of(read(item.path), spec), item.transcript) for item in read_set(folder)),
        key=lambda item: len(item[0]),
    )
    groups = [items[start : start + _GROUP] for start in range(0, len(items), _GROUP)]
    return [
        collate([vectors for vectors, _ in group], [encode(text) for _, text in group], [text for _, text in group])
        for group in groups
    ]
