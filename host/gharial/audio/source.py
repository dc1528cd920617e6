# SPDX-License-Identifier: Apache-2.0
"""What every source of audio has in common."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

import numpy as np

SAMPLE_RATE = 16000
"""Rate the models are trained at, in Hz."""


class AudioSource(Protocol):
    """Mono audio, read once from start to end."""

    @property
    def path(self) -> str:
        """Where it comes from; "-" for a stream."""

    @property
    def source_rate(self) -> int:
        """Sample rate before resampling, in Hz."""

    @property
    def channels(self) -> int:
        """Channels before they were mixed to one."""

    @property
    def duration_s(self) -> float | None:
        """Seconds of audio: what the header says, and after the last block what was read. None while unknown."""

    @property
    def notes(self) -> list[str]:
        """Remarks for the user; may grow until the last block was read."""

    def blocks(self) -> Iterator[np.ndarray]:
        """One-dimensional blocks, none empty: all int16, or all float32 with full scale 1.

        Raises:
            BadInput: the audio turns out not to be usable.
        """

    def close(self) -> None:
        """Let go of the file; may be called twice."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def read_all(source: AudioSource) -> np.ndarray:
    """Every sample of a source: (n,) int16, or float32 with full scale 1.

    The whole recording is held in memory; to transcribe one, take its blocks instead.

    Raises:
        BadInput: the audio turns out not to be usable.
    """
    blocks = list(source.blocks())
    return np.concatenate(blocks) if blocks else np.empty(0, np.int16)
