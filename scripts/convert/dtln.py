# SPDX-License-Identifier: Apache-2.0
"""DTLN, a noise suppressor: two LSTM layers and a mask over magnitudes, then two more over a learnt basis.

`python -m scripts.convert.dtln dtln_1.onnx dtln_2.onnx -o dtln --recordings noisy/` reads the two ONNX models, and
writes dtln_1.hw.pt and dtln_2.hw.pt. The Fourier transform, the basis and the masking stay on the host.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scripts.convert import recordings
from scripts.convert.encoder import Dense, Framing, Lstm, gates, run_float, write_encoder
from scripts.convert.tensors import onnx_initialisers, read_tensors

FRAMING = Framing(rate=recordings.RATE, window=512, hop=128)

Layers = Callable[[list[np.ndarray]], list[np.ndarray]]
"""Outputs of a half's mask layer before its sigmoid, (T, J) each, for inputs (T, X) each."""


@dataclass(frozen=True)
class First:
    """First half: masks the magnitudes of a frame."""

    layers: list[Lstm]
    mask: Dense

    def run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """The half in float: `Layers`."""
        return [self.mask.run(run_float(self.layers, x)) for x in inputs]


@dataclass(frozen=True)
class Second(First):
    """Second half: masks the features of a frame by a learnt basis.

    Attributes:
        encoder: (256, 512), the basis.
        gain, offset: (256,), of the layer norm in front of the LSTM.
        epsilon: its least variance.
        decoder: (512, 256), back to samples.
    """

    encoder: np.ndarray
    gain: np.ndarray
    offset: np.ndarray
    epsilon: float
    decoder: np.ndarray

    def encoded(self, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features (T, 256) of frames (T, 512), and their layer norm, the LSTM's inputs."""
        features = frames @ self.encoder.T.astype(np.float64)
        centred = features - features.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + self.epsilon)
        return features, centred / spread * self.gain + self.offset


def read_first(path: Path) -> First:
    """The first half, of ONNX LSTM operators (gates i, o, f, c).

    Raises:
        BadInput: the file is not that model.
    """
    tensors = read_tensors(path, onnx_initialisers)
    layers = []
    for name in ("lstm_4", "lstm_5"):
        recurrent = tensors.take(f"{name}_R", 1, None, None)[0]
        rows, hidden = recurrent.shape
        of_x, of_h = np.split(tensors.take(f"{name}_B", 1, 2 * rows)[0], 2)
        parts = tensors.take(f"{name}_W", 1, 4 * hidden, None)[0], recurrent, of_x + of_h
        layers.append(Lstm(*(gates(part, "iofg") for part in parts)))
    weight = tensors.take("dense_2/kernel:0", layers[-1].hidden, None)
    return First(layers, Dense(weight.T, tensors.take("dense_2/bias:0", None)))


def read_second(path: Path) -> Second:
    """The second half, whose LSTMs are there as plain products: Keras kernels (X, 4 H), gates i, f, g, o.

    Raises:
        BadInput: the file is not that model.
    """
    tensors = read_tensors(path, onnx_initialisers)
    resource = "ReadVariableOp/resource:0"
    layers = []
    for name in ("model_2/lstm_6", "model_2/lstm_7"):
        of_h = tensors.take(f"{name}/MatMul_1/{resource}", None, None)
        rows = of_h.shape[1]
        of_x = tensors.take(f"{name}/MatMul/{resource}", None, rows)
        layers.append(Lstm(of_x.T, of_h.T, tensors.take(f"{name}/BiasAdd/{resource}", rows)))
    norm, dense = "model_2/instant_layer_normalization_1", "model_2/dense_3"
    weight = tensors.take(f"{dense}/Tensordot/Reshape_1:0", layers[-1].hidden, None)
    features = weight.shape[1]
    return Second(
        layers,
        Dense(weight.T, tensors.take(f"{dense}/BiasAdd/{resource}", features)),
        encoder=tensors.take("conv1d_2/kernel:0", features, FRAMING.window, 1)[:, :, 0],
        gain=tensors.take(f"{norm}/mul/{resource}", features),
        offset=tensors.take(f"{norm}/add_1/{resource}", features),
        epsilon=float(tensors.take(f"{norm}/add/y:0")),
        decoder=tensors.take("conv1d_3/kernel:0", FRAMING.window, features, 1)[:, :, 0],
    )


