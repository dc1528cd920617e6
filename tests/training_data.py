# SPDX-License-Identifier: Apache-2.0
"""A folder laid out as Speech Commands, of made-up words that a network can tell apart within a few updates."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import soundfile
from scripts.training.recordings import SETS, WORDS, set_of

from gharial.audio import SAMPLE_RATE


def speakers(each: int) -> list[str]:
    """Names of speakers, `each` of every set."""
    found: dict[str, list[str]] = {name: [] for name in SETS}
    for number in count():
        name = f"{number:08x}"
        if len(found[set_of(name)]) < each:
            found[set_of(name)].append(name)
        if all(len(names) == each for names in found.values()):
            return [name for names in found.values() for name in names]
    raise AssertionError


def write(folder: Path, each: int = 2) -> Path:
    """The data folder: one take a word and speaker, a tone of the word's pitch; two recordings of noise."""
    random = np.random.default_rng(1)
    time = np.arange(SAMPLE_RATE // 4) / SAMPLE_RATE
    for index, word in enumerate(WORDS):
        (folder / "speech_commands" / word).mkdir(parents=True)
        for speaker in speakers(each):
            pitch = 300.0 * 1.3**index * random.uniform(0.97, 1.03)
            tone = 0.3 * np.sin(2.0 * np.pi * pitch * time) * np.hanning(len(time))
            samples = np.concatenate([np.zeros(2000), tone, np.zeros(2000)]) + 1e-4 * random.standard_normal(8000)
            soundfile.write(folder / "speech_commands" / word / f"{speaker}_nohash_0.flac", samples, SAMPLE_RATE)
    (folder / "speech_commands" / "silence").mkdir()
    for name, level in (("1", 0.01), ("2", 0.0)):
        noise = level * random.standard_normal(4000)
        soundfile.write(folder / "speech_commands" / "silence" / f"{name}.flac", noise, SAMPLE_RATE)
    return folder
