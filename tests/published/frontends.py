# SPDX-License-Identifier: Apache-2.0
"""What stands around the published LSTMs: MFCC for the keyword spotter, framing and masks for the noise suppressor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from published.weights import Dense, Dtln2

Layers = Callable[[np.ndarray], np.ndarray]
"""Outputs (T, H) of a stack of LSTM layers for inputs (T, X)."""

KWS_LABELS = ("silence", "unknown", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")

_RATE = 16000
_KWS_WINDOW, _KWS_HOP, _KWS_FFT = 640, 320, 1024
_KWS_BANDS, _KWS_LOW_HZ, _KWS_HIGH_HZ, _KWS_COEFFICIENTS = 40, 20.0, 4000.0, 10

DTLN_FRAME, DTLN_HOP = 512, 128


def mfcc(samples: np.ndarray) -> np.ndarray:
    """(49, 10) coefficients of one second, (16000,) with full scale 1, as TensorFlow's AudioSpectrogram and Mfcc do.

    Magnitudes (not powers) go through triangles on the scale 1127 ln(1 + f / 700); logarithm of at least 1e-12;
    orthonormal DCT II without its special first row.
    """
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_KWS_WINDOW) / _KWS_WINDOW)
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), _KWS_WINDOW)[::_KWS_HOP]
    magnitudes = np.abs(np.fft.rfft(frames * window, _KWS_FFT))
    mels = 1127.0 * np.log1p(np.arange(_KWS_FFT // 2 + 1) * (_RATE / _KWS_FFT) / 700.0)
    low, high = (1127.0 * np.log1p(hz / 700.0) for hz in (_KWS_LOW_HZ, _KWS_HIGH_HZ))
    edges = np.linspace(low, high, _KWS_BANDS + 2)
    rising = (mels[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mels[:, None]) / (edges[2:] - edges[1:-1])
    energies = np.log(np.maximum(magnitudes @ np.maximum(np.minimum(rising, falling), 0.0), 1e-12))
    k = np.arange(_KWS_COEFFICIENTS)[:, None]
    dct = np.sqrt(2.0 / _KWS_BANDS) * np.cos(np.pi / _KWS_BANDS * k * (np.arange(_KWS_BANDS) + 0.5))
    return energies @ dct.T


def dtln_spectra(samples: np.ndarray) -> np.ndarray:
    """(T, 257) complex spectra of frames of 512 samples, no window, one each 128 samples."""
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), DTLN_FRAME)[::DTLN_HOP]
    return np.fft.rfft(frames)


def dtln(samples: np.ndarray, first: tuple[Layers, Dense], second: tuple[Layers, Dtln2]) -> np.ndarray:
    """Suppress the noise of a recording, (n,) at 16 kHz with full scale 1; (m,) float64, m <= n: whole frames.

    The first half masks the magnitudes of a frame, the second its features by a learnt basis.
    """
    run, model = second
    encoded, normalised = dtln_encoded(samples, first, model)
    frames = (encoded * _mask(run(normalised), model.mask)) @ model.decoder.T
    output = np.zeros(DTLN_HOP * (len(frames) - 1) + DTLN_FRAME)
    for index, frame in enumerate(frames):
        output[index * DTLN_HOP : index * DTLN_HOP + DTLN_FRAME] += frame
    return output


def dtln_encoded(samples: np.ndarray, first: tuple[Layers, Dense], model: Dtln2) -> tuple[np.ndarray, np.ndarray]:
    """Features (T, 256) that the second half takes from the first, and their layer norm, its LSTM's inputs."""
    spectra = dtln_spectra(samples)
    run, mask = first
    frames = np.fft.irfft(spectra * _mask(run(np.abs(spectra)), mask))
    encoded = frames @ model.encoder.T.astype(np.float64)
    centred = encoded - encoded.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + model.epsilon)
    return encoded, centred / spread * model.gain + model.offset


def _mask(hidden: np.ndarray, dense: Dense) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-(hidden @ dense.weight.T.astype(np.float64) + dense.bias)))


def si_sdr(clean: np.ndarray, found: np.ndarray) -> float:
    """Scale-invariant signal-to-distortion ratio in dB, over the common length."""
    length = min(len(clean), len(found))
    clean, found = clean[:length] - clean[:length].mean(), found[:length] - found[:length].mean()
    target = clean * (found @ clean / (clean @ clean))
    return float(10 * np.log10(target @ target / np.sum(np.square(found - target))))


def stacked(layers: Sequence[Callable[[np.ndarray], np.ndarray]]) -> Layers:
    """Layers run one after the other."""

    def run(x: np.ndarray) -> np.ndarray:
        for layer in layers:
            x = layer(x)
        return x

    return run
