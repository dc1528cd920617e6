# SPDX-License-Identifier: Apache-2.0
"""Transcripts with times for other programs: SubRip, WebVTT and NIST CTM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from gharial.recognise.transcript import Transcript, Word

CUE_CHARACTERS = 42
"""Most characters of a cue: one line as broadcasters set it. A longer word stands alone."""

CUE_SECONDS = 6.0
"""Most seconds from a cue's first word to the end of its last."""

CUE_GAP_SECONDS = 1.0
"""A silence as long as this begins a new cue."""


@dataclass(frozen=True)
class Cue:
    """Some words shown together, start and end in seconds."""

    start: float
    end: float
    text: str


def cues(words: Sequence[Word]) -> list[Cue]:
    """Words grouped for the screen; every cue ends before the next begins."""
    groups: list[list[Word]] = []
    length = 0
    for word in words:
        group = groups[-1] if groups else []
        if (
            not group
            or length + 1 + len(word.text) > CUE_CHARACTERS
            or word.end - group[0].start > CUE_SECONDS
            or word.start - group[-1].end >= CUE_GAP_SECONDS
        ):
            groups.append([word])
            length = len(word.text)
        else:
            group.append(word)
            length += 1 + len(word.text)
    found = []
    for index, group in enumerate(groups):
        # Tokens of one step share its times, so a word may begin before the one in front of it has ended.
        limit = groups[index + 1][0].start if index + 1 < len(groups) else group[-1].end
        end = max(group[0].start, min(group[-1].end, limit))
        found.append(Cue(group[0].start, end, " ".join([word.text for word in group])))
    return found


def srt(transcript: Transcript) -> str:
    """SubRip text, "" for a transcript without words."""
    blocks = [
        f"{number}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{cue.text}\n"
        for number, cue in enumerate(cues(transcript.words), 1)
    ]
    return "\n".join(blocks)


def vtt(transcript: Transcript) -> str:
    """WebVTT text."""
    blocks = ["WEBVTT\n"]
    for cue in cues(transcript.words):
        text = cue.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        blocks.append(f"{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{text}\n")
    return "\n".join(blocks)


def ctm(transcript: Transcript, file: str) -> str:
    """CTM lines: recording, channel, start, duration, word, confidence.

    The recording's name is the file's without folder and extension.
    """
    # White space separates the columns, so none may be inside a name.
    name = "_".join(PurePath(file).stem.split()) or "-"
    return "".join(
        [
            f"{name} 1 {word.start:.3f} {max(0.0, word.end - word.start):.3f} {word.text} {word.confidence:.4f}\n"
            for word in transcript.words
        ]
    )


def _clock(seconds: float, point: str) -> str:
    milliseconds = round(max(0.0, seconds) * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}{point}{rest % 1000:03d}"
