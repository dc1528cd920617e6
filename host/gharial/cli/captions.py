# SPDX-License-Identifier: Apache-2.0
"""A server's replies on standard output: as text that grows, or as lines of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gharial.cli import live, terminal
from gharial.client.protocol import Caption

if TYPE_CHECKING:
    from gharial.client.protocol import Reply


class TextLines:
    """Text on a terminal or elsewhere, a line a phrase.

    Args:
        pause_s: seconds without text after which it goes on in a new line.
    """

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._line = live.LiveLine(style=live.CYAN) if live.rewrites() else None
        self._caption = Caption()
        self._begun = self._certain = False  # a line, and text on it that is final
        self._spoken = 0.0  # end of the last text

    def take(self, reply: Reply) -> None:
        """Show a reply."""
        certain = self._caption.take(reply)
        partial = self._caption.partial
        if certain or partial:
            self._spoken = reply.end
        elif self._begun and reply.end - self._spoken >= self._pause_s:
            self.pause()
        if not self._certain:
            certain = certain.lstrip()
            partial = partial if certain else partial.lstrip()
            self._certain = bool(certain)
        if self._line is not None and (certain or partial or self._begun):
            self._line.show(certain, partial)
            self._begun = self._begun or bool(certain or partial)
        elif certain:
            terminal.emit(certain, end="")
            self._begun = True

    def pause(self) -> None:
        """End the line, if one is begun; what is not final is taken away."""
        if self._begun:
            self._begun = self._certain = False
            if self._line is not None:
                self._line.end()
            else:
                terminal.emit("")

    def end(self, audio_s: float, connections: int) -> None:
        """All is said."""
        self.pause()


class JsonLines:
    """A line of JSON whenever something changed, and one with the whole text at the end.

    Args:
        alternatives: readings asked for; with more than one each line lists them.
    """

    def __init__(self, alternatives: int) -> None:
        self._listed = alternatives > 1
        self._caption = Caption()
        self._told = ("", "")

    def take(self, reply: Reply) -> None:
        """Tell a reply."""
        certain = self._caption.take(reply)
        state = (certain, self._caption.partial)
        if not certain and state == self._told:
            return
        self._told = ("", self._caption.partial)
        line: dict[str, Any] = {
            "partial": True,
            "text": certain,
            "partial_text": self._caption.partial,
            "start": round(reply.start, 6),
            "end": round(reply.end, 6),
            "confidence": reply.alternatives[0].confidence,
        }
        if self._listed:
            line["alternatives"] = [
                {"text": one.transcript, "confidence": one.confidence} for one in reply.alternatives
            ]
        terminal.emit_json(line)

    def pause(self) -> None:
        """Nothing: every line is whole."""

    def end(self, audio_s: float, connections: int) -> None:
        """The whole text."""
        text = " ".join(self._caption.final.split())
        terminal.emit_json({"text": text, "audio_s": round(audio_s, 6), "connections": connections})
