# SPDX-License-Identifier: Apache-2.0
"""LSTMs that others trained: read right, and as good in integers as in float.

A keyword spotter (ARM, TensorFlow) and a noise suppressor (DTLN, ONNX) run on real recordings, first in float, where
what they do for a living shows that weights and gate orders are read right; then with their LSTM layers replaced by
the integer reference model's. Each integer layer is also set against PyTorch on the same int8 inputs: the bounds are
how many dB h lies above the difference, one to three below what was measured.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from published.frontends import KWS_LABELS, Layers, dtln, dtln_encoded, dtln_spectra, mfcc, si_sdr, stacked
from published.integer import IntegerStack, double, run_float
from published.protobuf import Malformed
from published.weights import Lstm, gates, graph_constants, onnx_initialisers, read_dtln_1, read_dtln_2, read_kws
from reference_quantiser import FloatLstm

from gharial.audio import open_audio, read_all

CLIPS_A_WORD = 10
SECOND = 16000
NOISE_DB = 5.0


def samples(path: Path) -> np.ndarray:
    """A recording at 16 kHz, (n,) float64 with full scale 1."""
    with open_audio(path) as audio:
        values = read_all(audio)
    return values / 32768.0 if values.dtype == np.int16 else values.astype(np.float64)


def keywords(data_dir: Path, first: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Ten recordings of each class as (49, 10) MFCC, and their classes; `first` picks which."""
    inputs, labels = [], []
    for label, word in enumerate(KWS_LABELS):
        clips = sorted((data_dir / "speech_commands" / word).glob("*.flac"))
        for path in clips[first :: len(clips) // CLIPS_A_WORD][:CLIPS_A_WORD]:
            clip = samples(path)[:SECOND]
            inputs.append(mfcc(np.pad(clip, (0, SECOND - len(clip)))))
            labels.append(label)
    return inputs, np.array(labels)


@pytest.mark.parametrize("size", ["s", "m"])
def test_keyword_spotter(data_dir: Path, size: str) -> None:
    lstm, dense = read_kws(data_dir / "published_weights" / f"arm_kws_basic_lstm_{size}.pb")
    weights = double(lstm)
    stack = IntegerStack([weights], keywords(data_dir, 3)[0])
    inputs, labels = keywords(data_dir, 0)

    def chosen(outputs: list[np.ndarray]) -> np.ndarray:
        return (np.array([h[-1] for h in outputs]) @ dense.weight.T + dense.bias).argmax(axis=1)

    in_float = chosen([run_float(weights, x)[0] for x in inputs])
    in_integers = chosen([stack(x) for x in inputs])
    right_float, right_integers = ((found == labels).sum() for found in (in_float, in_integers))
    distances = [stack.distances(x)[0] for x in inputs[::7]]
    print(f"right of {len(labels)}: float {right_float}, integer {right_integers}; h {min(distances):.1f} dB at worst")
    # Published: 85 % and 86 % of the whole set.
    assert right_float >= 0.85 * len(labels)
    assert right_integers >= right_float - 3
    assert (in_float == in_integers).sum() >= len(labels) - 5
    assert min(distances) >= 28


def noisy(path: Path, seconds: int) -> tuple[np.ndarray, np.ndarray]:
    """A recording's start, and the same with white noise 5 dB below it."""
    clean = samples(path)[: seconds * SECOND]
    noise = np.random.default_rng(5).standard_normal(len(clean))
    noise *= np.sqrt(np.square(clean).sum() / np.square(noise).sum() / 10 ** (NOISE_DB / 10))
    return clean, clean + noise


def float_stack(layers: list[Lstm]) -> Layers:
    def layer(weights: FloatLstm) -> Layers:
        return lambda x: run_float(weights, x)[0]

    return stacked([layer(double(lstm)) for lstm in layers])


def test_noise_suppressor(data_dir: Path) -> None:
    layers, mask = read_dtln_1(data_dir / "published_weights" / "dtln_1.onnx")
    second = read_dtln_2(data_dir / "published_weights" / "dtln_2.onnx")
    first_float, second_float = (float_stack(part) for part in (layers, second.layers))

    def lstm_inputs(audio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the LSTMs of both halves are given, all in float."""
        return np.abs(dtln_spectra(audio)), dtln_encoded(audio, (first_float, mask), second)[1]

    _, calibration = noisy(data_dir / "ljspeech" / "LJ001-0004.flac", 3)
    stacks = [
        IntegerStack([double(lstm) for lstm in part], [x])
        for part, x in zip((layers, second.layers), lstm_inputs(calibration), strict=True)
    ]
    clean, given = noisy(data_dir / "ljspeech" / "LJ001-0002.flac", 2)
    in_float = dtln(given, (first_float, mask), (second_float, second))
    in_integers = dtln(given, (stacks[0], mask), (stacks[1], second))
    distances = [d for stack, x in zip(stacks, lstm_inputs(given), strict=True) for d in stack.distances(x)]
    figures = [si_sdr(clean, found) for found in (given, in_float, in_integers)]
    print(f"SI-SDR given, float, integer: {np.round(figures, 2)} dB; h {np.round(distances, 1)} dB")
    assert figures[0] == pytest.approx(NOISE_DB, abs=0.1)
    assert figures[1] >= 12.5
    assert figures[2] >= figures[1] - 0.2
    assert si_sdr(in_float, in_integers) >= 33
    # The first layer reads raw magnitudes, whose bins differ a hundredfold: int8 weights alone leave 25 dB there.
    for found, least in zip(distances, (21, 33, 28, 33), strict=True):
        assert found >= least


def test_gate_order_matters(data_dir: Path) -> None:
    """The figures above would show a wrong order: with i and f taken for each other the spotter guesses."""
    lstm, dense = read_kws(data_dir / "published_weights" / "arm_kws_basic_lstm_s.pb")
    wrong = dataclasses.replace(lstm, weight_ih=gates(lstm.weight_ih, "ifgo", "figo"))
    inputs, labels = keywords(data_dir, 0)
    found = [(run_float(double(wrong), x)[0][-1] @ dense.weight.T + dense.bias).argmax() for x in inputs]
    assert (np.array(found) == labels).mean() < 0.5


def test_gates_are_moved_by_blocks() -> None:
    rows = np.arange(8).reshape(8, 1)
    np.testing.assert_array_equal(gates(rows, "iofc", "ifco")[:, 0], [0, 1, 4, 5, 6, 7, 2, 3])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_damaged_files_are_refused(data_dir: Path, share: float) -> None:
    for name, read in (("arm_kws_basic_lstm_s.pb", graph_constants), ("dtln_1.onnx", onnx_initialisers)):
        data = (data_dir / "published_weights" / name).read_bytes()
        with pytest.raises(Malformed):
            read(data[: int(share * len(data))])


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a",  # no length
        b"\x0a\x05abc",  # shorter than its length
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a length of eleven bytes
        b"\x0b",  # a group, which is not known
        b"\x08\x01",  # a number where bytes are expected
        b"\x0d\x01\x02",  # a fixed number cut off
    ],
)
def test_malformed_messages_are_refused(message: bytes) -> None:
    with pytest.raises(Malformed):
        graph_constants(message)
