# SPDX-License-Identifier: Apache-2.0
"""LSTMs of other frameworks: reader, converter, compiler, device; and what none of them takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from checkpoint_files import complete
from command import Run
from foreign_models import draw, frozen_graph, message, number, onnx, write_dtln, write_kws
from recordings import SHORT
from scripts.convert import arm_kws, dtln
from scripts.convert.encoder import Dense, Framing, Lstm, run_float, write_encoder
from scripts.convert.protobuf import Malformed
from scripts.convert.recordings import folder
from scripts.convert.tensors import graph_constants, onnx_initialisers, read_tensors

import gharial
from gharial.compiler.calibrate import audio_features
from gharial.errors import BadInput
from gharial.model import open_model
from gharial.program import Program
from gharial.trace import trace_recording

FRAMING = Framing(rate=16000, window=400, hop=160)
INPUTS, HIDDEN, OUTPUTS = 9, 12, 5
# Columns that differ ten-thousandfold, and one that never moves.
SCALES = np.array([1e-2, 0.1, 1, 10, 100, 3, 0.3, 30, 0])
CENTRES = np.linspace(-40, 40, INPUTS)


def network(random: np.random.Generator, layers: int) -> tuple[list[Lstm], Dense]:
    """Layers that take columns of such sizes, and a dense layer."""
    found = []
    for index in range(layers):
        inputs = INPUTS if index == 0 else HIDDEN
        weight = draw(random, 4 * HIDDEN, inputs, spread=0.5)
        bias = draw(random, 4 * HIDDEN, spread=0.3)
        if index == 0:
            weight /= np.where(SCALES > 0, SCALES, 1.0)
            bias -= weight @ CENTRES
        found.append(Lstm(weight, draw(random, 4 * HIDDEN, HIDDEN, spread=0.2), bias))
    return found, Dense(draw(random, OUTPUTS, HIDDEN, spread=1), draw(random, OUTPUTS, spread=1))


def inputs(random: np.random.Generator, *lengths: int) -> list[np.ndarray]:
    return [CENTRES + SCALES * random.standard_normal((length, INPUTS)) for length in lengths]


def by_torch(layers: list[Lstm], head: Dense, x: np.ndarray) -> np.ndarray:
    """The network in PyTorch, double precision."""
    values = torch.tensor(x)
    for layer in layers:
        lstm = torch.nn.LSTM(values.shape[1], HIDDEN, dtype=torch.float64)
        weights = {"weight_ih_l0": layer.weight_ih, "weight_hh_l0": layer.weight_hh, "bias_ih_l0": layer.bias}
        weights["bias_hh_l0"] = np.zeros(4 * HIDDEN)
        lstm.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
        values = lstm(values)[0].detach()
    return values.numpy() @ head.weight.T + head.bias


@pytest.mark.parametrize("layers", [1, 3])
def test_from_weights_to_outputs(cli: Run, tmp_path: Path, layers: int) -> None:
    """A network of one layer and of three, by the command line as a user does it, against PyTorch."""
    random = np.random.default_rng(layers)
    stack, head = network(random, layers)
    checkpoint, program = tmp_path / "mine.hw.pt", tmp_path / "mine.gprog"
    calibration = write_encoder(checkpoint, stack, head, inputs(random, 80, 60), FRAMING)
    assert calibration == tmp_path / "mine.calibration"
    assert cli("compile", checkpoint, "--calibrate", calibration, "-o", program, "--config", "tiny").code == 0
    given = inputs(random, 40, 1, 33)
    with gharial.Encoder(Program.read(program)) as encoder:
        found = encoder.run(given)
    for x, outputs in zip(given, found, strict=True):
        wanted = by_torch(stack, head, x)
        np.testing.assert_allclose(head.run(run_float(stack, x)), wanted, rtol=0, atol=1e-9)
        assert outputs.shape == wanted.shape
        error = 10 * np.log10(np.square(wanted).sum() / np.square(outputs - wanted).sum())
        print(f"{layers} layers, {len(x)} steps: {error:.1f} dB")
        assert error >= 25


def test_devices_agree_and_so_does_company(tmp_path: Path, seed: int) -> None:
    """The reference device gives the same outputs; more sequences than slots, of any length, run as each alone."""
    random = np.random.default_rng(seed)
    stack, head = network(random, int(random.integers(1, 4)))
    calibration = write_encoder(tmp_path / "mine.hw.pt", stack, head, inputs(random, 40), FRAMING)
    program = gharial.compile_model(tmp_path / "mine.hw.pt", "tiny", calibration)
    given = inputs(random, *random.integers(0, 12, 40))
    with gharial.Encoder(program) as encoder:
        together = encoder.run(given)
        for x, outputs in zip(given[:5], together[:5], strict=True):
            np.testing.assert_array_equal(encoder.run([x])[0], outputs)
    with gharial.Encoder(program, "reference") as reference:
        for x, outputs in zip(given[:3], reference.run(given[:3]), strict=True):
            assert outputs.shape == (len(x), OUTPUTS)
        np.testing.assert_array_equal(np.concatenate(reference.run(given[:3])), np.concatenate(together[:3]))


def test_keyword_spotter_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A frozen graph to a program, on the shipped recordings; gates i, j, f, o and the forget bias are in the file."""
    random = np.random.default_rng(4)
    graph = write_kws(tmp_path / "kws.pb", random)
    tensors = graph_constants(graph.read_bytes())
    kernel, bias = (tensors[f"lstm/rnn/basic_lstm_cell/{name}"] for name in ("kernel", "bias"))
    lstm, head = arm_kws.read_kws(graph)
    x, h = random.standard_normal(10), random.standard_normal(6)
    i, j, f, o = np.split(np.concatenate([x, h]) @ kernel + bias, 4)
    rows = lstm.weight_ih @ x + lstm.weight_hh @ h + lstm.bias
    np.testing.assert_allclose(rows, np.concatenate([i, f + 1.0, j, o]), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(head.weight, tensors["W_o"].T)

    output = tmp_path / "kws.hw.pt"
    assert arm_kws.main([str(graph), "-o", str(output)]) == 0
    assert f"gharial compile {output} --calibrate {tmp_path / 'kws.calibration'}" in capsys.readouterr().out
    program = gharial.compile_model(output, "tiny", tmp_path / "kws.calibration")
    vectors = arm_kws.mfcc(folder(None)[0])
    assert vectors.shape == (49, 10)
    with gharial.Encoder(program) as encoder:
        (found,) = encoder.run([vectors])
    wanted = head.run(lstm.run(vectors))
    assert np.square(wanted).sum() > 100 * np.square(found - wanted).sum()


def test_noise_suppressor_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two ONNX models to programs, on noise."""
    random = np.random.default_rng(5)
    models = write_dtln(tmp_path, random)
    noise = tmp_path / "noise"
    noise.mkdir()
    samples = 0.1 * random.standard_normal(6000)
    soundfile.write(noise / "noise.wav", samples, 16000, subtype="FLOAT")
    output = tmp_path / "small"
    assert dtln.main([*map(str, models), "-o", str(output), "--recordings", str(noise)]) == 0
    told = capsys.readouterr().out.splitlines()
    for half, line in enumerate(told, 1):
        name = tmp_path / f"small_{half}"
        assert line.endswith(f"gharial compile {name}.hw.pt --calibrate {name}.calibration -o small_{half}.gprog")
    assert len(told) == 2
    first, second = dtln.read_first(models[0]), dtln.read_second(models[1])
    b = onnx_initialisers(models[0].read_bytes())["lstm_4_B"][0]
    # ONNX: gates i, o, f, c, the bias of x before that of h.
    i, o, f, c = np.split(b[:20] + b[20:], 4)
    np.testing.assert_array_equal(first.layers[0].bias, np.concatenate([i, f, c, o]))
    programs = [
        gharial.compile_model(tmp_path / f"small_{half}.hw.pt", "tiny", tmp_path / f"small_{half}.calibration")
        for half in (1, 2)
    ]
    (wanted,) = dtln.suppress([samples], first.run, second.run, second)
    with gharial.Encoder(programs[0]) as one, gharial.Encoder(programs[1]) as two:
        (found,) = dtln.suppress([samples], one.run, two.run, second)
    assert len(found) == (len(samples) - 512) // 128 * 128 + 512
    assert np.square(wanted).sum() > 100 * np.square(found - wanted).sum()


def test_the_encoder_of_a_recogniser() -> None:
    """joint_enc's outputs of a model that takes audio are those of its trace."""
    program = open_model()
    trace = trace_recording(program, SHORT)
    with gharial.Encoder(program) as encoder:
        vectors = audio_features(SHORT, encoder.front_end)
        vectors = vectors[: len(vectors) // 2 * 2]
        (found,) = encoder.run([vectors])
        with pytest.raises(BadInput, match=r"sequence 1: the last step lacks vectors\nfound 3 vectors, expected a mul"):
            encoder.run([vectors, vectors[:3]])
    numerics = program.manifest["numerics"]
    unit = numerics["joint_unit"] * 2.0 ** -numerics["joint_shift"]
    np.testing.assert_array_equal(found, trace["joint_enc"][: len(found)] * unit)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkpoint that takes vectors, its vectors beside it."""
    random = np.random.default_rng(6)
    write_encoder(tmp_path / "small.hw.pt", *network(random, 1), inputs(random, 30), FRAMING)
    return tmp_path / "small.hw.pt"


def test_audio_is_refused(cli: Run, small: Path, tmp_path: Path) -> None:
    """Neither the shipped recordings calibrate it, nor is there anything to transcribe."""
    outcome = cli("compile", small, "-o", tmp_path / "a.gprog")
    assert outcome.code == 2 and "--calibrate DIR" in outcome.err and "no vectors" in outcome.err
    assert not (tmp_path / "a.gprog").exists()
    assert cli("compile", small, "--calibrate", tmp_path / "small.calibration", "-o", tmp_path / "b.gprog").code == 0
    outcome = cli("transcribe", SHORT, "--model", tmp_path / "b.gprog")
    assert outcome.code == 2 and "no audio" in outcome.err and "gharial.Encoder" in outcome.err
    assert "given" in cli("inspect", small).out
    assert json.loads(cli("inspect", tmp_path / "b.gprog", "--json").out)["features"]["given"] is True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda path: np.save(path, np.zeros((4, INPUTS + 1))),
            rf"found \(4, {INPUTS + 1}\), expected \(any, {INPUTS}\)",
        ),
        (lambda path: np.save(path, np.full((4, INPUTS), np.nan)), "not finite"),
        (lambda path: np.save(path, np.array([{}]), allow_pickle=True), "cannot be read as an array"),
        (lambda path: np.save(path, np.array([["a"]])), "is no array of numbers"),
        (lambda path: path.write_bytes(b"\x93NUMPY"), "cannot be read as an array"),
        (lambda path: path.write_bytes(b""), "cannot be read as an array"),
    ],
)
def test_vectors_that_are_none(small: Path, change: Callable[[Path], object], message: str) -> None:
    calibration = small.with_name("small.calibration")
    change(calibration / "0001.npy")
    with pytest.raises(BadInput, match=message) as caught:
        gharial.compile_model(small, "tiny", calibration)
    assert "0001.npy" in str(caught.value)


def test_networks_that_do_not_fit(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    (layer,), head = network(random, 1)
    good = inputs(random, 9)
    wide = Lstm(draw(random, 4 * HIDDEN, 3), layer.weight_hh, layer.bias)
    for layers, dense, vectors, name, part in (
        ([], head, good, "a.hw.pt", "no layers"),
        ([layer, wide], head, good, "a.hw.pt", "layer 1: shapes do not fit"),
        ([layer], Dense(head.weight[:, 1:], head.bias), good, "a.hw.pt", "dense layer: shapes do not fit"),
        ([layer], head, [], "a.hw.pt", "no vectors"),
        ([layer], head, [good[0][:, 1:]], "a.hw.pt", "recording 0"),
        ([layer], head, [good[0] * np.inf], "a.hw.pt", "recording 0"),
        ([layer], head, good, "a.pt", "another ending"),
        ([layer], head, good, "missing/a.hw.pt", "folder does not exist"),
    ):
        with pytest.raises(BadInput, match=part):
            write_encoder(tmp_path / name, layers, dense, vectors, FRAMING)
        assert list(tmp_path.iterdir()) == []


def test_only_its_own_folder_is_replaced(small: Path) -> None:
    """Vectors of another run go; a folder that holds something else stays, and nothing is written."""
    random = np.random.default_rng(8)
    calibration = small.with_name("small.calibration")
    write_encoder(small, *network(random, 1), inputs(random, 9, 8), FRAMING)
    assert sorted(path.name for path in calibration.iterdir()) == ["0000.npy", "0001.npy"]
    before = small.read_bytes()
    (calibration / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="something else"):
        write_encoder(small, *network(random, 1), inputs(random, 9), FRAMING)
    assert small.read_bytes() == before and len(list(calibration.iterdir())) == 3


def test_nothing_is_left_of_what_could_not_be_written(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    (tmp_path / "a.hw.pt").mkdir()
    with pytest.raises(BadInput, match="not a file, so it is not overwritten"):
        write_encoder(tmp_path / "a.hw.pt", *network(random, 1), inputs(random, 9), FRAMING)
    assert [path.name for path in tmp_path.iterdir()] == ["a.hw.pt"]
    (tmp_path / "b.calibration").write_text("mine")
    with pytest.raises(BadInput, match="something else"):
        write_encoder(tmp_path / "b.hw.pt", *network(random, 1), inputs(random, 9), FRAMING)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.hw.pt", "b.calibration"]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_damaged_models_are_refused(tmp_path: Path, share: float, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(9)
    paths = write_kws(tmp_path / "kws.pb", random), *write_dtln(tmp_path, random)
    for path, parse in zip(paths, (graph_constants, onnx_initialisers, onnx_initialisers), strict=True):
        data = path.read_bytes()
        path.write_bytes(data[: int(share * len(data))])
        with pytest.raises(BadInput, match="damaged") as caught:
            read_tensors(path, parse)
        assert str(path) in str(caught.value)
        complete(caught.value)
    assert arm_kws.main([str(paths[0]), "-o", str(tmp_path / "a.hw.pt")]) == 2
    assert dtln.main([*map(str, paths[1:]), "-o", str(tmp_path / "a")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith(("arm_kws", "dtln"))] == ["arm_kws", "dtln"]
    assert not list(tmp_path.glob("a*"))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model"
    kernel = {"lstm/rnn/basic_lstm_cell/kernel": np.zeros((4, 8))}
    path.write_bytes(frozen_graph(kernel))
    with pytest.raises(BadInput, match=r"the tensor lstm/rnn/basic_lstm_cell/bias is missing\nfound lstm"):
        arm_kws.read_kws(path)
    path.write_bytes(frozen_graph(kernel | {"lstm/rnn/basic_lstm_cell/bias": np.zeros(7)}))
    with pytest.raises(BadInput, match=r"bias has another shape\nfound \(7,\), expected \(8\)"):
        arm_kws.read_kws(path)
    path.write_bytes(onnx({"lstm_4_R": np.zeros((1, 8))}))
    with pytest.raises(BadInput, match=r"another shape\nfound \(1, 8\), expected \(1, any, any\)"):
        dtln.read_first(path)
    with pytest.raises(BadInput, match="is missing"):
        dtln.read_second(path)
    with pytest.raises(BadInput, match="no such file"):
        dtln.read_second(tmp_path / "nothing")


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",  # no length
        b"\x0a\x05abc",  # shorter than its length
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a length of eleven bytes
        b"\x0b",  # a group, which is not known
        b"\x08\x01",  # a number where bytes are expected
        b"\x0d\x01\x02",  # a fixed number cut off
        message(1, message(2, b"\xff")),  # a name that is no text
        message(1, message(2, b"Const") + message(5, message(1, b"value"))),  # a constant without a tensor
        message(
            1,
            message(2, b"Const")
            + message(5, message(1, b"value") + message(2, message(8, number(1, 1) + b"\x22\x02ab"))),
        ),
    ],
)
def test_malformed_messages_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        graph_constants(data)