def spectra(samples: np.ndarray) -> np.ndarray:
    """(T, 257) complex spectra of frames of 512 samples, no window, one each 128 samples."""
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), FRAMING.window)[:: FRAMING.hop]
    return np.fft.rfft(frames)


def suppress(noisy: Sequence[np.ndarray], first: Layers, second: Layers, model: Second) -> list[np.ndarray]:
    """Suppress the noise of recordings, (n,) at 16 kHz with full scale 1; (m,) float64 each, m <= n: whole frames.

    Args:
        noisy: the recordings.
        first, second: the halves, in float or on the machine.
        model: what lies around the second.
    """
    pairs = [model.encoded(frames) for frames in masked(noisy, first)]
    masks = second([inputs for _, inputs in pairs])
    cleaned = []
    for (features, _), mask in zip(pairs, masks, strict=True):
        frames = (features * _sigmoid(mask)) @ model.decoder.T
        output = np.zeros(FRAMING.hop * (len(frames) - 1) + FRAMING.window)
        for index, frame in enumerate(frames):
            output[index * FRAMING.hop : index * FRAMING.hop + FRAMING.window] += frame
        cleaned.append(output)
    return cleaned


def masked(noisy: Sequence[np.ndarray], first: Layers) -> list[np.ndarray]:
    """What the second half is given: frames (T, 512) whose magnitudes the first half has masked."""
    found = [spectra(samples) for samples in noisy]
    masks = first([np.abs(values) for values in found])
    return [np.fft.irfft(values * _sigmoid(mask)) for values, mask in zip(found, masks, strict=True)]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * np.tanh(0.5 * x) + 0.5)


def convert(first: Path, second: Path, output: Path, noisy: Sequence[np.ndarray]) -> tuple[Path, Path]:
    """Write the checkpoints of both halves.

    Args:
        first, second: the ONNX models.
        output: where: OUTPUT_1.hw.pt and OUTPUT_2.hw.pt.
        noisy: (n,) samples, 512 of them or more, of speech with noise, to measure ranges with.

    Returns:
        The folders of vectors to calibrate with.
    """
    one, two = read_first(first), read_second(second)
    long_enough = [samples for samples in noisy if len(samples) >= FRAMING.window]
    magnitudes = [np.abs(spectra(samples)) for samples in long_enough]
    inputs = [two.encoded(frames)[1] for frames in masked(long_enough, one.run)]
    return (
        write_encoder(output.with_name(f"{output.name}_1.hw.pt"), one.layers, one.mask, magnitudes, FRAMING),
        write_encoder(output.with_name(f"{output.name}_2.hw.pt"), two.layers, two.mask, inputs, FRAMING),
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 written, 2 bad input."""
    parser = argparse.ArgumentParser("dtln", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("first", metavar="FIRST.onnx", type=Path, help="first half")
    parser.add_argument("second", metavar="SECOND.onnx", type=Path, help="second half")
    parser.add_argument("-o", "--output", metavar="NAME", type=Path, required=True, help="NAME_1.hw.pt, NAME_2.hw.pt")
    parser.add_argument("--recordings", metavar="DIR", type=Path, help="noisy speech to measure ranges with")

    def run(args: argparse.Namespace) -> None:
        for folder in convert(args.first, args.second, args.output, recordings.folder(args.recordings)):
            written = folder.with_suffix(".hw.pt")
            program = folder.with_suffix(".gprog").name
            print(f"{written}; compile it with: gharial compile {written} --calibrate {folder} -o {program}")

    return recordings.run(run, parser, argv)


if __name__ == "__main__":
    sys.exit(main())
