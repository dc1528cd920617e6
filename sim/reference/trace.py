# SPDX-License-Identifier: Apache-2.0
"""Recorder of the tensors of docs/numerics.md, section 12."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from .numerics import Array


class Trace:
    """What a model computed, in order of time.

    Args:
        shapes: dtype and shape of one step of each tensor, by key, in the order of the machine.
    """

    def __init__(self, shapes: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
        self._shapes = dict(shapes)
        self._steps: dict[str, list[npt.NDArray[np.generic]]] = {key: [] for key in shapes}

    def add(self, key: str, value: Array | int) -> None:
        """Keep one step of a tensor; padding at the end of its first axis is cut off."""
        dtype, shape = self._shapes[key]
        a = np.asarray(value)
        if shape:
            a = a[: shape[0]].reshape(shape)
        kept = a.astype(dtype)
        if not np.array_equal(kept, a):
            raise OverflowError(f"{key} does not fit in {dtype}")
        self._steps[key].append(kept)

    def steps(self) -> dict[str, list[npt.NDArray[np.generic]]]:
        """One array a step, by key; keys of which nothing was kept are left out."""
        return {key: list(kept) for key, kept in self._steps.items() if kept}

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """One array a tensor, the first axis being time; every key is there."""
        return {
            key: np.stack(self._steps[key]) if self._steps[key] else np.zeros((0, *shape), dtype)
            for key, (dtype, shape) in self._shapes.items()
        }
