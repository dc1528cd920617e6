# SPDX-License-Identifier: Apache-2.0
"""What a caller holds of work in progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from gharial.errors import CommandFailed, GharialError

if TYPE_CHECKING:
    from gharial.driver.session import Session

T = TypeVar("T")


class Ticket(Generic[T]):
    """One batch that was submitted; it may have gone to the device as several commands.

    Attributes:
        done: whether all of it has ended, well or not.
        error: what went wrong first, or None.
        lost_encoder, lost_prediction: slots that hold nothing any more, or may not, because of an error.
        cycles: device clocks that its commands took, added up; 0 where nothing is clocked.
        predictions, joints: prediction steps and joint evaluations made for it.
    """

    def __init__(self, driver: Session, commands: int, assemble: Callable[[], T]) -> None:
        self._driver = driver
        self._left = commands
        self._assemble = assemble
        self._last = 0
        self.error: GharialError | None = None
        self.lost_encoder: tuple[int, ...] = ()
        self.lost_prediction: tuple[int, ...] = ()
        self.cycles = 0
        self.predictions = 0
        self.joints = 0

    @property
    def done(self) -> bool:
        """Whether all of it has ended. Does not look at the device: the driver's `poll` or `result` does."""
        return self._left == 0

    def result(self, timeout: float | None = None) -> T:
        """Wait for the end, and give what came of it.

        Args:
            timeout: most seconds to wait; None takes the driver's limit.

        Raises:
            CommandFailed: the device refused a command of it or failed in it; the others were done.
            DeviceTimeout: it is not done yet; waiting may go on.
            DeviceError: device or link failed.
        """
        return self._driver.wait(self, timeout)

    # For the driver

    def command_sent(self, index: int) -> None:
        """A command of it is in flight: completion index to wait for."""
        self._last = index

    def command_done(self, error: GharialError | None, cycles: int = 0, predictions: int = 0, joints: int = 0) -> None:
        """A command of it has ended."""
        self._left -= 1
        self.cycles += cycles
        self.predictions += predictions
        self.joints += joints
        if isinstance(error, CommandFailed):
            self.lost_encoder += error.lost_encoder
            self.lost_prediction += error.lost_prediction
        self.error = self.error or error

    def give_up(self, error: GharialError) -> None:
        """Nothing more will come of it."""
        self._left = 0
        self.error = self.error or error

    def outcome(self) -> T:
        """The result of a ticket that is done, or its error."""
        if self.error is not None:
            raise self.error
        return self._assemble()

    @property
    def last(self) -> int:
        """Completion index at which it is done, free-running."""
        return self._last
