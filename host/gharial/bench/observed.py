# SPDX-License-Identifier: Apache-2.0
"""What a run of the RTL shows beyond its figures: where each clock went, and where it lies under the roofline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gharial.devices.verilator.profile import CAUSES, Profile
from gharial.errors import GharialError


@dataclass(frozen=True)
class Point:
    """A run, as the roofline sees it.

    Attributes:
        name: what ran.
        macs: useful multiply-accumulates.
        bytes: of weights that had to be read, 0 where they are on chip.
        cycles: clocks that it took.
    """

    name: str
    macs: int
    bytes: int
    cycles: int

    @property
    def intensity(self) -> float:
        """Products a byte."""
        return self.macs / self.bytes

    @property
    def speed(self) -> float:
        """Products a clock."""
        return self.macs / self.cycles


@dataclass(frozen=True)
class Observed:
    """A run that was looked at.

    Attributes:
        profile: of its clocks.
        points: this run, and what was run besides.
    """

    profile: Profile
    points: tuple[Point, ...]


def check_sums(profile: Profile, counted: Mapping[str, int]) -> None:
    """See that a profile has each clock that the device counted, and no other.

    Args:
        profile: clocks by layer and cause.
        counted: the device's counters by name.

    Raises:
        GharialError: a cause has another number of clocks.
    """
    for sums, where in ((profile.clocks.sum(axis=0), "by layer"), (profile.causes.sum(axis=0), "over time")):
        for cause, clocks in zip(CAUSES, sums.tolist(), strict=True):
            if clocks != counted[cause]:
                raise GharialError(f"{cause}: {clocks} clocks in the profile {where}, {counted[cause]} by the device")
