# SPDX-License-Identifier: Apache-2.0
"""Audio cut into frames of 60 ms, at once or in real time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from gharial.audio import SAMPLE_RATE

FRAME_S = 0.06
"""Seconds of a frame: an encoder step's."""

FRAME_BYTES = 2 * round(SAMPLE_RATE * FRAME_S)
"""Bytes of a frame of s16le."""

_FULL_SCALE = 32768.0


def pcm(samples: np.ndarray) -> bytes:
    """Samples as s16le.

    Args:
        samples: (n,) mono at 16 kHz: int16, or float with full scale 1, which is rounded and held to the range.
    """
    if samples.dtype == np.int16:
        return samples.astype("<i2").tobytes()
    return np.clip(np.rint(samples * _FULL_SCALE), -_FULL_SCALE, _FULL_SCALE - 1).astype("<i2").tobytes()


def frames(blocks: Iterable[np.ndarray]) -> Iterator[bytes]:
    """Blocks of samples, as of `pcm`, as frames of s16le; the last may be shorter, none is empty."""
    held = bytearray()
    for block in blocks:
        held += pcm(block)
        whole = len(held) - len(held) % FRAME_BYTES
        for at in range(0, whole, FRAME_BYTES):
            yield bytes(held[at : at + FRAME_BYTES])
        del held[:whole]
    if held:
        yield bytes(held)


def real_time(
    blocks: Iterable[np.ndarray],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[bytes]:
    """Frames of s16le, each when its last sample would have been spoken.

    A frame that is late (the caller was busy) does not put off the next ones.

    Args:
        blocks: as for `frames`.
        clock, sleep: seconds.
    """
    begun, spoken = clock(), 0
    for frame in frames(blocks):
        spoken += len(frame)
        left = begun + spoken / FRAME_BYTES * FRAME_S - clock()
        if left > 0:
            sleep(left)
        yield frame
