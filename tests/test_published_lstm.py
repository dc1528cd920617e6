# SPDX-License-Identifier: Apache-2.0
"""LSTMs that others trained: read right, and as good in integers as in float.

A keyword spotter (ARM, TensorFlow) and a noise suppressor (DTLN, ONNX) run on real recordings: in float, where what
they do for a living shows that weights and gate orders are read right; with their LSTM layers replaced by the integer
reference model's, quantised by the tests' own quantiser; and through converter, compiler and emulator, as
`make bench` does with all recordings. Each integer layer is also set against PyTorch on the same int8 inputs: the
bounds are how many dB h lies above the difference, one to three below what was measured.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from published_layers import IntegerStack, double, run_float
from scripts import bench_published as bench
from scripts.convert import arm_kws, dtln, recordings
from scripts.convert.encoder import Dense, Lstm, gates

CLIPS_A_WORD = 10
FEW = 4
SECOND = 16000


def clips(data_dir: Path, first: int, count: int = CLIPS_A_WORD) -> list[tuple[np.ndarray, int]]:
    """So many recordings of each class, and their classes; `first` picks which."""
    found = []
    for label, word in enumerate(arm_kws.LABELS):
        files = sorted((data_dir / "speech_commands" / word).glob("*.flac"))
        found += [(recordings.samples(path), label) for path in files[first :: len(files) // count][:count]]
    return found


def keywords(data_dir: Path, first: int, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The same as (49, 10) MFCC, and the classes."""
    found = clips(data_dir, first, count)
    return [arm_kws.mfcc(samples) for samples, _ in found], np.array([label for _, label in found])


def graph(data_dir: Path, size: str) -> Path:
    return data_dir / "published_weights" / f"arm_kws_basic_lstm_{size}.pb"


def halves(data_dir: Path) -> tuple[Path, Path]:
    return data_dir / "published_weights" / "dtln_1.onnx", data_dir / "published_weights" / "dtln_2.onnx"


@pytest.mark.parametrize("size", ["s", "m"])
def test_keyword_spotter(data_dir: Path, size: str) -> None:
    lstm, dense = arm_kws.read_kws(graph(data_dir, size))
    weights = double(lstm)
    stack = IntegerStack([weights], keywords(data_dir, 3, FEW)[0])
    inputs, labels = keywords(data_dir, 0, FEW)

    def chosen(outputs: list[np.ndarray]) -> np.ndarray:
        return dense.run(np.array([h[-1] for h in outputs])).argmax(axis=1)

    in_float = chosen([run_float(weights, x)[0] for x in inputs])
    in_integers = chosen([stack(x) for x in inputs])
    right_float, right_integers = ((found == labels).sum() for found in (in_float, in_integers))
    distances = [stack.distances(x)[0] for x in inputs[::7]]
    print(f"right of {len(labels)}: float {right_float}, integer {right_integers}; h {min(distances):.1f} dB at worst")
    # 85 % of the whole set, of either size.
    assert right_float >= 0.8 * len(labels)
    assert right_integers >= right_float - 2
    assert (in_float == in_integers).sum() >= len(labels) - 3
    assert min(distances) >= 28


@pytest.mark.parametrize("size", ["s", "m"])
def test_keyword_spotter_on_the_machine(data_dir: Path, size: str) -> None:
    found = bench.spot(graph(data_dir, size), clips(data_dir, 0), bench.shipped_seconds()[::4])
    print(found)
    assert found["clips"] == 120
    assert found["right_float"] >= 0.85 * found["clips"]
    assert found["right_int8"] >= found["right_float"] - 3
    assert found["same_class"] >= found["clips"] - 5
    assert found["outputs_snr_db"] >= 23


