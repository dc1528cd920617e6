# SPDX-License-Identifier: Apache-2.0
"""The network in floating point.

- `FloatNetwork`, `calibrate_ranges` (NumPy): what the compiler measures ranges with.
- `gharial.floating.yardstick.TorchRnnt` (PyTorch, the extra `float`): what accuracy is measured against; not imported
  here, so that nothing else needs PyTorch.
"""

from gharial.floating.calibrate import RangeCollector, Ranges, calibrate_ranges
from gharial.floating.magnitudes import Magnitude, MagnitudeHistogram
from gharial.floating.network import MAX_SYMBOLS, FloatNetwork, PredictionState
from gharial.floating.path import Decoded, path_targets

__all__ = [
    "MAX_SYMBOLS",
    "Decoded",
    "FloatNetwork",
    "Magnitude",
    "MagnitudeHistogram",
    "PredictionState",
    "RangeCollector",
    "Ranges",
    "calibrate_ranges",
    "path_targets",
]
