# SPDX-License-Identifier: Apache-2.0
"""Transcripts on standard output, in every format, whole or as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gharial.cli import terminal
from gharial.cli.live import LiveLine

if TYPE_CHECKING:
    from gharial.recognise import Stream, Token, Transcript


class Printer:
    """Transcripts on standard output.

    Args:
        form: format.
        streaming: whether text is printed before a transcript is complete.
        named: whether lines of text begin with the file's name.
        listed: whether a transcript's alternatives are listed behind it.
        live: whether text that is not certain is shown, and rewritten: a terminal.
    """

    def __init__(self, form: str, streaming: bool, named: bool, listed: bool = False, live: bool = False) -> None:
        self._form = form
        self._streaming = streaming
        self._named = named
        self._listed = listed
        self._line = LiveLine() if live else None
        self._begin()

    def _begin(self) -> None:
        self._said = False  # anything of the stream that is being written
        self._space = ""  # that it ends in: none, unless more text comes
        self._partial = ""
        self._begun = False

    def progress(self, file: str, new: Sequence[Token], stream: Stream) -> None:
        """New tokens of a stream, and those that may still change."""
        certain = self._certain(new)
        behind = "".join([token.text for token in stream.partial]).rstrip()
        partial = (self._space + behind if self._said else behind.lstrip()) if behind else ""
        if self._form == "json":
            self._progress_json(file, new, certain, partial, stream)
            return
        prefix = "" if self._begun else self._prefix(file)
        if self._line is not None:
            self._line.show(prefix + certain, partial)
        else:
            terminal.emit(prefix + certain, end="")
        self._begun = True

    def _certain(self, new: Sequence[Token]) -> str:
        """What tokens add to the text that is certain: words with one space between, none at the ends."""
        text = self._space + "".join([token.text for token in new])
        if not self._said:
            text = text.lstrip()
        shown = text.rstrip()
        self._space = text[len(shown) :]
        self._said = self._said or bool(shown)
        return shown

    def _progress_json(self, file: str, new: Sequence[Token], certain: str, partial: str, stream: Stream) -> None:
        if not new and partial == self._partial:
            return
        from gharial.recognise.transcript import token_json

        self._partial = partial
        terminal.emit_json(
            {
                "file": file,
                "partial": True,
                "text": certain,  # and not all of it so far: four hours of it would make gigabytes
                "partial_text": partial,
                "tokens": [token_json(token) for token in new],
                "audio_s": round(stream.audio_s, 6),
            }
        )

    def end_line(self) -> None:
        """End the line that is being written, if one is."""
        begun = self._begun
        self._begin()
        if begun and self._line is not None:
            self._line.end()
        elif begun:
            terminal.emit("")

    def result(self, file: str, transcript: Transcript) -> None:
        """A finished transcript."""
        from gharial.recognise.subtitles import ctm, srt, vtt

        if self._form == "json":
            terminal.emit_json(transcript.as_json(file))
        elif self._form == "srt":
            terminal.emit(srt(transcript), end="")
        elif self._form == "vtt":
            terminal.emit(vtt(transcript), end="")
        elif self._form == "ctm":
            terminal.emit(ctm(transcript, file), end="")
        else:
            if not self._streaming:
                terminal.emit(self._prefix(file) + transcript.text)
            if self._listed:
                self._list(transcript)

    def _list(self, transcript: Transcript) -> None:
        """Each reading on a line: its place, its score, how sure its tokens are, its text."""
        for place, one in enumerate(transcript.alternatives, 1):
            terminal.emit(f"{place:>4}  {one.score:>8.2f}  {100 * one.confidence:>5.1f} %  {one.text}".rstrip())

    def _prefix(self, file: str) -> str:
        return f"{file}: " if self._named else ""
