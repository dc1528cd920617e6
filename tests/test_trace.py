# SPDX-License-Identifier: Apache-2.0
"""Traces: two devices give the same integers, and a difference is found where it begins."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command import Run
from recordings import SHORT, samples

from gharial.errors import BadInput
from gharial.model import compile_model, demo_model
from gharial.program import Program
from gharial.trace import first_difference, read_trace, tensors, trace_recording, write_trace

Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_model(demo_model(), "tiny")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short, with two words, and an odd number of feature vectors."""
    path = tmp_path_factory.mktemp("recording") / "talk.wav"
    soundfile.write(path, samples(SHORT)[: 36000 + 960], 16000)
    return path


@pytest.fixture(scope="module")
def whole(program: Program, recording: Path) -> Arrays:
    return trace_recording(program, recording)


@pytest.fixture
def trace(whole: Arrays) -> Arrays:
    """A copy that a test may change."""
    return {name: array.copy() for name, array in whole.items()}


def test_the_reference_model_gives_the_same(program: Program, recording: Path, whole: Arrays) -> None:
    other = trace_recording(program, recording, "reference")
    assert first_difference(whole, other) is None
    assert all(np.array_equal(whole[name], other[name]) for name in whole)


def test_shapes_are_the_documented_ones(program: Program, whole: Arrays) -> None:
    vectors, steps, tokens = len(whole["features"]), len(whole["joint_enc"]), len(whole["tokens"])
    assert vectors % 2 == 1 and steps == (vectors + 1) // 2 and tokens == 2
    shapes = {
        "features": ("int8", (vectors, 240)),
        "encoder.pre_rnn.1.pre": ("int16", (vectors, 64, 4)),
        "encoder.pre_rnn.0.h": ("int8", (vectors, 64)),
        "encoder.post_rnn.1.c": ("int16", (steps, 64)),
        "joint_enc": ("int16", (steps, 64)),
        "prediction.0.h": ("int8", (tokens + 1, 64)),
        "joint_pred": ("int16", (tokens + 1, 64)),
        "joint": ("int8", (steps + tokens, 64)),
        "logits": ("int16", (steps + tokens, 256)),
        "lse": ("int32", (steps + tokens,)),
        "steps": ("int32", (tokens,)),
    }
    for name, (dtype, shape) in shapes.items():
        assert (str(whole[name].dtype), whole[name].shape) == (dtype, shape), name
    assert list(whole) == list(tensors(program))
    assert whole["prefix"].shape == (0,)
    assert all(np.any(array) for name, array in whole.items() if name != "prefix")


def test_what_follows_from_what(whole: Arrays) -> None:
    """The trace hangs together: tokens are the best classes, the features' step is as documented."""
    best = whole["logits"].argmax(axis=1)
    assert whole["tokens"].tolist() == best[best != 255].tolist()
    assert whole["joint"].min() >= 0


def changed(trace: Arrays, name: str, at: tuple[int, ...]) -> Arrays:
    trace[name][at] ^= 1
    return trace


@pytest.mark.parametrize(
    ("name", "at", "step"),
    [
        ("features", (7, 3), None),
        ("encoder.pre_rnn.0.pre", (7, 5, 2), 3),
        ("encoder.pre_rnn.1.h", (8, 63), 4),
        ("encoder.post_rnn.0.c", (5, 0), 5),
        ("joint_enc", (0, 1), 0),
        ("prediction.0.h", (0, 9), 0),
        ("joint_pred", (1, 9), "first token"),
        ("joint", (3, 9), 3),
        ("logits", (0, 255), 0),
        ("lse", (2,), 2),
        ("steps", (1,), "second token"),
    ],
)
def test_one_difference_is_found(
    whole: Arrays, trace: Arrays, name: str, at: tuple[int, ...], step: int | str | None
) -> None:
    found = first_difference(whole, changed(trace, name, at))
    assert found is not None
    assert (found.place.tensor, found.place.index) == (name, at[0])
    if isinstance(step, str):
        step = int(whole["steps"][["first", "second"].index(step.split()[0])])
    assert found.place.step == step
    assert (found.element, found.count) == (at[1:], 1)
    assert (found.a, found.b) == (whole[name][at], whole[name][at] ^ 1)
    assert found.tensors == {name: (1, 1)}


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (("features", (40, 0)), ("encoder.pre_rnn.0.pre", (0, 0, 0))),
        (("encoder.pre_rnn.1.h", (5, 0)), ("encoder.post_rnn.0.pre", (2, 0, 0))),
        (("encoder.post_rnn.1.h", (2, 0)), ("encoder.pre_rnn.0.pre", (6, 0, 0))),
        (("encoder.pre_rnn.0.h", (4, 0)), ("encoder.pre_rnn.1.pre", (4, 0, 0))),
        (("encoder.pre_rnn.1.h", (4, 0)), ("encoder.pre_rnn.0.pre", (5, 0, 0))),
        (("joint_enc", (30, 0)), ("joint", (0, 0))),
        (("prediction.0.pre", (0, 0, 0)), ("joint", (0, 0))),
        (("joint", (4, 0)), ("logits", (4, 0))),
        (("logits", (4, 0)), ("joint", (5, 0))),
    ],
)
def test_the_earlier_of_two_is_named(
    whole: Arrays, trace: Arrays, earlier: tuple[str, tuple[int, ...]], later: tuple[str, tuple[int, ...]]
) -> None:
    changed(changed(trace, *later), *earlier)
    found = first_difference(whole, trace)
    assert found is not None
    assert (found.place.tensor, found.place.index) == (earlier[0], earlier[1][0])
    assert set(found.tensors) == {earlier[0], later[0]}


