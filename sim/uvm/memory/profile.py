# SPDX-License-Identifier: Apache-2.0
"""How willing the memory is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Chances and delays of the memory's channels.

    Attributes:
        name: of the profile.
        ar, aw, w: chance in a clock that the channel is ready.
        r: chance in a clock that the next word is offered.
        read_latency, write_latency: most clocks until the first word of a burst, or a write's response.
    """

    name: str
    ar: float = 1.0
    r: float = 1.0
    aw: float = 1.0
    w: float = 1.0
    read_latency: int = 0
    write_latency: int = 0


PROFILES = (
    Profile("eager", read_latency=1, write_latency=1),
    Profile("plain", ar=0.7, r=0.85, aw=0.8, w=0.8, read_latency=12, write_latency=8),
    Profile("sluggish", ar=0.25, r=0.3, aw=0.3, w=0.3, read_latency=60, write_latency=40),
    Profile("late answers", read_latency=4, write_latency=150),
    Profile("words first", aw=0.15),
    Profile("addresses first", w=0.15),
)
