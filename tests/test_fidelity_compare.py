# SPDX-License-Identifier: Apache-2.0
"""Both models along one path: float against PyTorch, integers against a recorded trace, and what is told of the two."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import program as random_program
from random_checkpoint import random_checkpoint, random_features
from recordings import SHORT

from gharial.checkpoint import load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.features import quantise_features
from gharial.fidelity import Recording, compare
from gharial.fidelity.forced import IntegerRun, float_tensors, units_of
from gharial.floating import FloatNetwork
from gharial.floating.path import drawn_path
from gharial.floating.yardstick import TorchRnnt
from gharial.model import compile_model, demo_model, front_end
from gharial.program import Program
from gharial.trace import trace_recording


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_model(demo_model())


def random_path(random: np.random.Generator, steps: int, classes: int) -> list[tuple[int, int]]:
    """Some tokens at some steps, at one of them as many as there may be, the last step included."""
    path = [(int(at), int(random.integers(0, classes - 1))) for at in np.sort(random.integers(0, steps - 1, 5))]
    return [*path, *((steps - 1, int(token)) for token in random.integers(0, classes - 1, 30))]


def test_float_along_a_path_is_pytorch(seed: int) -> None:
    checkpoint = random_checkpoint(seed)
    network = FloatNetwork(checkpoint, np.float64)
    features = random_features(seed + 1, 13)
    path = random_path(np.random.default_rng(seed), 7, checkpoint.dims.classes)
    found = float_tensors(network, network.encode(features), path)
    wanted = TorchRnnt(checkpoint, "float64").forced_logits(features, path)
    assert found["logits"] == pytest.approx(wanted, abs=1e-9)
    assert len(found["joint_pred"]) == len(found["prediction.1.h"]) == 1 + len(path)


def test_integers_along_their_own_path_are_the_trace(program: Program) -> None:
    trace = trace_recording(program, SHORT)
    path = [(int(step), int(token)) for step, token in zip(trace["steps"], trace["tokens"], strict=True)]
    vectors = quantise_features(audio_features(SHORT, front_end(program)), program.manifest["features"]["frac_bits"])
    with IntegerRun(program) as run:
        for _ in range(2):  # nothing is left over from a run
            found = run.tensors(vectors, path)
            assert path and set(trace) - set(found) == {"prefix", "lse", "tokens", "steps"}
            for name, tensor in found.items():
                assert np.array_equal(tensor, trace[name]), name


def test_tensors_pair_up_along_any_path(seed: int) -> None:
    """Same shapes on both sides, whatever the path: caps, an odd number of vectors, a token at the very end."""
    made = random_program(seed)
    dims_checkpoint = random_checkpoint(seed)
    network = FloatNetwork(dims_checkpoint)
    features = random_features(seed + 2, 11)
    path = random_path(np.random.default_rng(seed), 6, dims_checkpoint.dims.classes)
    exact = float_tensors(network, network.encode(features), path) | {"features": features}
    with IntegerRun(made) as run:
        found = run.tensors(quantise_features(features, made.manifest["features"]["frac_bits"]), path)
    assert list(units_of(made)) == [name for name in found if name in exact]
    for name in units_of(made):
        assert found[name].shape == exact[name].shape, name
    result = compare(made, network, [Recording("random", features, path), Recording("none", features[:0])])
    assert result.recordings == 1
    assert result.evaluations == len(exact["logits"]) and result.partings == []
    assert result.tensors["encoder.pre_rnn.0.pre"].count == exact["encoder.pre_rnn.0.pre"].size


def test_the_shipped_model_is_close(program: Program) -> None:
    network = FloatNetwork(load_hardware(demo_model()))
    features = audio_features(SHORT, front_end(program))
    result = compare(program, network, [Recording("short", features)])
    assert result.tensors.keys() == units_of(program).keys()
    logits = result.logits
    assert logits.sqnr is not None and logits.sqnr > 40
    assert logits.sqnr_changes is not None and 25 < logits.sqnr_changes < logits.sqnr
    assert result.agreement > 0.95 and result.decisive_agreement == 1
    assert 0.5 * result.evaluations < result.decisive <= result.evaluations
    alone = compare(program, network, [Recording("short", features)], only="logits")
    assert list(alone.tensors) == ["logits"] and alone.logits.sqnr == logits.sqnr
    assert (alone.agreeing, alone.error) == (result.agreeing, result.error)


@pytest.mark.parametrize("more", [30.0, -30.0], ids=["a token too many", "a token too few"])
def test_the_first_other_choice_is_named(program: Program, more: float) -> None:
    """The float model's blank made likelier or less likely: the program, left as it is, parts from it."""
    checkpoint = load_hardware(demo_model())
    checkpoint.state["joint_net.2.bias"] = checkpoint.state["joint_net.2.bias"].copy()
    features = audio_features(SHORT, front_end(program))
    network = FloatNetwork(checkpoint)
    path = compare_path(network, features)
    checkpoint.state["joint_net.2.bias"][-1] += more
    result = compare(program, FloatNetwork(checkpoint), [Recording("short", features)])
    (parting,) = result.partings
    assert parting.recording == "short" and parting.place is not None
    blank = checkpoint.dims.classes - 1
    if more > 0:
        # Nothing is said by the float model any more; the program says what it always did.
        step, token = path[0]
        assert (parting.step, parting.evaluation) == (step, step)
        assert (parting.float_class, parting.integer_class) == (blank, token)
        assert parting.place == f"encoder step {step}, tokens[0]"
    else:
        assert parting.float_class != blank == parting.integer_class
        assert parting.place == "encoder step 0, tokens[0]"
    assert parting.margin > 0
    assert set(parting.errors) == set(units_of(program))


def compare_path(network: FloatNetwork, features: np.ndarray) -> list[tuple[int, int]]:
    from gharial.floating import RangeCollector
    from gharial.floating.calibrate import collect

    (path,) = collect(network, [features], RangeCollector())
    return path


def test_a_prefix_comes_before_the_models_own_tokens(program: Program) -> None:
    network = FloatNetwork(load_hardware(demo_model()))
    features = audio_features(SHORT, front_end(program))
    without = compare(program, network, [Recording("short", features)])
    behind = compare(program, network, [Recording("short", features, prefix=(5, 9))])
    own = compare_path(network, features)
    steps = -(-len(features) // network.dims.stack)
    assert without.evaluations == steps + len(own)
    assert behind.tensors["joint_pred"].count != without.tensors["joint_pred"].count
    assert behind.agreement > 0.9


def test_babble_is_led_along_drawn_tokens(seed: int) -> None:
    """The float model and the program along tokens that neither chose; no place in a transcript is named for them."""
    checkpoint = random_checkpoint(seed, blank_bias=-1000.0)
    network, features = FloatNetwork(checkpoint), random_features(seed + 1, 25)
    given = drawn_path(0, 13, network.blank)
    wanted = compare(random_program(seed), network, [Recording("given", features, given)])
    found = compare(random_program(seed), network, [Recording("babble", features)])
    assert (wanted.babble, found.babble) == (0, 1)
    assert (found.evaluations, found.agreeing) == (wanted.evaluations, wanted.agreeing)
    assert found.logits.sqnr == wanted.logits.sqnr
    # Where the program, whose blank is as likely as it ever was, says it, the float model does not.
    assert wanted.partings == [] and len(found.partings) == (found.agreeing < found.evaluations)
    assert all(parting.place is None for parting in found.partings)
