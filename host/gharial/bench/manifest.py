# SPDX-License-Identifier: Apache-2.0
"""Test sets: a folder of recordings with a `manifest.json` in CAIMAN-ASR's format.

The manifest is a list of utterances, each `{"transcript": text, "files": [{"fname": name, ...}, ...],
"original_duration": seconds}`. A set may come from anybody, so a file name may only lead to a file inside the folder.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gharial.errors import BadInput
from gharial.files import LFS_POINTER, open_regular

MANIFEST = "manifest.json"

_MAX_BYTES = 1 << 28
_MAX_SECONDS = 1e9
_SHOWN = 60
_WRITE = 'write it so: [{"transcript": text, "files": [{"fname": name}], "original_duration": seconds}, ...]'


@dataclass(frozen=True)
class Utterance:
    """One recording of a set.

    Attributes:
        name: file name as the manifest gives it, relative to the set's folder.
        path: the file, symbolic links resolved.
        transcript: reference text as given; may be empty (a recording of no speech).
        duration_s: seconds by the manifest, or None if it does not say.
    """

    name: str
    path: Path
    transcript: str
    duration_s: float | None


def read_set(folder: Path) -> list[Utterance]:
    """Utterances of a set in the order of its manifest, every field checked and every file there.

    Of an utterance's files the one at the original speed is taken (`speed` absent or 1): the others are made from it
    for training.

    Args:
        folder: the set's folder.

    Raises:
        BadInput: no such folder or manifest, a manifest that is not in the format, a name that leads out of the folder,
            or a file that is not there.
    """
    manifest = folder / MANIFEST
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        expected = f"a set: a folder with recordings and {MANIFEST}"
        raise BadInput("no such folder", folder, found, expected, "check the name, and the folder it is counted from")
    if not manifest.exists():
        raise BadInput("the set has no manifest", folder, "none", f"a file {MANIFEST}", _WRITE)
    with open_regular(manifest, "a manifest", _WRITE) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read() if size <= _MAX_BYTES else b""
    if size > _MAX_BYTES:
        raise BadInput("the manifest is too large", manifest, f"{size} bytes", f"at most {_MAX_BYTES}", "split the set")
    if data.startswith(LFS_POINTER):
        raise BadInput("this is a Git LFS pointer", manifest, f"{len(data)} bytes", "a manifest", "git lfs pull")
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInput("the manifest is not JSON", manifest, error, "a list of utterances", _WRITE) from error
    if not isinstance(entries, list) or not entries:
        raise BadInput("the manifest has no utterances", manifest, _shown(entries), "a list of utterances", _WRITE)
    root = folder.resolve()
    return [_utterance(root, entry, f"{manifest}, utterance {index}") for index, entry in enumerate(entries)]


def _utterance(root: Path, entry: Any, where: str) -> Utterance:
    if not isinstance(entry, dict):
        raise BadInput(
            "this must be an object", where, _shown(entry), '{"transcript", "files", "original_duration"}', _WRITE
        )
    transcript = entry.get("transcript")
    if not isinstance(transcript, str):
        raise BadInput(
            "transcript is missing or not text", where, _shown(transcript), "text, which may be empty", _WRITE
        )
    files = entry.get("files")
    if not isinstance(files, list) or not files or not all(isinstance(file, dict) for file in files):
        raise BadInput("files is missing or not a list of files", where, _shown(files), '[{"fname": name}]', _WRITE)
    original = [file for file in files if file.get("speed", 1) == 1]
    if not original:
        raise BadInput(
            "no file is at the original speed", where, _shown(files), "one with speed 1 or none given", _WRITE
        )
    name = original[0].get("fname")
    duration = entry.get("original_duration")
    if duration is not None and not (
        isinstance(duration, (int, float)) and not isinstance(duration, bool) and 0 <= duration <= _MAX_SECONDS
    ):
        raise BadInput("original_duration is not a time", where, _shown(duration), "seconds, 0 or more", _WRITE)
    return Utterance(
        name=name if isinstance(name, str) else "",
        path=_inside(root, name, where),
        transcript=transcript,
        duration_s=None if duration is None else float(duration),
    )


def _inside(root: Path, name: Any, where: str) -> Path:
    """The file `name` below the resolved folder `root`; BadInput if it lies, or leads, elsewhere."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise BadInput(
            "fname is missing or not a file name", where, _shown(name), "a name relative to the set's folder", _WRITE
        )
    try:
        path = (root / name).resolve()
        present = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, too long, not encodable
        raise BadInput(
            "fname cannot be resolved", where, _shown(name), "a file's name", "name the file itself"
        ) from error
    if not path.is_relative_to(root):
        # By "..", by an absolute name or by a symbolic link.
        raise BadInput(
            "fname leads out of the set's folder", where, _shown(name), "a file inside the folder", "copy it there"
        )
    if not present:
        raise BadInput("the recording is not there", where, _shown(name), "a file", "copy the whole set, or fix fname")
    return path


def _shown(value: Any) -> str:
    """A value out of a file, short and printable."""
    text = json.dumps(value)[: _SHOWN + 1]
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
