#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transcribe the shipped recordings on the emulated device, and one of them on the RTL, and say how well it went."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import jiwer

import gharial
from gharial.bench.manifest import Utterance, read_set
from gharial.bench.rtl import bench_rtl
from gharial.bench.words import word_count, word_errors
from gharial.cli import terminal

RTL_CONFIG = "ecp5-85f"

_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


def marked(reference: str, transcript: str, colour: bool) -> str:
    """The transcript with what is wrong marked: [heard] for another word or one too many, [-said] for one left out."""
    said, heard = reference.split(), transcript.split()

    def mark(word: str) -> str:
        return f"{_RED}[{word}]{_PLAIN}" if colour else f"[{word}]"

    if not said or not heard:
        return " ".join([*(mark(f"-{word}") for word in said), *map(mark, heard)])
    words: list[str] = []
    for chunk in jiwer.process_words(" ".join(said), " ".join(heard)).alignments[0]:
        if chunk.type == "equal":
            words += heard[chunk.hyp_start_idx : chunk.hyp_end_idx]
        elif chunk.type == "delete":
            words += [mark(f"-{word}") for word in said[chunk.ref_start_idx : chunk.ref_end_idx]]
        else:
            words += [mark(word) for word in heard[chunk.hyp_start_idx : chunk.hyp_end_idx]]
    return " ".join(words)


def table(utterances: Sequence[Utterance], transcripts: Sequence[gharial.Transcript], colour: bool) -> list[str]:
    """Lines of file, reference and transcript."""
    rows = [("recording", "said", "transcript")]
    rows += [
        (utterance.name, utterance.transcript, marked(utterance.transcript, transcript.text, colour))
        for utterance, transcript in zip(utterances, transcripts, strict=True)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"  {name:<{widths[0]}}  {said:<{widths[1]}}  {heard}" for name, said, heard in rows]
    lines.insert(1, "  " + "-" * max(map(len, lines)))
    return lines


def on_the_rtl(utterance: Utterance) -> list[str]:
    """Decode a recording on the RTL in simulation; lines on how that went.

    Raises:
        GharialError: the RTL gives another result than the emulator, or cannot be simulated here.
    """
    found = bench_rtl(RTL_CONFIG, recording=utterance.path, note=terminal.note)
    cycles = found["cycles"]
    stalls = ", ".join(f"{100 * clocks / cycles:.1f} % {cause}" for cause, clocks in found["stalls"].items() if clocks)
    return [
        f"The hardware itself: {utterance.name} on the RTL of {RTL_CONFIG}, simulated clock by clock.",
        "",
        f"  said              {utterance.transcript}",
        f"  transcript        {found['text']}",
        f"  clocks            {cycles:,} for {found['n_encode']} encoder steps, {found['n_pred']} prediction steps, "
        f"{found['n_joint']} joints",
        f"  utilisation       {100 * found['utilisation']:.1f} % of the array's products are the model's ({stalls})",
        "  result            equal to the emulator's: every token, logit and log-sum-exp",
    ]


def main() -> int:
    utterances = read_set(Path(str(files("gharial"))) / "data" / "recordings")
    print("Twelve recordings, the shipped demo model compiled to int8, the device emulated bit for bit on this CPU;")
    print("driver, commands and rings are those of real hardware.\n")
    with gharial.load() as recogniser:
        started = time.perf_counter()
        transcripts = []
        for outcome in recogniser.transcribe_many([utterance.path for utterance in utterances]):
            if isinstance(outcome, gharial.GharialError):
                raise outcome
            transcripts.append(outcome)
        seconds = time.perf_counter() - started
        device, program = recogniser.device, recogniser.program
    print("\n".join(table(utterances, transcripts, sys.stdout.isatty())))
    words = sum(word_count(utterance.transcript) for utterance in utterances)
    pairs = zip(utterances, transcripts, strict=True)
    errors = sum(word_errors(utterance.transcript, transcript.text) for utterance, transcript in pairs)
    audio = sum(transcript.audio_s for transcript in transcripts)
    config = program.config
    print(f"""
  [word] is wrong or too much, [-word] was left out
  word error rate   {100 * errors / words:.1f} % ({errors} of {words} words; a tiny model of ten command words)
  speed             {audio:.1f} s of audio in {seconds:.2f} s: {audio / seconds:.0f} times real time
  device            {device.name} ({device.kind})
  configuration     {config.name}: {config.rows} x {config.cols} products a cycle, stands for {config.stands_for}
  model             {program.manifest["model"]["name"]}, {program.manifest["model"]["parameters"]:,} parameters
""")
    print("\n".join(on_the_rtl(utterances[0])))
    print("\nYour own recording:   .venv/bin/gharial transcribe talk.wav")
    return 0


if __name__ == "__main__":
    # Sixty thousand clocks take a second or two: less than compiling with full effort would take longer.
    os.environ.setdefault("GHARIAL_RTL_BUILD", "quick")
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"demo: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
