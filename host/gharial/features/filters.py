# SPDX-License-Identifier: Apache-2.0
"""Window and mel filters, as NVIDIA DALI's spectrogram and mel_filter_bank operators define them."""

from __future__ import annotations

import numpy as np

# Slaney's scale (Auditory Toolbox, 1998): linear up to 1 kHz, 15 mels there; logarithmic above, 27 mels for a
# factor of 6.4.
_HZ_PER_MEL = 200.0 / 3.0
_BREAK_HZ = 1000.0
_BREAK_MEL = _BREAK_HZ / _HZ_PER_MEL
_MELS_PER_NEPER = 27.0 / np.log(6.4)


def hann(length: int) -> np.ndarray:
    """Hann window sampled at half-integers, (length,) float64: 0.5 (1 - cos(2 pi (t + 0.5) / length)).

    It is symmetric and no sample is zero, unlike the periodic and the symmetric window that most libraries offer.
    """
    return 0.5 * (1.0 - np.cos(2.0 * np.pi * (np.arange(length) + 0.5) / length))


def hz_to_mel(hz: np.ndarray) -> np.ndarray:
    """Slaney mels of frequencies in Hz; float64, the shape of `hz`."""
    hz = np.asarray(hz, dtype=np.float64)
    above = _BREAK_MEL + _MELS_PER_NEPER * np.log(np.maximum(hz, _BREAK_HZ) / _BREAK_HZ)
    return np.where(hz < _BREAK_HZ, hz / _HZ_PER_MEL, above)


def mel_to_hz(mel: np.ndarray) -> np.ndarray:
    """Inverse of `hz_to_mel`."""
    mel = np.asarray(mel, dtype=np.float64)
    above = _BREAK_HZ * np.exp((np.maximum(mel, _BREAK_MEL) - _BREAK_MEL) / _MELS_PER_NEPER)
    return np.where(mel < _BREAK_MEL, mel * _HZ_PER_MEL, above)


def mel_filters(sample_rate: int, n_fft: int, n_mels: int) -> np.ndarray:
    """Triangular filters from 0 Hz to half the sample rate, each of area 1 over frequency in Hz.

    Returns:
        (n_fft / 2 + 1, n_mels) float64, in 1/Hz: a power spectrum times this matrix gives the mel energies.
    """
    edges = mel_to_hz(np.linspace(0.0, hz_to_mel(np.array(sample_rate / 2.0)), n_mels + 2))
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    bins = (np.arange(n_fft // 2 + 1) * (sample_rate / n_fft))[:, None]
    triangles = np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre))
    return np.ascontiguousarray(np.maximum(triangles, 0.0) * (2.0 / (high - low)))