def test_a_token_more_shows_where_the_logits_part(whole: Arrays, trace: Arrays) -> None:
    """One run emits another token: everything after it has other lengths."""
    joint = 20
    trace["logits"][joint, 9] = 32767
    for name, count in (("tokens", 1), ("steps", 1), ("prediction.0.h", 1), ("joint", 1), ("logits", 1), ("lse", 1)):
        trace[name] = np.concatenate([trace[name], trace[name][-count:]])
    for first, second in ((whole, trace), (trace, whole)):
        found = first_difference(first, second)
        assert found is not None
        assert (found.place.tensor, found.place.index) == ("logits", joint)


def test_a_trace_that_ends_early(whole: Arrays, trace: Arrays) -> None:
    trace["joint_enc"] = trace["joint_enc"][:-1]
    found = first_difference(whole, trace)
    assert found is not None
    assert (found.place.tensor, found.element, found.place.index) == ("joint_enc", None, len(trace["joint_enc"]))


def test_traces_of_other_models_are_refused(whole: Arrays, trace: Arrays) -> None:
    trace["joint"] = trace["joint"][:, :10]
    with pytest.raises(BadInput, match="different models"):
        first_difference(whole, trace)
    del trace["joint"]
    with pytest.raises(BadInput, match="only one of them has joint"):
        first_difference(whole, trace)


def test_files(whole: Arrays, tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        write_trace(tmp_path / name, whole)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    back = read_trace(tmp_path / "a.npz")
    assert list(back) == list(whole)
    assert first_difference(whole, back) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def spoiled(kind: str, whole: Arrays, path: Path) -> None:
    arrays = dict(whole)
    if kind == "text":
        path.write_text("no trace")
        return
    if kind == "one array":
        with path.open("wb") as file:
            np.save(file, np.arange(4))
        return
    if kind == "objects":
        arrays["tokens"] = np.array([{}, []], object)
    elif kind == "floats":
        arrays["joint"] = arrays["joint"] * 1.0
    elif kind == "a tensor less":
        del arrays["logits"]
    elif kind == "steps that are none":
        arrays["steps"] = arrays["steps"] + 1_000_000
    with path.open("wb") as file:
        np.savez(file, **arrays)
    if kind == "truncated":
        path.write_bytes(path.read_bytes()[:-200])
    elif kind == "damaged":
        data = bytearray(path.read_bytes())
        data[80:90] = b"\xff" * 10  # within the first member's compressed data
        path.write_bytes(data)


@pytest.mark.parametrize(
    "kind",
    [
        "text",
        "one array",
        "objects",
        "floats",
        "a tensor less",
        "steps that are none",
        "truncated",
        "damaged",
        "missing",
    ],
)
def test_files_that_are_no_traces(cli: Run, whole: Arrays, tmp_path: Path, kind: str) -> None:
    path, good = tmp_path / "t.npz", tmp_path / "good.npz"
    write_trace(good, whole)
    if kind != "missing":
        spoiled(kind, whole, path)
    outcome = cli("trace", "diff", good, path)
    outcome.refused(str(path), "no such file" if kind == "missing" else "this is no trace")


def test_on_the_command_line(
    cli: Run, program: Program, recording: Path, whole: Arrays, trace: Arrays, tmp_path: Path
) -> None:
    model, a, b = tmp_path / "m.gprog", tmp_path / "a.npz", tmp_path / "b.npz"
    program.write(model)
    outcome = cli("trace", model, recording, "-o", a)
    assert (outcome.code, outcome.err) == (0, "")
    assert first_difference(read_trace(a), whole) is None
    write_trace(b, changed(trace, "encoder.post_rnn.0.h", (3, 5)))
    assert cli("trace", "diff", a, a).code == 0
    assert json.loads(cli("trace", "diff", a, a, "--json").out)["same"] is True
    outcome = cli("trace", "diff", a, b)
    assert outcome.code == 1
    assert outcome.out.startswith("first difference: encoder step 3, encoder.post_rnn.0.h[3]\n")
    found = json.loads(cli("trace", "diff", "--json", a, b).out)
    assert (found["same"], found["tensor"], found["step"], found["element"]) == (False, "encoder.post_rnn.0.h", 3, [5])
