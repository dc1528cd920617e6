# SPDX-License-Identifier: Apache-2.0
"""One command ready to be sent, and what commands may carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gharial.driver.layout import staging_bytes
from gharial.isa.commands import Operation


@dataclass
class Piece:
    """One command.

    Attributes:
        operation: what it does.
        fields: of the descriptor, without addresses, tag and CRCs.
        entries: the entry list.
        payload: features, images to restore, or a program chunk.
        result_bytes: what it will write.
        first: index of its first entry in the batch.
        encoder, prediction: destination slots.
        take: given the result bytes, when it is done well; ValueError if they make no sense.
        restores: the payload lies where results would.
    """

    operation: Operation
    fields: dict[str, int] = field(default_factory=dict)
    entries: bytes = b""
    payload: bytes = b""
    result_bytes: int = 0
    first: int = 0
    encoder: tuple[int, ...] = ()
    prediction: tuple[int, ...] = ()
    take: Callable[[bytes], None] | None = None
    restores: bool = False

    @property
    def staging(self) -> int:
        """Staging bytes that it needs."""
        return staging_bytes(len(self.entries) + len(self.payload) + self.result_bytes)


@dataclass(frozen=True)
class Limits:
    """What a command may carry, and which slots there are.

    Attributes:
        entries: entries of a command.
        preferred: staging bytes that a command should take, so that two fit.
        most: staging bytes that it can take.
        encoder, prediction: slots.
        checked: whether entries and features carry CRCs.
    """

    entries: int
    preferred: int
    most: int
    encoder: int
    prediction: int
    checked: bool
