# SPDX-License-Identifier: Apache-2.0
"""ARM's keyword spotters (ML-KWS-for-MCU): one LSTM layer over 49 frames of MFCC, twelve classes at the last one.

`python -m scripts.convert.arm_kws arm_kws_basic_lstm_s.pb -o kws.hw.pt` reads a TensorFlow frozen graph.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scripts.convert import recordings
from scripts.convert.encoder import Dense, Framing, Lstm, gates, write_encoder
from scripts.convert.tensors import graph_constants, read_tensors

LABELS = ("silence", "unknown", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
SECOND = recordings.RATE
FRAMING = Framing(rate=recordings.RATE, window=640, hop=320)

_FFT = 1024
_BANDS, _LOW_HZ, _HIGH_HZ, _COEFFICIENTS = 40, 20.0, 4000.0, 10


def read_kws(path: Path) -> tuple[Lstm, Dense]:
    """The LSTM and the output layer of a frozen graph.

    Raises:
        BadInput: the file is not such a graph.
    """
    tensors = read_tensors(path, graph_constants)
    kernel = tensors.take("lstm/rnn/basic_lstm_cell/kernel", None, None)
    hidden = kernel.shape[1] // 4
    inputs = kernel.shape[0] - hidden
    bias = tensors.take("lstm/rnn/basic_lstm_cell/bias", 4 * hidden).copy()
    # BasicLSTMCell: one kernel for [x, h], gates i, j (= g), f, o, and the cell adds 1 to f's pre-activation.
    bias[2 * hidden : 3 * hidden] += 1.0
    rows = gates(kernel.T, "igfo")
    head = Dense(tensors.take("W_o", hidden, None).T, tensors.take("b_o", None))
    return Lstm(rows[:, :inputs], rows[:, inputs:], gates(bias, "igfo")), head


def mfcc(samples: np.ndarray) -> np.ndarray:
    """(49, 10) coefficients of one second, (16000,) with full scale 1, as TensorFlow's AudioSpectrogram and Mfcc do.

    Magnitudes (not powers) go through triangles on the scale 1127 ln(1 + f / 700); logarithm of at least 1e-12;
    orthonormal DCT II without its special first row. Shorter samples are filled up with zeros, longer ones cut.
    """
    samples = np.pad(samples[:SECOND].astype(np.float64), (0, max(0, SECOND - len(samples))))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAMING.window) / FRAMING.window)
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAMING.window)[:: FRAMING.hop]
    magnitudes = np.abs(np.fft.rfft(frames * window, _FFT))
    mels = 1127.0 * np.log1p(np.arange(_FFT // 2 + 1) * (FRAMING.rate / _FFT) / 700.0)
    low, high = (1127.0 * np.log1p(hz / 700.0) for hz in (_LOW_HZ, _HIGH_HZ))
    edges = np.linspace(low, high, _BANDS + 2)
    rising = (mels[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mels[:, None]) / (edges[2:] - edges[1:-1])
    energies = np.log(np.maximum(magnitudes @ np.maximum(np.minimum(rising, falling), 0.0), 1e-12))
    k = np.arange(_COEFFICIENTS)[:, None]
    dct = np.sqrt(2.0 / _BANDS) * np.cos(np.pi / _BANDS * k * (np.arange(_BANDS) + 0.5))
    return np.asarray(energies @ dct.T)


def seconds(samples: np.ndarray) -> list[np.ndarray]:
    """A recording cut into pieces of one second, half a second apart; the last one may be shorter."""
    return [samples[at : at + SECOND] for at in range(0, max(1, len(samples) - SECOND // 2), SECOND // 2)]


def convert(graph: Path, output: Path, clips: Sequence[np.ndarray]) -> Path:
    """Write the checkpoint of a spotter.

    Args:
        graph: the frozen graph.
        output: NAME.hw.pt to write.
        clips: (n,) samples of speech, a second each, to measure ranges with.

    Returns:
        The folder of vectors to calibrate with.
    """
    lstm, head = read_kws(graph)
    return write_encoder(output, [lstm], head, [mfcc(clip) for clip in clips], FRAMING)


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 written, 2 bad input."""
    parser = argparse.ArgumentParser("arm_kws", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("graph", metavar="GRAPH.pb", type=Path, help="frozen graph of a spotter with one basic LSTM")
    parser.add_argument("-o", "--output", metavar="NAME.hw.pt", type=Path, required=True, help="checkpoint to write")
    parser.add_argument(
        "--recordings", metavar="DIR", type=Path, help="speech to measure ranges with (shipped strings)"
    )

    def run(args: argparse.Namespace) -> None:
        clips = [clip for recording in recordings.folder(args.recordings) for clip in seconds(recording)]
        folder = convert(args.graph, args.output, clips)
        print(f"{args.output}; compile it with: gharial compile {args.output} --calibrate {folder} -o kws.gprog")

    return recordings.run(run, parser, argv)


if __name__ == "__main__":
    sys.exit(main())
