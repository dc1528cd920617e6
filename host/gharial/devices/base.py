# SPDX-License-Identifier: Apache-2.0
"""What every device offers to the driver: registers, device memory, a doorbell, a bounded wait, reset.

The driver (gharial.driver) uses nothing else, so the emulator, the reference model, the RTL in simulation and a board
are the same to it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gharial.isa.configs import Config


class Device(ABC):
    """One accelerator, opened.

    A register is named by its byte offset (gharial.isa._registers). Addresses are byte addresses of the device memory.
    Implementations raise DeviceError where the link or the device fails, and never block without a limit.

    Attributes:
        name: name to open it by.
        kind: what it is.
        config: its hardware configuration.
        frugal: whether each read costs a round trip that dwarfs the bytes: then the driver reads completions and
            results without asking registers about them first (docs/links.md).
        interrupts: whether `wait` waits for the device's interrupt.
    """

    name: str
    kind: str
    config: Config
    frugal: bool = False
    interrupts: bool = False

    @abstractmethod
    def read_register(self, offset: int) -> int:
        """The 32-bit value of the register at that offset."""

    @abstractmethod
    def write_register(self, offset: int, value: int) -> None:
        """Set the register at that offset."""

    @abstractmethod
    def read_memory(self, address: int, count: int) -> bytes:
        """Count bytes of the device memory from the address on."""

    @abstractmethod
    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Put the bytes into the device memory from the address on."""

    @abstractmethod
    def ring_doorbell(self, tail: int) -> None:
        """Tell the device how many commands have been written in all (free-running, 32 bits)."""

    @abstractmethod
    def wait(self, completions: int, timeout: float) -> bool:
        """Wait until the completion index has reached `completions` (free-running) or the device halts.

        Args:
            completions: value of CPL_TAIL to wait for.
            timeout: most seconds to wait.

        Returns:
            False if the time ran out.
        """

    @abstractmethod
    def reset(self) -> None:
        """Soft reset; returns when it is done, DeviceError if it does not get done."""

    @abstractmethod
    def close(self) -> None:
        """Quiesce and let go of the device; further calls raise DeviceError. Closing twice is harmless."""


class TraceSource(ABC):
    """A device that can show what its instructions wrote (simulated ones can, boards cannot)."""

    @abstractmethod
    def start_trace(self, layers: Sequence[Mapping[str, object]], trace: Sequence[Mapping[str, object]]) -> None:
        """Keep every post-operation's output from now on, named by the program's manifest (`layers`, `trace`)."""

    @abstractmethod
    def stop_trace(self) -> dict[str, list[npt.NDArray[np.generic]]]:
        """What was kept, in order of time: tensor keys of docs/numerics.md, section 12, one unpadded array a step.

        With several streams in flight the entries of a command follow one another; trace one stream at a time.
        """
