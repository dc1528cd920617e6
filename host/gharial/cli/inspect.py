# SPDX-License-Identifier: Apache-2.0
"""`gharial inspect`: what a file is, good or bad."""

from __future__ import annotations

import argparse
import os
from typing import Any

from gharial.cli import terminal

NAME = "inspect"

_EPILOG = """\
examples:
  gharial inspect model.hw.pt
  gharial inspect --json model.hw.pt model.gprog | jq .good
  gharial inspect --instructions model.gprog

exit codes: 0 all files are good, 2 one is not
"""

_KNOWN = "a hardware checkpoint, a program, an n-gram or a recording"


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME,
        help="tell what a file is: checkpoint, program, n-gram, recording, or something else",
        description="Tell what files are and whether they are good: checkpoints, programs, n-grams, recordings.",
        epilog=_EPILOG,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="files of any kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object a file, each on a line")
    parser.add_argument("--instructions", action="store_true", help="list the instructions of programs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Describe each file."""
    from gharial.errors import BadInput

    good = True
    for file in args.files:
        facts, text = _describe(file, args.instructions)
        good = good and facts["good"]
        if args.json:
            terminal.emit_json(facts)
        else:
            terminal.emit(text)
    return 0 if good else BadInput.exit_code


def _describe(file: str, instructions: bool) -> tuple[dict[str, Any], str]:
    """Facts about a file, `good` among them, and the same as text."""
    from gharial import checkpoint, program
    from gharial.checkpoint.recognise import HEAD_BYTES, refusal
    from gharial.errors import BadInput
    from gharial.files import open_regular
    from gharial.model import is_program
    from gharial.ngram import inspect as ngram

    try:
        with open_regular(file, "a file") as opened:
            head = opened.read(HEAD_BYTES)
            refused = refusal(head, os.fstat(opened.fileno()).st_size, file)
    except BadInput as error:
        return _bad(file, "unknown", BadInput(error.what, error.where, error.found))
    if is_program(file):
        try:
            facts = program.describe(file, instructions=instructions)
        except BadInput as error:
            return _bad(file, "program", error)
        beside, line = _ngram_beside(file, facts["sections"])
        told = facts | {"file": file, "good": True, "problem": None, "ngram": beside}
        return told, program.format_description(facts) + line
    if ngram.recognised(head):
        facts = ngram.describe(file)
        return facts, ngram.format_description(facts)
    if refused is None:
        facts = checkpoint.describe(file)
        return facts, checkpoint.format_description(facts)
    recording = _recording(file)
    if recording is not None:
        return recording
    return _bad(file, "unknown", BadInput("not a file that is known here", file, refused.found, _KNOWN, refused.remedy))


def _ngram_beside(file: str, sections: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The n-gram file that lies beside a program, if one does, and a line that tells of it."""
    from gharial.model.ngram import beside
    from gharial.ngram.inspect import describe

    path = beside(file)
    if not path.is_file():
        return None, ""
    facts = describe(path)
    if not facts["good"]:
        return facts, f"\n  n-gram         {path}, BAD: {facts['problem']['what']}"
    mark = facts["mark"]
    if mark is None:
        whose = "not marked"
    else:
        same = mark["digest"] == sections.get("sentencepiece", {}).get("sha256")
        facts["for_model"] = same
        whose = "made for this model" if same else "made for ANOTHER model"
    return facts, f"\n  n-gram         {path}, order {facts['order']}, {whose}"


def _bad(file: str, kind: str, error: Any) -> tuple[dict[str, Any], str]:
    parts = {part: getattr(error, part) for part in ("what", "where", "found", "expected", "remedy")}
    problem = {part: None if value is None else str(value) for part, value in parts.items()}
    lines = [f"{file}: {kind}, BAD", *(f"  {line}" for line in str(error).split("\n"))]
    return {"file": file, "kind": kind, "good": False, "problem": problem}, "\n".join(lines)


def _recording(file: str) -> tuple[dict[str, Any], str] | None:
    """Facts of an audio file, None for any other."""
    from gharial.audio import open_audio
    from gharial.errors import BadInput

    try:
        with open_audio(file) as audio:
            for _ in audio.blocks():
                pass  # to the end: whether it is cut short or damaged shows only there
            rate, channels, seconds, notes = audio.source_rate, audio.channels, audio.duration_s or 0.0, audio.notes
    except BadInput:
        return None
    facts: dict[str, Any] = {"file": file, "kind": "recording", "good": True, "problem": None}
    facts |= {"sample_rate": rate, "channels": channels, "duration_s": round(seconds, 6), "notes": notes}
    lines = [
        f"{file}: recording, good",
        f"  {seconds:.2f} s, {rate} Hz, {channels} channel{'s' if channels > 1 else ''}",
        *(f"  {note}" for note in notes),
    ]
    return facts, "\n".join(lines)
