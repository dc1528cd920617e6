# SPDX-License-Identifier: Apache-2.0
"""The C extension of transform/: power spectra in single precision, in a fixed order of operations."""

import numpy as np

class Transform:
    def __init__(self, window: np.ndarray, points: int) -> None: ...
    def power(self, samples: np.ndarray, hop: int, frames: int, power: np.ndarray, /) -> None: ...
