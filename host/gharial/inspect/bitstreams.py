# SPDX-License-Identifier: Apache-2.0
"""Which FPGA a bitstream is for, by its first bytes.

Sources: Lattice's ECP5 sysCONFIG guide (comments behind FF 00, preamble FF FF BD B3), and the well-known layout of
Xilinx .bit files (fields a to e behind a fixed head).
"""

from __future__ import annotations

import re

from gharial.checkpoint.text import shown

_XILINX = bytes.fromhex("00090ff00ff00ff00ff0000001")
_XCLBIN = b"xclbin2\0"
_LATTICE_COMMENT = b"\xff\0"
_LATTICE_PREAMBLE = b"\xff\xff\xbd\xb3"


def bitstream_kind(head: bytes) -> str | None:
    """What image for which part the file is, None if none that is known."""
    if head.startswith(_XCLBIN):
        return "a Xilinx container for an accelerator card (xclbin)"
    if head.startswith(_XILINX):
        part = _field(head, b"b", len(_XILINX))
        return "a Xilinx bitstream" + (f" for {shown(part, 40)}" if part else "")
    if (head.startswith((_LATTICE_COMMENT, _LATTICE_PREAMBLE)) and _LATTICE_PREAMBLE in head) or _lattice(head):
        named = re.search(rb"Part: ([\w-]{4,40})", head)
        return "a Lattice bitstream" + (f" for {shown(named[1])}" if named else "")
    return None


def _lattice(head: bytes) -> bool:
    return head.startswith(_LATTICE_COMMENT) and b"Part: " in head


def _field(head: bytes, key: bytes, at: int) -> bytes:
    """A field's text: key letter, two bytes of length, text with a zero at its end."""
    while at + 3 <= len(head) and head[at : at + 1] in (b"a", b"b", b"c", b"d"):
        size = int.from_bytes(head[at + 1 : at + 3], "big")
        if head[at : at + 1] == key:
            return head[at + 3 : at + 3 + size].rstrip(b"\0")
        at += 3 + size
    return b""