def test_noise_suppressor(data_dir: Path) -> None:
    first, second = dtln.read_first(halves(data_dir)[0]), dtln.read_second(halves(data_dir)[1])

    def in_double(half: dtln.First) -> dtln.Layers:
        def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
            outputs = []
            for x in inputs:
                for lstm in half.layers:
                    x, _ = run_float(double(lstm), x)
                outputs.append(half.mask.run(x))
            return outputs

        return run

    def in_integers(half: dtln.First, stack: IntegerStack) -> dtln.Layers:
        return lambda inputs: [half.mask.run(stack(x)) for x in inputs]

    def lstm_inputs(audio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the LSTMs of both halves are given, all in float."""
        return np.abs(dtln.spectra(audio)), second.encoded(dtln.masked([audio], in_double(first))[0])[1]

    calibration = bench.with_noise(recordings.samples(data_dir / "ljspeech" / "LJ001-0004.flac")[: 3 * SECOND])
    stacks = [
        IntegerStack([double(lstm) for lstm in half.layers], [x])
        for half, x in zip((first, second), lstm_inputs(calibration), strict=True)
    ]
    clean = recordings.samples(data_dir / "ljspeech" / "LJ001-0002.flac")[: 2 * SECOND]
    given = bench.with_noise(clean)
    cleaned = [
        dtln.suppress([given], in_double(first), in_double(second), second)[0],
        dtln.suppress([given], in_integers(first, stacks[0]), in_integers(second, stacks[1]), second)[0],
    ]
    distances = [d for stack, x in zip(stacks, lstm_inputs(given), strict=True) for d in stack.distances(x)]
    figures = [bench.si_sdr(clean, found) for found in (given, *cleaned)]
    print(f"SI-SDR given, float, integer: {np.round(figures, 2)} dB; h {np.round(distances, 1)} dB")
    assert figures[0] == pytest.approx(bench.NOISE_DB, abs=0.1)
    assert figures[1] >= 12.5
    assert figures[2] >= figures[1] - 0.2
    assert bench.si_sdr(*cleaned) >= 33
    # The first layer reads raw magnitudes, whose bins differ a hundredfold: int8 weights alone leave 25 dB there.
    for found, least in zip(distances, (21, 33, 28, 33), strict=True):
        assert found >= least


def test_noise_suppressor_on_the_machine(data_dir: Path) -> None:
    names = ("LJ001-0002", "LJ001-0005", "LJ001-0004")
    clean = [recordings.samples(data_dir / "ljspeech" / f"{name}.flac")[: 3 * SECOND] for name in names]
    noisy = [bench.with_noise(samples) for samples in clean]
    found = bench.suppress(halves(data_dir), list(zip(clean[:2], noisy[:2], strict=True)), noisy[2:])
    print(found)
    for given, in_float, in_int8, apart in zip(
        found["given_db"], found["float_db"], found["int8_db"], found["int8_to_float_db"], strict=True
    ):
        assert given == pytest.approx(bench.NOISE_DB, abs=0.1)
        assert in_float >= 12
        assert in_int8 >= in_float - 0.2
        assert apart >= 29


def test_layers_in_float_equal_torch(data_dir: Path) -> None:
    """What the integers are compared with, against PyTorch."""
    first = dtln.read_first(halves(data_dir)[0])
    x = np.abs(dtln.spectra(recordings.samples(data_dir / "ljspeech" / "LJ001-0002.flac")[:SECOND]))
    wanted, _ = run_float(double(first.layers[0]), x)
    wanted, _ = run_float(double(first.layers[1]), wanted)
    mask = torch.nn.functional.linear(*(torch.tensor(a) for a in (wanted, first.mask.weight.astype(float)))).numpy()
    np.testing.assert_allclose(first.run([x])[0], mask + first.mask.bias, rtol=0, atol=1e-9)


def test_gate_order_matters(data_dir: Path) -> None:
    """The figures above would show a wrong order: with i and f taken for each other the spotter guesses."""
    lstm, dense = arm_kws.read_kws(graph(data_dir, "s"))
    wrong = dataclasses.replace(lstm, weight_ih=gates(lstm.weight_ih, "ifgo", "figo"))
    inputs, labels = keywords(data_dir, 0, FEW)
    found = [dense.run(wrong.run(x)[-1:]).argmax() for x in inputs]
    assert (np.array(found) == labels).mean() < 0.5


def test_gates_are_moved_by_blocks() -> None:
    rows = np.arange(8).reshape(8, 1)
    np.testing.assert_array_equal(gates(rows, "iofc", "ifco")[:, 0], [0, 1, 4, 5, 6, 7, 2, 3])


def test_a_dense_layer_of_a_row(seed: int) -> None:
    random = np.random.default_rng(seed)
    dense = Dense(random.standard_normal((3, 4)), random.standard_normal(3))
    x = random.standard_normal((2, 4))
    np.testing.assert_allclose(dense.run(x), [dense.weight @ row + dense.bias for row in x], rtol=0, atol=1e-12)
    assert Lstm(np.zeros((20, 2)), np.zeros((20, 5)), np.zeros(20)).hidden == 5
