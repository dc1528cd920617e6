# SPDX-License-Identifier: Apache-2.0
"""What a file is that was given as a checkpoint and is none: said by its first bytes, with what to do about it."""

from __future__ import annotations

import re

from gharial.checkpoint.text import shown
from gharial.errors import BadInput
from gharial.files import ANNEX_REMEDY, LFS_POINTER

HEAD_BYTES = 512
"""Bytes of the file's start that `refusal` looks at; a tar header is this long."""

_LEGACY_TORCH = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"
"""The number 0x1950a86a20f9469cfc6c as a pickle writes it: the mark of torch files before the zip format."""

GIVE = "give the checkpoint itself: the .hw.pt file that the export wrote or, to export, the .pt file of the training"
"""What to do about a file that is none."""

WEB_PAGE = "a web page"
"""What `refusal` finds where a download was answered with a page."""

ANNEX_POINTER = b"/annex/objects/"
"""What a file begins with that git-annex has left in another's place, where it does not leave a link."""

_RESAVE = "load it with a trusted torch and save it again: torch 1.6 and later write the zip format"


def refusal(head: bytes, size: int, path: str) -> BadInput | None:
    """Why the file cannot be a torch zip checkpoint, or None if it starts like one.

    Args:
        head: its first `HEAD_BYTES` bytes, or all of them.
        size: its size in bytes.
        path: how the message names it.
    """
    if size == 0:
        return BadInput("the file is empty", path, "0 bytes", "a torch checkpoint", "copy or download it again")
    if head.startswith(b"PK\3\4"):
        return None
    if head.startswith(LFS_POINTER):
        stated = re.search(rb"^size (\d{1,18})\s*$", head, re.MULTILINE)
        real = f" for a file of {int(stated[1])} bytes" if stated else ""
        return BadInput(
            "this is a Git LFS pointer, not the checkpoint itself",
            path,
            f"a pointer of {size} bytes{real}",
            "a torch checkpoint",
            "run 'git lfs pull' in the repository it came from, or download the file itself",
        )
    if head.startswith(ANNEX_POINTER):
        stated = re.search(rb"-s(\d{1,18})-", head)
        real = f" for a file of {int(stated[1])} bytes" if stated else ""
        return BadInput(
            "this is a git-annex pointer, not the checkpoint itself",
            path,
            f"a pointer of {size} bytes{real}",
            "a torch checkpoint",
            ANNEX_REMEDY,
        )
    found, remedy = _kind(head)
    return BadInput("this is no torch checkpoint", path, found, "a zip archive as torch.save writes it", remedy)


def _kind(head: bytes) -> tuple[str, str]:
    """(what the file is, remedy)."""
    if head.startswith(b"\x80"):
        kind = "torch's format before 1.6" if _LEGACY_TORCH in head[:16] else "a bare pickle"
        return f"a pickle ({kind})", _RESAVE
    if head[257:262] == b"ustar":
        return "a tar archive, torch's first format or a packed checkpoint", f"unpack it, or {_RESAVE}"
    if head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")):
        return "a compressed file", "unpack it first"
    if head[8:10] == b'{"':
        return "a safetensors file", GIVE
    if head[:64].lstrip().lower().startswith((b"<!doctype", b"<html")):
        return WEB_PAGE, "the download answered with a page: download the file itself"
    if _is_text(head):
        return f"a text file that starts with '{shown(head, 40)}'", GIVE
    return f"bytes {head[:8].hex(' ')}", GIVE


def _is_text(head: bytes) -> bool:
    """True for UTF-8 without control characters but white space; the last character may be cut."""
    if any(b < 32 and b not in b"\t\n\r\f" for b in head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end >= len(head) - 3 and error.start >= len(head) - 3
    return True
