# SPDX-License-Identifier: Apache-2.0
"""What a path and the first bytes of a file say beyond what a decoder makes of it."""

from __future__ import annotations

import os
import re
from typing import BinaryIO

from gharial.errors import BadInput
from gharial.files import LFS_POINTER, open_regular

# (offset, bytes, what the file is): things that people hand over and libsndfile does not read.
_OTHERS = (
    (0, LFS_POINTER, "a Git LFS pointer, not the file itself"),
    (4, b"ftyp", "an MP4 or M4A file"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska or WebM file"),
    (0, b"PK\x03\x04", "a zip file"),
    (0, b"\x1f\x8b", "a gzip file"),
)
_HEAD_BYTES = 64

# What libsndfile says of a damaged file where it has no better word.
_VAGUE = ("File does not exist", "Unspecified internal error")

# A line of libsndfile's log on a chunk that claims more bytes than the file has. The outer RIFF or FORM size is left
# out: many writers get it wrong while the sound is all there. RF64 and W64 state only the outer one in this form.
_SHORT = re.compile(r"^\s*(?:data|SSND|Data Size|Riff size|riff)\s*: (\d+) \(should be (\d+)\)", re.MULTILINE)

# Sizes from here on are what a writer to a pipe puts down when it does not know the length (0xFFFFFFFF, 0x7FFFFFFF
# and a little less): no promise that could be broken.
_UNKNOWN_SIZE = 0x7FFF0000


def open_recording(path: str) -> BinaryIO:
    """The file, open for reading.

    Raises:
        BadInput: there is none, it is not a plain file, it is empty, or it may not be read.
    """
    file = open_regular(path, "an audio file, or s16le mono samples at 16 kHz piped to '-'")
    if os.fstat(file.fileno()).st_size == 0:
        file.close()
        raise BadInput("the file is empty", where=path, found="0 bytes", expected="an audio file")
    return file


def not_audio(path: str, file: BinaryIO, reason: str) -> BadInput:
    """Error for a file that libsndfile refused with `reason`; says what the file is where its first bytes tell."""
    head = os.pread(file.fileno(), _HEAD_BYTES, 0)
    found = next((what for at, magic, what in _OTHERS if head[at : at + len(magic)] == magic), None)
    if reason.startswith(_VAGUE):
        reason = "a header that is damaged or cut short"
    remedy = "convert it first: ffmpeg -i FILE -ar 16000 -ac 1 out.wav"
    if found is None and re.fullmatch(rb"[\t\n\r\x20-\x7e]+", head):
        found, remedy = f"text ({head[:24].decode('ascii')!r}...)", "check that this is the file you meant"
    elif found is not None and "LFS" in found:
        remedy = "fetch the file itself: git lfs pull"
    return BadInput(
        "not an audio file that can be read",
        where=path,
        found=found or reason,
        expected="WAV, FLAC, OGG, MP3 or another format that libsndfile reads",
        remedy=remedy,
    )


def short_by_header(log: str) -> tuple[int, int] | None:
    """(bytes promised, bytes there) where libsndfile's log of a header says that the file was cut short.

    Read from the log since libsndfile otherwise corrects the length in silence; None where it says nothing.
    """
    for match in _SHORT.finditer(log):
        promised, there = int(match[1]), int(match[2])
        if there < promised < _UNKNOWN_SIZE:
            return promised, there
    return None
