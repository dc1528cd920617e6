# SPDX-License-Identifier: Apache-2.0
"""What is seen on the AXI4 port."""

from __future__ import annotations

from dataclasses import dataclass, field

OKAY, SLAVE_ERROR = 0, 2


@dataclass
class ReadBurst:
    """A burst of words that the accelerator has read.

    Attributes:
        address: of its first word.
        beats: words asked for.
        words: words that came.
        failed: whether one of them came with an error response.
        waited: clocks from the request to the address being taken.
        gaps: clocks in which a word was wanted and none offered.
        stalled: clocks in which a word was offered and not taken.
    """

    address: int
    beats: int
    words: list[int] = field(default_factory=list)
    failed: bool = False
    waited: int = 0
    gaps: int = 0
    stalled: int = 0


@dataclass
class WriteWord:
    """A word that the accelerator has written, and been answered.

    Attributes:
        address: of the word.
        word: what was written.
        failed: whether the response was an error.
        order: "together", "address first" or "word first", by which its address and the word were taken.
        outstanding: writes that were on their way when it was answered, itself included.
    """

    address: int
    word: int
    failed: bool
    order: str
    outstanding: int
