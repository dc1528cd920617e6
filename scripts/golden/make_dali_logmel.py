#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Log-mel energies of NVIDIA DALI, the pipeline the models were trained with, for signals at the ends of the range.

    python3 -m venv DIR && DIR/bin/pip install nvidia-dali-cuda120==2.4.0 numpy soundfile
    DIR/bin/python -m scripts.golden.make_dali_logmel tests/data/features/dali_extremes.npz

No GPU is needed. DALI is no dependency of anything else here, so it gets an environment of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from scripts.golden.signals import RATE, extremes, long_signal, summary

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDINGS = ROOT / "host" / "gharial" / "data" / "recordings"
WINDOWS = (400, 320)
HOP, POINTS, CHANNELS = 160, 512, 80
FLOOR = 1e-20


def dali_logmel(samples: np.ndarray, window: int) -> np.ndarray:
    """(T, 80) float32 natural logarithms of the mel energies, window - hop zeros in front, no dither."""
    # DALI needs CUDA's runtime only where it is told to use a GPU; mypy is not given DALI.
    from nvidia.dali import fn, pipeline_def

    wave = np.concatenate([np.zeros(window - HOP, np.float32), samples.astype(np.float32) / np.float32(32768)])

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)  # type: ignore[untyped-decorator]
    def front_end() -> Any:
        audio = fn.external_source(source=lambda: [wave])
        emphasised = fn.preemphasis_filter(audio, preemph_coeff=0.97)
        power = fn.spectrogram(
            emphasised, nfft=POINTS, window_length=window, window_step=HOP, center_windows=False, power=2
        )
        mel = fn.mel_filter_bank(power, sample_rate=RATE, nfilter=CHANNELS, normalize=True)
        # Its decibels are multiplier * log10(x / reference): with ln 10 they are the natural logarithm.
        return fn.to_decibels(mel, multiplier=math.log(10), reference=1.0, cutoff_db=math.log(FLOOR))

    pipeline = front_end()
    pipeline.build()
    return np.array(pipeline.run()[0].at(0), np.float32).T


def main() -> int:
    """Exit code: 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", metavar="OUT.npz", type=Path, help="file to write")
    output = parser.parse_args().output
    arrays: dict[str, np.ndarray] = {}
    for name, samples in extremes().items():
        for window in WINDOWS:
            arrays[f"{name}/{window}"] = dali_logmel(samples, window)
    recordings = [soundfile.read(path, dtype="int16")[0] for path in sorted(RECORDINGS.glob("*.flac"))]
    samples = long_signal(recordings)
    arrays["long/sha256"] = np.frombuffer(hashlib.sha256(samples.astype("<i2").tobytes()).digest(), np.uint8)
    for window in WINDOWS:
        for kind, values in summary(dali_logmel(samples, window)).items():
            arrays[f"long/{kind}{window}"] = values
    np.savez_compressed(output, allow_pickle=False, **arrays)
    print(f"{output}: {len(arrays)} arrays, {output.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
