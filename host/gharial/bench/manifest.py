# SPDX-License-Identifier: Apache-2.0
"""Test sets: a folder of recordings with a `manifest.json` in CAIMAN-ASR's format.

The manifest is a list of utterances, each `{"transcript": text, "files": [{"fname": name, ...}, ...],
"original_duration": seconds}`. A set may come from anybody, so a file name may only lead to a file inside the folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gharial.errors import BadInput

MANIFEST = "manifest.json"

_MAX_BYTES = 1 << 28
_MAX_SECONDS = 1e9
_SHOWN = 60


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
        raise BadInput("no such folder", folder, expected=f"a set: a folder with recordings and {MANIFEST}")
    try:
        size = manifest.stat().st_size
        if size > _MAX_BYTES:
            raise BadInput("the manifest is too large", manifest, f"{size} bytes", f"at most {_MAX_BYTES}")
        entries = json.loads(manifest.read_bytes())
    except FileNotFoundError:
        raise BadInput("the set has no manifest", folder, expected=f"a file {MANIFEST}") from None
    except OSError as error:
        raise BadInput("the manifest cannot be read", manifest, error.strerror) from error
    except (ValueError, RecursionError) as error:
        raise BadInput("the manifest is not JSON", manifest, error) from error
    if not isinstance(entries, list) or not entries:
        raise BadInput("the manifest has no utterances", manifest, _shown(entries), "a list of utterances")
    root = folder.resolve()
    return [_utterance(root, entry, f"{manifest}, utterance {index}") for index, entry in enumerate(entries)]


def _utterance(root: Path, entry: Any, where: str) -> Utterance:
    if not isinstance(entry, dict):
        raise BadInput("this must be an object", where, _shown(entry), '{"transcript", "files", "original_duration"}')
    transcript = entry.get("transcript")
    if not isinstance(transcript, str):
        raise BadInput("transcript is missing or not text", where, _shown(transcript), "text, which may be empty")
    files = entry.get("files")
    if not isinstance(files, list) or not files or not all(isinstance(file, dict) for file in files):
        raise BadInput("files is missing or not a list of files", where, _shown(files), '[{"fname": name}]')
    original = [file for file in files if file.get("speed", 1) == 1]
    if not original:
        raise BadInput("no file is at the original speed", where, _shown(files), "one with speed 1 or none given")
    name = original[0].get("fname")
    duration = entry.get("original_duration")
    if duration is not None and not (
        isinstance(duration, (int, float)) and not isinstance(duration, bool) and 0 <= duration <= _MAX_SECONDS
    ):
        raise BadInput("original_duration is not a time", where, _shown(duration), "seconds, 0 or more")
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
            "fname is missing or not a file name", where, _shown(name), "a name relative to the set's folder"
        )
    try:
        path = (root / name).resolve()
        present = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, too long, not encodable
        raise BadInput("fname cannot be resolved", where, _shown(name)) from error
    if not path.is_relative_to(root):
        # By "..", by an absolute name or by a symbolic link.
        raise BadInput("fname leads out of the set's folder", where, _shown(name), "a file inside the folder")
    if not present:
        raise BadInput("the recording is not there", where, _shown(name), remedy="copy the whole set, or fix fname")
    return path


def _shown(value: Any) -> str:
    """A value out of a file, short and printable."""
    text = json.dumps(value)[: _SHOWN + 1]
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
