# SPDX-License-Identifier: Apache-2.0
"""Sentences to build an n-gram from: text files, a sentence a line, and manifests of recordings, read as a stream."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Any

from gharial.bench.manifest import MANIFEST
from gharial.checkpoint.text import shown
from gharial.errors import BadInput
from gharial.files import LFS_POINTER, open_regular
from gharial.ngram.arpa import GZIP

_OBJECT = re.compile(rb'\s*\{\s*"[^"\n]*"\s*:')
_TAR, _TAR_AT = b"ustar", 257
_LONGEST = 1 << 20  # bytes of a line, or of a manifest's utterance
_CHUNK = 1 << 20
_EXPECTED = "a text file, a manifest or a set"
_SPLIT = "break the text into lines, each a sentence"
_CONVERT = "convert it: iconv -f ENCODING -t UTF-8"
_UNPACK = "unpack it: tar -xf FILE.tar -C DIR; awk 1 DIR/*.txt > TEXT"  # awk ends the last line of each file
_MANIFEST = 'write a list: [{"transcript": text, ...}, ...], or give text with a sentence a line'

Read = Callable[[int, int], object]
"""Called with the bytes read so far, and those of all files."""


def corpus_files(names: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files behind names of texts, manifests and sets (folders with a manifest), each looked at.

    Raises:
        BadInput: one is not there, or is no plain file.
    """
    paths = []
    for name in names:
        path = Path(name)
        folder = path.is_dir()
        path = path / MANIFEST if folder else path
        open_regular(path, _EXPECTED, "a folder must hold a manifest.json" if folder else None).close()
        paths.append(path)
    return paths


def sentences(paths: Sequence[Path], read: Read) -> Iterator[str]:
    """All sentences of the files, in order; empty ones are left out.

    Args:
        paths: what `corpus_files` gave: text (gzip too; UTF-8), or JSON lists of {"transcript": text}.
        read: called now and then.

    Raises:
        BadInput: text that is not UTF-8, a line or utterance of over 1 MiB, a manifest that is not in the format.
    """
    total = sum(path.stat().st_size for path in paths)
    before = 0
    for path in paths:
        with open_regular(path, _EXPECTED) as raw:
            for sentence in _of_file(raw, path):
                read(before + raw.tell(), total)
                stripped = sentence.strip()
                if stripped:
                    yield stripped
        before += path.stat().st_size
        read(min(before, total), total)


def _of_file(raw: BufferedReader, path: Path) -> Iterator[str]:
    packed = raw.read(len(GZIP)) == GZIP
    raw.seek(0)
    file: BufferedIOBase = gzip.GzipFile(fileobj=raw) if packed else raw
    try:
        first = file.read(_CHUNK)
        if first.startswith(LFS_POINTER):
            raise BadInput("this is a Git LFS pointer", path, "no text", _EXPECTED, "git lfs pull")
        yield from _manifest(file, first, path) if first.lstrip().startswith(b"[") else _lines(file, first, path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput("the packed file is damaged", path, error, "a whole gzip file", "copy it again") from None


def _lines(file: BufferedIOBase, first: bytes, path: Path) -> Iterator[str]:
    if first[_TAR_AT:].startswith(_TAR):
        raise BadInput("this is a tar archive", path, "no lines of text", _EXPECTED, _UNPACK)
    if _OBJECT.match(first):
        what = "these are JSON objects, not a list of them"
        raise BadInput(what, path, shown(first[:40]), "a JSON list, or text", _MANIFEST)
    number = 0
    rest = b""
    data = first
    while data or rest:
        *whole, rest = (rest + data).split(b"\n") if data else (rest, b"")
        for line in whole:
            number += 1
            yield _text(line, path, number)
        if len(rest) > _LONGEST:
            raise BadInput(
                "a line is too long", f"{path}, line {number + 1}", "over 1 MiB", "a sentence a line", _SPLIT
            )
        data = file.read(_CHUNK)


def _text(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {line[error.start]:#04x} at column {error.start + 1}"
        raise BadInput("the text is not UTF-8", f"{path}, line {number}", found, "UTF-8", _CONVERT) from None


def _manifest(file: BufferedIOBase, first: bytes, path: Path) -> Iterator[str]:
    """Transcripts of a JSON list, parsed one utterance at a time."""
    for index, entry in enumerate(_entries(file, first, path)):
        transcript = entry.get("transcript") if isinstance(entry, dict) else None
        if not isinstance(transcript, str):
            raise BadInput(
                "transcript is missing or not text",
                f"{path}, utterance {index}",
                shown(transcript if isinstance(entry, dict) else entry),
                '{"transcript": text}',
                _MANIFEST,
            )
        if any("\ud800" <= c <= "\udfff" for c in transcript):
            where = f"{path}, utterance {index}"
            raise BadInput(
                "transcript is no text", where, shown(transcript), "characters, not halves of them", _MANIFEST
            )
        yield from transcript.splitlines()


def _entries(file: BufferedIOBase, first: bytes, path: Path) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    text = _Text(file, first, path)
    text.skip("[")
    if text.peek() == "]":
        text.end()
        return
    while True:
        while True:
            try:
                entry, end = decoder.raw_decode(text.buffer)
            except (ValueError, RecursionError) as error:
                if len(text.buffer) > _LONGEST or not text.more():
                    raise BadInput("the manifest is not JSON", path, error, "a list of utterances", _MANIFEST) from None
            else:
                break
        text.buffer = text.buffer[end:]
        yield entry
        following = text.peek()
        if following == "]":
            text.end()
            return
        text.skip(",")
        text.peek()


class _Text:
    """What has been read of a manifest and not used yet."""

    def __init__(self, file: BufferedIOBase, first: bytes, path: Path) -> None:
        self._file = file
        self._path = path
        self._bytes = b""
        self.buffer = ""
        self._add(first)

    def more(self) -> bool:
        """Read on; False at the end."""
        data = self._file.read(_CHUNK)
        self._add(data)
        return bool(data)

    def peek(self) -> str:
        """The next character that is no white space, '' at the end."""
        self.buffer = self.buffer.lstrip()
        while not self.buffer and self.more():
            self.buffer = self.buffer.lstrip()
        return self.buffer[:1]

    def end(self) -> None:
        """Go past the list's end, behind which there is nothing."""
        self.skip("]")
        if self.peek():
            what = "the manifest goes on behind its list"
            raise BadInput(what, self._path, shown(self.buffer[:40]), "its end", _MANIFEST)

    def skip(self, character: str) -> None:
        """Go past this character."""
        found = self.peek()
        if found != character:
            seen = shown(found) or "its end"
            raise BadInput("the manifest is not JSON", self._path, seen, character, _MANIFEST)
        self.buffer = self.buffer[1:]

    def _add(self, data: bytes) -> None:
        data = self._bytes + data
        try:
            text, self._bytes = data.decode("utf-8"), b""
        except UnicodeDecodeError as error:
            if len(data) - error.start >= 4:  # not a character that goes on in the next piece
                found = f"byte {data[error.start]:#04x}"
                raise BadInput("the manifest is not UTF-8", self._path, found, "UTF-8", _CONVERT) from None
            text, self._bytes = data[: error.start].decode("utf-8"), data[error.start :]
        self.buffer += text
