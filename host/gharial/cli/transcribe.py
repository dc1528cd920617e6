# SPDX-License-Identifier: Apache-2.0
"""`gharial transcribe`: recordings, or audio from standard input, to text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gharial.cli import live, terminal
from gharial.cli.decoding import Decoding, add_decoding, decoding
from gharial.cli.transcripts import Printer
from gharial.errors import BadInput, GharialError

if TYPE_CHECKING:
    from gharial.audio import AudioSource
    from gharial.recognise import Recogniser, StreamOptions, Transcript

NAME = "transcribe"

_EPILOG = """\
examples:
  gharial transcribe talk.wav
  gharial transcribe --json *.flac > transcripts.jsonl
  gharial transcribe --model model.hw.pt --device emulator:u50 talk.wav
  gharial transcribe --format srt talk.wav > talk.srt
  gharial transcribe --decoder beam --ngram words.binary --keywords names.json talk.wav
  gharial transcribe --decoder beam --beam-width 8 --alternatives 3 talk.wav
  gharial transcribe --model model.hw.pt --prefix '<pnc><lang_en>' talk.wav
  arecord -q -t raw -f S16_LE -r 16000 -c 1 | gharial transcribe --stream -

Files can be of any format, rate and channel count that libsndfile reads. '-' reads 16 kHz mono s16le samples without
a header from standard input. With several files each line begins with the file's name. A file that cannot be used is
reported, and the others are transcribed all the same; the exit code is then 2 (1 where the device failed).
A prefix is one that the model was trained with (gharial inspect lists them); --prefix '' is none.

Beam search weighs several hypotheses on the host, with an n-gram (gharial ngram build makes one) and keywords such as
{"keywords": {"right": 0.5}}. With --stream what may still change is shown dimmed on a terminal, left out elsewhere,
and partial_text in JSON. docs/decoding.md explains every setting.
"""

_FORMATS = ("text", "json", "srt", "vtt", "ctm")
_ONE_READING = ("srt", "vtt", "ctm")


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME,
        help="transcribe recordings or standard input",
        usage="%(prog)s [OPTION]... FILE...",
        description="Transcribe recordings, or raw audio from standard input.",
        epilog=_EPILOG,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="audio file; '-' for standard input")
    parser.add_argument("--model", metavar="M", help="checkpoint (.hw.pt) or program (.gprog); default: the demo model")
    parser.add_argument("--device", metavar="D", default="emulator", help="device (emulator); see gharial devices")
    parser.add_argument("--streams", metavar="N", type=int, help="most files at a time (16)")
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=_FORMATS, help="what to print (text)")
    output.add_argument("--json", action="store_true", help="the same as --format json: one object a file, on a line")
    output.add_argument("--stream", action="store_true", help="print text as soon as it is known, file by file")
    add_decoding(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Transcribe."""
    form = _format(args)
    how = decoding(args)
    _check_readings(form, how)
    _check_input(args.files)
    from gharial.recognise import load

    progress = terminal.Progress("compiling the model, recordings measured")
    with how.named():
        try:
            recogniser = load(
                args.model,
                args.device,
                decoder=how.decoder,
                options=how.options,
                ngram=how.ngram,
                progress=progress,
                note=terminal.note,
            )
        finally:
            progress.close()
    with recogniser:
        options = how.streams(recogniser)  # held against the model before any recording is opened
        on_screen = args.stream and form == "text" and live.rewrites()
        printer = Printer(form, args.stream, len(args.files) > 1, how.alternatives > 1, on_screen)
        audio = [_audio(recogniser, file) for file in args.files]
        outcomes: Iterable[Transcript | GharialError]
        if args.stream:
            outcomes = (
                _streamed(recogniser, file, item, options, printer)
                for file, item in zip(args.files, audio, strict=True)
            )
        else:
            outcomes = recogniser.transcribe_many(audio, args.streams, options)
        return _report(args.files, outcomes, printer)


def _check_input(files: list[str]) -> None:
    """Standard input can be read, where it is named."""
    if files.count("-") > 1:
        raise BadInput("standard input can be read once", "-", f"{files.count('-')} times", "once", "name files")
    if "-" in files and sys.stdin is None:
        raise BadInput(
            "standard input is closed", "-", "no input", "s16le mono samples at 16 kHz", "pipe samples to it"
        )
    if "-" in files and sys.stdin.isatty():
        raise BadInput(
            "standard input is a terminal",
            "-",
            "a keyboard",
            "s16le mono samples at 16 kHz",
            remedy="arecord -q -t raw -f S16_LE -r 16000 -c 1 | gharial transcribe --stream -",
        )


def _check_readings(form: str, how: Decoding) -> None:
    """Alternatives have a place in the format."""
    if how.alternatives > 1 and form in _ONE_READING:
        raise BadInput(
            f"{form} has no place for other readings",
            "--alternatives",
            f"--format {form}",
            "text or json",
            "leave one of them out",
        )


def _format(args: argparse.Namespace) -> str:
    """The format asked for, held against the other options."""
    if args.json and args.format not in (None, "json"):
        raise BadInput(
            "--json and --format contradict each other",
            "--json",
            f"--format {args.format}",
            "json",
            "leave one of them out",
        )
    form = "json" if args.json else args.format or "text"
    if form in ("srt", "vtt") and len(args.files) > 1:
        raise BadInput(
            f"{form} holds one recording", "--format", f"{len(args.files)} files", "one", "give one at a time"
        )
    if form in ("srt", "vtt", "ctm") and args.stream:
        raise BadInput(
            f"{form} is written at the end of a recording", "--format", "--stream", "text or json", "leave out --stream"
        )
    return str(form)


def _audio(recogniser: Recogniser, file: str) -> str | AudioSource:
    """What to transcribe for a name on the command line."""
    if file != "-":
        return file
    from gharial.audio import SAMPLE_RATE, open_raw

    rate = recogniser.front_end.sample_rate
    if rate != SAMPLE_RATE:
        raise BadInput(
            "the model takes another rate than standard input has",
            "-",
            f"{rate} Hz",
            f"{SAMPLE_RATE} Hz",
            "give a file, which is resampled",
        )
    return open_raw(sys.stdin.buffer)


def _streamed(
    recogniser: Recogniser, file: str, audio: str | AudioSource, options: StreamOptions, printer: Printer
) -> Transcript | GharialError:
    """Transcribe one recording, printing text as it becomes known."""
    from gharial.audio import open_audio

    try:
        source = open_audio(audio, recogniser.front_end.sample_rate) if isinstance(audio, str) else audio
        with source, recogniser.stream(options) as stream:
            for block in source.blocks():
                printer.progress(file, stream.push(block), stream)
                if stream.ended_by is not None:
                    break  # whoever speaks need not go on
            transcript = stream.finish()
            printer.progress(file, stream.take(), stream)
        return replace(transcript, notes=(*source.notes, *transcript.notes))
    except GharialError as error:
        return error
    finally:
        printer.end_line()


def _report(files: list[str], outcomes: Iterable[Transcript | GharialError], printer: Printer) -> int:
    """Print the outcomes in order as they come; the exit code."""
    codes = set()
    for file, outcome in zip(files, outcomes, strict=True):
        if isinstance(outcome, GharialError):
            text = str(outcome)
            # An error of the device does not know which file it hit.
            terminal.error(text if isinstance(outcome, BadInput) else f"{file}: {text}")
            codes.add(outcome.exit_code)
        else:
            for note in outcome.notes:
                terminal.note(f"{file}: {note}")
            printer.result(file, outcome)
    return min(codes, default=0)  # a failed device, 1, says more than a bad file, 2
