# SPDX-License-Identifier: Apache-2.0
"""What slots may hold after commands were given up on their way (docs/isa.md, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.reference.slots import EncoderSlot, Life, pack_encoder, pack_prediction
from sim.uvm.scoreboard.record import Record, Slot


def image(state: Any) -> bytes:
    """What SAVE writes."""
    return pack_encoder(state.state) if isinstance(state, EncoderSlot) else pack_prediction(state.state)


class Doubt:
    """States that a slot may be in, by slot; a slot that is not named is known.

    A command that was given up leaves its destination slots free; one that had not begun leaves them as they were;
    one that was done, and could not say so, has done what it had to.
    """

    def __init__(self) -> None:
        self.allowed: dict[Slot, list[Any]] = {}  # None: free

    def add(self, given_up: Sequence[Record]) -> None:
        """Commands that were posted and have not completed, the oldest first."""
        for slot in set().union(*(record.destinations for record in given_up)):
            states = self.allowed.setdefault(slot, [None])
            states.append(given_up[0].before.get(slot))
            states += [record.after.get(slot) for record in given_up]

    def settle(self, slot: Slot, saved: bytes | None) -> Any:
        """The state that a slot turned out to be in: what SAVE wrote, or None where it was refused.

        Raises:
            AssertionError: it may not be in that state.
        """
        states = self.allowed.pop(slot)
        if saved is None:
            assert any(state is None or state.life != Life.LIVE for state in states), f"slot {slot} is lost"
            return None
        for state in states:
            if state is not None and state.life == Life.LIVE and image(state) == saved:
                return state
        raise AssertionError(f"slot {slot} holds what no command has left there: {saved.hex()}")
