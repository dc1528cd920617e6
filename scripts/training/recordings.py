# SPDX-License-Identifier: Apache-2.0
"""The recordings that strings of words are made of, and which speaker belongs to which set.

Speech Commands names a file HASH_nohash_TAKE.flac; the hash stands for the speaker. A speaker's set is decided by a
hash of that name and by nothing else, so it never changes with the files that happen to be there; but for those whom
other strings judge models by, who belong to none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gharial.audio import open_audio, read_all
from gharial.errors import BadInput

WORDS = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes")
"""Words of the demo model."""

SETS = ("train", "dev", "test")

# fmt: off
HELD_OUT = frozenset((
    "022cd682", "0f250098", "105a0eea", "1acc97de", "1f3bece8", "2796ac50", "27c30960", "2c6d3924", "2d82a556",
    "2fa39636", "3659fc1c", "3d86b69a", "4620dc14", "4c4d2526", "5828dfa2", "5b1db3ee", "5c8af87a", "5f01c798",
    "67961766", "692a88e6", "7192fddc", "7257420c", "82b99576", "82d0d3ba", "8494fba8", "94de6a6a", "95ba4996",
    "a591c2ea", "af8b2f2c", "bed06fac", "c9b5ff26", "ca48dc76", "cfde27ba", "d0faf7e4", "d103dd6e", "d5ca80c6",
    "d7467392", "e71b4ce6", "e9901cf0", "f2e59fea", "fdb5155e",
))
# fmt: on
"""Speakers of the strings of `sc_speakers`, by which models are judged: they belong to none of the sets. Found by the
recordings themselves, which are the same samples in both places."""

_MARK = "_nohash_"
_SALT = "gharial-demo/"
_PARTS = 10  # of them one is dev, one test
_FRAME = 160  # samples, 10 ms
_QUIETER_DB = 32.0  # than the loudest frame: no speech
_FULL_SCALE = 32768.0


@dataclass(frozen=True, eq=False)
class Recording:
    """A spoken word.

    Attributes:
        word: what is said.
        speaker: hash that stands for the speaker.
        samples: (n,) float32, full scale 1, 16 kHz, read-only.
        speech: first sample of the speech and the one after its last, by level.
    """

    word: str
    speaker: str
    samples: np.ndarray
    speech: tuple[int, int]


def set_of(speaker: str) -> str:
    """Which of `SETS` a speaker belongs to; "held out" for those of `HELD_OUT`."""
    if speaker in HELD_OUT:
        return "held out"
    part = int(hashlib.sha256(f"{_SALT}{speaker}".encode()).hexdigest()[:8], 16) % _PARTS
    return {0: "dev", 1: "test"}.get(part, "train")


def speaker_of(path: Path) -> str:
    """The speaker that a file's name gives.

    Raises:
        BadInput: the name is not of the form HASH_nohash_TAKE.
    """
    speaker, mark, _ = path.stem.partition(_MARK)
    if not mark or not speaker:
        raise BadInput("the file's name does not tell the speaker", path, path.name, "HASH_nohash_TAKE.flac")
    return speaker


def read_words(folder: Path, which: str, words: Sequence[str] = WORDS) -> list[Recording]:
    """Recordings of one set, in the order of their names.

    Args:
        folder: holds a folder of files a word.
        which: one of `SETS`.
        words: the words wanted.

    Raises:
        BadInput: a word has no folder or no recording of the set's speakers; a file cannot be read.
    """
    found: list[Recording] = []
    for word in words:
        paths = [path for path in sorted((folder / word).glob("*.flac")) if set_of(speaker_of(path)) == which]
        if not paths:
            raise BadInput(
                f"no recordings of '{word}' by speakers of the set {which}",
                folder / word,
                expected="files HASH_nohash_TAKE.flac",
                remedy="name the folder that holds speech_commands by --data or GHARIAL_DATA",
            )
        for path in paths:
            samples = read(path)
            found.append(Recording(word, speaker_of(path), samples, speech_bounds(samples)))
    return found


def read_noises(folder: Path) -> list[np.ndarray]:
    """Recordings of background noise, each (n,) float32 with a root mean square of 1; those of silence are left out."""
    noises = []
    for path in sorted((folder / "silence").glob("*.flac")):
        samples = read(path)
        level = float(np.sqrt(np.mean(np.square(samples)))) if len(samples) else 0.0
        if level > 1.0 / _FULL_SCALE:
            noises.append(samples / np.float32(level))
    return noises


def read(path: Path) -> np.ndarray:
    """Samples of a file, (n,) float32, full scale 1, 16 kHz."""
    with open_audio(path) as source:
        samples = read_all(source)
    values = samples.astype(np.float32)
    if samples.dtype == np.int16:
        values /= np.float32(_FULL_SCALE)
    values.setflags(write=False)
    return values


def speech_bounds(samples: np.ndarray) -> tuple[int, int]:
    """First sample of the first loud frame of 10 ms, and the sample after the last; (0, n) where there is no sound."""
    frames = len(samples) // _FRAME
    energy = np.square(samples[: frames * _FRAME].reshape(frames, _FRAME)).mean(axis=1)
    if frames == 0 or float(energy.max()) == 0.0:
        return 0, len(samples)
    loud = np.flatnonzero(energy > float(energy.max()) * 10.0 ** (-_QUIETER_DB / 10.0))
    return int(loud[0]) * _FRAME, (int(loud[-1]) + 1) * _FRAME
