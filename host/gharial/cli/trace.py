# SPDX-License-Identifier: Apache-2.0
"""`gharial trace`: every integer of a run, and where two runs part."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gharial.cli import terminal
from gharial.cli.paths import check_output

if TYPE_CHECKING:
    from gharial.trace import Difference

NAME = "trace"
_DIFF = "trace-diff"  # argparse cannot tell `trace diff A B` from `trace MODEL AUDIO`

_EPILOG = """\
examples:
  gharial trace model.gprog talk.wav -o emulator.npz
  gharial trace model.gprog talk.wav -o reference.npz --device reference
  gharial trace diff emulator.npz reference.npz

docs/numerics.md, section 12, lists the tensors. A model file that is called diff is named ./diff.
"""

_DIFF_EPILOG = """\
examples:
  gharial trace diff emulator.npz reference.npz
  gharial trace diff --json a.npz b.npz

exit codes: 0 the traces are the same, 1 they differ, 2 they cannot be compared
"""


def split_diff(words: Sequence[str]) -> list[str]:
    """The words with `trace diff` as one command."""
    if list(words[:2]) == [NAME, "diff"]:
        return [_DIFF, *words[2:]]
    return list(words)


def add(commands: Any) -> None:
    """Add both commands to the parser."""
    parser = commands.add_parser(
        NAME,
        help="write every integer of a run to a file; 'trace diff' compares two",
        description="Write every tensor of a run, as integers in the machine's own units, to a NumPy archive.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", metavar="MODEL", help="hardware checkpoint (.hw.pt) or program (.gprog)")
    parser.add_argument("audio", metavar="AUDIO", help="recording, of any format and rate")
    parser.add_argument("-o", "--output", metavar="T.npz", required=True, help="file to write")
    parser.add_argument("--device", metavar="D", default="emulator", help="device to run on (emulator)")
    parser.add_argument("--prefix", metavar="P", help="prefix, as in gharial transcribe")
    parser.set_defaults(run=run)

    diff = commands.add_parser(
        _DIFF,
        prog="gharial trace diff",
        description="Name the first step and tensor in which two traces differ, in the order of the machine.",
        epilog=_DIFF_EPILOG,
    )
    diff.add_argument("a", metavar="A", help="trace")
    diff.add_argument("b", metavar="B", help="trace")
    diff.add_argument("--json", action="store_true", help="print a JSON object")
    diff.set_defaults(run=run_diff)


def run(args: argparse.Namespace) -> int:
    """Trace a recording."""
    from gharial.devices.open import device_config
    from gharial.model import open_model
    from gharial.trace import trace_recording, write_trace

    check_output(args.output, args.model, args.audio)
    progress = terminal.Progress("calibrating")
    try:
        program = open_model(args.model, device_config(args.device), progress=progress, note=terminal.note)
    finally:
        progress.close()
    tensors = trace_recording(program, args.audio, args.device, note=terminal.note, prefix=args.prefix)
    write_trace(args.output, tensors)
    steps, tokens = len(tensors["joint_enc"]), len(tensors["tokens"])
    terminal.emit(f"{args.output}: {len(tensors)} tensors, {steps} encoder steps, {tokens} tokens")
    return 0


def run_diff(args: argparse.Namespace) -> int:
    """Compare two traces."""
    from gharial.trace import first_difference, read_trace

    a, b = read_trace(args.a), read_trace(args.b)
    found = first_difference(a, b)
    if args.json:
        terminal.emit_json({"same": True, "tensors": {}} if found is None else found.as_json())
    elif found is None:
        terminal.emit(f"the same: {len(a)} tensors, {len(a['joint_enc'])} encoder steps")
    else:
        terminal.emit(_explain(found, args.a, args.b))
    return 0 if found is None else 1


def _explain(found: Difference, a: str, b: str) -> str:
    lines = [f"first difference: {found.place}"]
    if found.element is None:
        lines.append("  one of the traces ends before it")
    else:
        element = f", the first is {list(found.element)}" if found.element else ""
        lines += [
            f"  {found.count} of {found.total} elements differ{element}:",
            f"  {found.a} in {a}",
            f"  {found.b} in {b}",
        ]
    lines.append("all tensors that differ (elements, largest difference):")
    lines += [f"  {name:<24} {count:>9,}  {largest}" for name, (count, largest) in found.tensors.items()]
    return "\n".join(lines)
