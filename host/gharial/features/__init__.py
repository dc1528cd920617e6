# SPDX-License-Identifier: Apache-2.0
"""The front end: 16 kHz samples to the stacked, normalised log-mel vectors that the encoder takes.

Public names:

- `FeatureSpec`: every constant of the front end, with `FeatureSpec.from_checkpoint(checkpoint)` for a model's own.
- `FeatureStream(spec)`: one stream; `push(samples)` and `finish()` give (n, 240) float32, a vector each 30 ms.
- `LogMelStream(spec)`: the same up to the logarithm; (3 n, 80) float64, a frame each 10 ms.
- `logmel(samples, spec)`: a whole recording at once, (T, 80) float64, the same bits as `LogMelStream`.
- `quantise_features(x, frac_bits)`: the int8 the accelerator is given.

How the samples of a stream are cut into pushes never changes a bit of the result, nor do other streams in the process:
frames are always computed three at a time, at positions fixed from the start of the stream, by operations of one fixed
shape. All arithmetic is float64, rounded to float32 once at the end.
"""

from gharial.features.logmel import LogMelStream, logmel
from gharial.features.quantise import quantise_features
from gharial.features.spec import TAIL_SECONDS, FeatureSpec
from gharial.features.stream import FeatureStream

__all__ = [
    "TAIL_SECONDS",
    "FeatureSpec",
    "FeatureStream",
    "LogMelStream",
    "logmel",
    "quantise_features",
]
