# SPDX-License-Identifier: Apache-2.0
"""Files of vectors that are made elsewhere, for networks that take no audio (docs/bring_your_lstm.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gharial.errors import BadInput
from gharial.features.spec import FeatureSpec
from gharial.files import open_regular

SUFFIX = ".npy"


def read_vectors(path: Path, spec: FeatureSpec) -> np.ndarray:
    """The vectors of a NumPy file, normalised as the network takes them: (n, vector_size) float32.

    Raises:
        BadInput: no such file, no array of numbers, another shape, or a value that is not finite.
    """
    expected = f"a NumPy array (n, {spec.vector_size}) of float"
    with open_regular(path, expected) as file:
        try:
            array = np.load(file, allow_pickle=False)
        except (ValueError, EOFError, OSError, MemoryError) as error:
            raise BadInput("cannot be read as an array", path, str(error).split("\n")[0], expected) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        found = array.dtype if isinstance(array, np.ndarray) else "an archive of arrays"
        raise BadInput("is no array of numbers", path, found, expected)
    try:
        return spec.normalised(array).astype(np.float32)
    except BadInput as error:
        raise BadInput(error.what, path, error.found, error.expected) from None
