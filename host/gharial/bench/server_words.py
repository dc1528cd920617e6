# SPDX-License-Identifier: Apache-2.0
"""When words were spoken, and when they were on the screen for good: user-perceived latency.

It is the time from the end of a spoken word to the first reply that shows the word and is not overwritten later. Ends
of words come from a CTM file (recording, channel, start, duration, word; as CAIMAN-ASR has it: beside the manifest, of
the same name), or else from the loudness of the recording, where it has as many islands of sound as words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from gharial.audio import SAMPLE_RATE
from gharial.bench.manifest import MANIFEST, Utterance
from gharial.client.protocol import Caption, Reply
from gharial.errors import BadInput

_WINDOW = SAMPLE_RATE // 100
_QUIET, _LOUD = 0.1, 0.95  # parts of the windows that give floor and level of speech
_THRESHOLD = 0.5  # of the way between them, in dB
_GAP_WINDOWS = 8  # shorter than that is inside a word
_ISLAND_WINDOWS = 6
_CTM_FIELDS = (5, 6)


@dataclass(frozen=True)
class SpokenWord:
    """A word of a recording, and the second at which it ends."""

    text: str
    end: float


def read_ctm(path: Path) -> dict[str, list[SpokenWord]]:
    """Words by recording, in the order of the file.

    Raises:
        BadInput: the file cannot be read, or a line is not in the format.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput("no such file", path, "nothing", "a CTM file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("cannot be read", path, getattr(error, "strerror", None) or error, "a CTM file") from None
    found: dict[str, list[SpokenWord]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or line.startswith(";;"):
            continue
        try:
            if len(fields) not in _CTM_FIELDS:
                raise ValueError
            end = float(fields[2]) + float(fields[3])
        except ValueError:
            expected = "recording, channel, start, duration, word"
            raise BadInput("is no line of a CTM file", f"{path}:{number}", line[:60], expected) from None
        found.setdefault(fields[0], []).append(SpokenWord(fields[4], end))
    return found


class Endings:
    """Ends of the words of a set's recordings.

    Args:
        folder: the set's.
        ctm: a CTM file; None for the one beside the manifest, if there is one.

    Attributes:
        source: "ctm" or "energy".
    """

    def __init__(self, folder: Path, ctm: Path | None = None) -> None:
        beside = (folder / MANIFEST).with_suffix(".ctm")
        path = ctm if ctm is not None else beside if beside.is_file() else None
        self._words = None if path is None else read_ctm(path)
        self.source = "energy" if path is None else "ctm"

    def words(self, utterance: Utterance, samples: np.ndarray) -> list[SpokenWord]:
        """Words of a recording with their ends; none where they are not known.

        Args:
            utterance: which one.
            samples: (n,) int16 at 16 kHz.
        """
        if self._words is not None:
            name = utterance.name
            return self._words.get(name) or self._words.get(Path(name).name) or self._words.get(Path(name).stem) or []
        spoken = utterance.transcript.split()
        ends = islands(samples, len(spoken))
        return [SpokenWord(text, end) for text, end in zip(spoken, ends, strict=True)] if ends else []


def islands(samples: np.ndarray, count: int) -> list[float]:
    """Ends in seconds of so many islands of sound; none where there are fewer or more: which is which is not known.

    Args:
        samples: (n,) int16 at 16 kHz.
        count: of words.
    """
    windows = len(samples) // _WINDOW
    if not count or not windows:
        return []
    power = np.square(samples[: windows * _WINDOW].astype(np.float64).reshape(windows, _WINDOW)).mean(axis=1)
    level = 10 * np.log10(power + 1.0)
    quiet, loud = np.quantile(level, [_QUIET, _LOUD])
    sound = level > quiet + _THRESHOLD * (loud - quiet)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], sound, [False]]).astype(np.int8)))
    found: list[list[int]] = []
    for start, end in edges.reshape(-1, 2).tolist():
        if found and start - found[-1][1] < _GAP_WINDOWS:
            found[-1][1] = end
        else:
            found.append([start, end])
    found = [island for island in found if island[1] - island[0] >= _ISLAND_WINDOWS]
    return [end * _WINDOW / SAMPLE_RATE for _, end in found] if len(found) == count else []


def appearances(replies: Iterable[tuple[float, Reply]]) -> list[tuple[str, float]]:
    """Words of a stream's text, and when each was on the screen for good.

    Args:
        replies: when each came, and what it said.
    """
    caption, shown, since = Caption(), list[str](), list[float]()
    for at, reply in replies:
        caption.take(reply)
        words = caption.text.split()
        same = next(
            (i for i, (a, b) in enumerate(zip(shown, words, strict=False)) if a != b), min(len(shown), len(words))
        )
        since = since[:same] + [at] * (len(words) - same)
        shown = words
    final = caption.final.split()
    return list(zip(final, since[: len(final)], strict=False))


def perceived(spoken: Sequence[SpokenWord], shown: Sequence[tuple[str, float]], begun: float) -> list[float]:
    """Seconds from each word's end to its being on the screen, of the words that were heard right.

    Args:
        spoken: words of the recording.
        shown: as of `appearances`.
        begun: when the recording's first sample was spoken.
    """
    matcher = SequenceMatcher(None, [word.text for word in spoken], [text for text, _ in shown], autojunk=False)
    return [
        shown[block.b + index][1] - (begun + spoken[block.a + index].end)
        for block in matcher.get_matching_blocks()
        for index in range(block.size)
    ]
