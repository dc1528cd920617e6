# SPDX-License-Identifier: Apache-2.0
"""The layer-level model: what it reads back from images, and how layers are wired, against plain loops."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import reference_oracle as oracle
from reference_program import Dims, RawLayer, TestProgram, make_program
from sim.reference import ReferenceModel
from sim.reference.layout import Images

from gharial.errors import BadInput
from gharial.isa.configs import config

FULL_PRODUCT = [
    Dims(),
    Dims(stack=1, pre_layers=1, post_layers=1, pred_layers=1),
    Dims(features=24, hidden=16, stack=3, joint=16, classes=256, pred_hidden=8),
    Dims(stack=4, features=4, hidden=3),
    Dims(stack=3, post_layers=0),
]


MIXED = 4  # seed of a program whose utterance has steps of every kind


class Loops:
    """docs/numerics.md, sections 6, 7 and 9, on the drawn integers, in plain loops over units without padding."""

    def __init__(self, program: TestProgram) -> None:
        self.p, self.dims = program, program.dims
        self.tables = ReferenceModel.from_program(program).tables
        self.h: dict[str, list[int]] = {}
        self.c: dict[str, list[int]] = {}

    def product(self, layer: RawLayer, inputs: dict[str, list[int]]) -> list[int]:
        y = []
        for row, bias in enumerate(layer.bias):
            S = int(bias)
            for part in layer.parts:
                columns = part.W.shape[1]
                x = inputs[part.input][part.column : part.column + columns]
                S += oracle.term([int(w) for w in part.W[row]], x, int(part.m[row]), int(part.k[row]))
            y.append(oracle.sat(oracle.rsr(S, 10), 16))
        return y

    def lstm(self, name: str, x: list[int]) -> list[int]:
        layer = self.p.layers[name]
        h = self.h.get(name, [0] * layer.units)
        c = self.c.get(name, [0] * layer.units)
        y = self.product(layer, {"x": x, "h": h})
        pairs = [
            oracle.cell(self.tables.sigmoid, self.tables.tanh, y[4 * u : 4 * u + 4], c[u], layer.qc, layer.qh)
            for u in range(layer.units)
        ]
        self.c[name], self.h[name] = [a for a, _ in pairs], [b for _, b in pairs]
        return self.h[name]

    def encode(self, vectors: list[list[int]]) -> list[int]:
        x: list[int] = []
        for v in vectors:
            h = v
            for at in range(self.dims.pre_layers):
                h = self.lstm(f"encoder.pre_rnn.{at}", h)
            x += h
        for _ in range(self.dims.stack - len(vectors)):
            x += [int(value) for value in self.p.pad]
        for at in range(self.dims.post_layers):
            x = self.lstm(f"encoder.post_rnn.{at}", x)
        return self.product(self.p.layers["joint_enc"], {"x": x})

    def predict(self, token: int | None) -> list[int]:
        x = [0] * self.dims.pred_hidden if token is None else [int(v) for v in self.p.embedding[token]]
        for at in range(self.dims.pred_layers):
            x = self.lstm(f"prediction.{at}", x)
        return self.product(self.p.layers["joint_pred"], {"x": x})

    def logits(self, enc: list[int], pred: list[int]) -> list[int]:
        z = [oracle.joint(a, b, self.p.zs) for a, b in zip(enc, pred, strict=True)]
        return self.product(self.p.layers["logits"], {"x": z})

    def greedy(self, features: np.ndarray, cap: int) -> list[tuple[int, int, int, int]]:
        """(token, step, logit, lse) of each token."""
        found, pred = [], self.predict(None)
        for step, start in enumerate(range(0, len(features), self.dims.stack)):
            enc = self.encode([[int(v) for v in row] for row in features[start : start + self.dims.stack]])
            for _ in range(cap):
                logits = self.logits(enc, pred)
                best = max(range(len(logits)), key=lambda j: (logits[j], -j))
                if best == self.dims.classes - 1:
                    break
                lse = oracle.log_sum_exp(self.tables.exp, self.tables.log, logits, 16384, self.p.e)
                found.append((best, step, logits[best], lse))
                pred = self.predict(best)
        return found


def features(rng: np.random.Generator, dims: Dims, count: int) -> np.ndarray:
    return rng.integers(-127, 128, (count, dims.features))


@pytest.mark.parametrize("name", ["tiny", "ecp5-85f", "kv260"])
def test_matrices_are_read_back_as_they_were_drawn(name: str, seed: int) -> None:
    program = make_program(seed, name)
    model = ReferenceModel.from_program(program)
    layers = [*model.pre, *model.post, *model.prediction, model.joint_enc, model.joint_pred, model.logits_layer]
    assert [layer.name for layer in layers] != []
    assert {layer.name for layer in layers} == set(program.layers)
    for layer in layers:
        drawn = program.layers[layer.name]
        rows = len(drawn.bias)
        assert (layer.units, layer.padded, layer.qc, layer.qh) == (drawn.units, drawn.padded, drawn.qc, drawn.qh)
        np.testing.assert_array_equal(layer.product.bias[:rows], drawn.bias)
        assert not layer.product.bias[rows:].any()
        for part, raw in zip(layer.product.parts, drawn.parts, strict=True):
            assert (part.input, part.column) == (raw.input, raw.column)
            np.testing.assert_array_equal(part.W[:rows], raw.W)
            np.testing.assert_array_equal(part.m[:rows], raw.m)
            np.testing.assert_array_equal(part.k[:rows], raw.k)
            assert not part.W[rows:].any()
            assert not part.m[rows:].any()


def test_scale_words_hold_every_shift() -> None:
    k = np.arange(-8, 24)
    m = np.where(k % 2, (1 << 17) - 1, 0)
    words = (m | (k & 0x3F) << 17).astype("<u4")
    found_m, found_k = Images(config("tiny"), {"scales": words.tobytes()}).scales(0, 2)
    np.testing.assert_array_equal(found_m, m)
    np.testing.assert_array_equal(found_k, k)


@pytest.mark.parametrize("dims", FULL_PRODUCT)
def test_wiring(dims: Dims, seed: int) -> None:
    """Encoder, prediction network and joint over a few steps, the last one short where it can be."""
    rng = np.random.default_rng(seed)
    program = make_program(seed, dims=dims)
    model, loops = ReferenceModel.from_program(program), Loops(program)
    state, prediction = model.encoder_state(), None
    lengths = [dims.stack] * 3 + list(range(1, dims.stack))
    for step, length in enumerate(lengths):
        x8 = features(rng, dims, length)
        state, enc = model.encode_step(state, x8, bank=step % 2)
        expected = loops.encode([[int(v) for v in row] for row in x8])
        assert enc[: dims.joint].tolist() == expected
        np.testing.assert_array_equal(state.banks[step % 2], enc)
        for layer, h, c in zip(model.pre + model.post, state.h, state.c, strict=True):
            assert h[: layer.units].tolist() == loops.h[layer.name]
            assert c[: layer.units].tolist() == loops.c[layer.name]
            assert not h[layer.units :].any()
            assert not c[layer.units :].any()

        token = None if prediction is None else int(rng.integers(dims.classes - 1))
        prediction = model.predict(prediction, token)
        pred = loops.predict(token)
        assert prediction.joint_pred[: dims.joint].tolist() == pred
        logits = model.joint(enc, prediction.joint_pred)
        assert logits.tolist() == loops.logits(expected, pred)
        assert len(set(logits.tolist())) > 1  # all-zero outputs would agree on anything


@pytest.mark.parametrize("dims", FULL_PRODUCT)
def test_greedy_over_an_utterance(dims: Dims, seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = make_program(seed, dims=dims, blank_bias=1 << 21)
    x8 = features(rng, dims, 4 * dims.stack + 1)
    result = ReferenceModel.from_program(program).greedy(x8, max_symbols=3)
    expected = Loops(program).greedy(x8, cap=3)
    assert list(zip(result.tokens, result.steps, result.logits, result.lse, strict=True)) == expected


def test_results_do_not_depend_on_the_configuration(seed: int) -> None:
    """The same network on configurations whose tiles and padding differ: the same logits."""
    outputs = []
    for name in ("tiny", "ecp5-85f", "kv260", "u50"):
        program = make_program(seed, name)
        model = ReferenceModel.from_program(program)
        rng = np.random.default_rng(seed)
        state, enc = model.encode_step(model.encoder_state(), features(rng, program.dims, 2))
        state, enc = model.encode_step(state, features(rng, program.dims, 1))
        outputs.append(model.joint(enc, model.predict(None, None).joint_pred).tolist())
    assert outputs[0] == outputs[1] == outputs[2] == outputs[3]


def test_states_are_left_as_they_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = make_program(seed)
    model = ReferenceModel.from_program(program)
    state, _ = model.encode_step(model.encoder_state(), features(rng, program.dims, 2))
    kept = copy.deepcopy(state)
    first, _ = model.encode_step(state, features(rng, program.dims, 2), bank=1)
    np.testing.assert_array_equal(np.concatenate(state.h + state.c), np.concatenate(kept.h + kept.c))
    np.testing.assert_array_equal(state.banks, kept.banks)
    assert (first.banks[1] != kept.banks[1]).any()
    np.testing.assert_array_equal(first.banks[0], kept.banks[0])

    start = model.predict(None, None)
    kept_start = copy.deepcopy(start)
    model.predict(start, 1)
    np.testing.assert_array_equal(np.concatenate(start.h + start.c), np.concatenate(kept_start.h + kept_start.c))
    # The start looks at no state before it.
    again = model.predict(model.predict(start, 1), None)
    np.testing.assert_array_equal(again.joint_pred, start.joint_pred)


def test_padding_of_features_is_not_looked_at(seed: int) -> None:
    program = make_program(seed)
    model = ReferenceModel.from_program(program)
    x8 = features(np.random.default_rng(seed), program.dims, 2)
    padded = np.pad(x8, ((0, 0), (0, model.features_padded - model.features)))
    assert padded.shape != x8.shape
    _, a = model.encode_step(model.encoder_state(), x8)
    _, b = model.encode_step(model.encoder_state(), padded)
    np.testing.assert_array_equal(a, b)


def test_greedy_with_blanks_tokens_and_the_cap() -> None:
    """A drawn program that shows them all: nothing, a token, nothing, then as many as may be."""
    program = make_program(MIXED, blank_bias=1 << 21)
    x8 = features(np.random.default_rng(MIXED), program.dims, 7)
    model = ReferenceModel.from_program(program)
    assert model.greedy(x8, max_symbols=3).steps == [1, 3, 3, 3]
    state, enc = model.encoder_state(), None
    prediction = model.predict(None, None)
    counts = []
    for step in range(4):
        state, enc = model.encode_step(state, x8[2 * step : 2 * step + 2])
        emission = model.greedy_step(enc, prediction, 3)
        prediction = emission.state
        counts.append((len(emission.tokens), emission.joints, emission.capped))
    # A step ends with the joint that gives blank, or after the last symbol without another joint.
    assert counts == [(0, 1, False), (1, 2, False), (0, 1, False), (3, 3, True)]


def test_trace() -> None:
    """Every key of docs/numerics.md, section 12, with its dtype and shape, and the values of the model."""
    rng, dims = np.random.default_rng(MIXED), Dims()
    program = make_program(MIXED, blank_bias=1 << 21)
    model = ReferenceModel.from_program(program)
    trace = model.trace()
    x8 = features(rng, dims, 7)
    result = model.greedy(x8, max_symbols=3, trace=trace)
    arrays = trace.arrays()
    T2, T, N, H, P = 7, 4, len(result.tokens), dims.hidden, dims.pred_hidden
    Q = len(arrays["lse"])
    assert (N, Q) == (4, 7)

    expected = {"features": ("int8", (T2, dims.features))}
    for prefix, count, units, time in (
        ("encoder.pre_rnn", 2, H, T2),
        ("encoder.post_rnn", 2, H, T),
        ("prediction", 2, P, N + 1),
    ):
        if prefix == "prediction":
            expected["joint_enc"] = ("int16", (T, dims.joint))
        for at in range(count):
            expected[f"{prefix}.{at}.pre"] = ("int16", (time, units, 4))
            expected[f"{prefix}.{at}.c"] = ("int16", (time, units))
            expected[f"{prefix}.{at}.h"] = ("int8", (time, units))
    expected |= {
        "joint_pred": ("int16", (N + 1, dims.joint)),
        "joint": ("int8", (Q, dims.joint)),
        "logits": ("int16", (Q, dims.classes)),
        "lse": ("int32", (Q,)),
        "tokens": ("int32", (N,)),
        "steps": ("int32", (N,)),
    }
    assert list(arrays) == list(expected)
    assert {key: (str(a.dtype), a.shape) for key, a in arrays.items()} == expected
    np.testing.assert_array_equal(arrays["features"], x8)
    assert arrays["tokens"].tolist() == result.tokens
    assert arrays["steps"].tolist() == result.steps
    state = model.encoder_state()
    for step in range(T):
        state, enc = model.encode_step(state, x8[2 * step : 2 * step + 2])
        np.testing.assert_array_equal(arrays["joint_enc"][step], enc[: dims.joint])
    np.testing.assert_array_equal(arrays["encoder.post_rnn.1.h"][-1], state.h[-1][:H])
    assert all(a.any() for key, a in arrays.items() if key not in ("tokens", "steps"))


def test_a_trace_of_nothing_has_every_key() -> None:
    trace = ReferenceModel.from_program(make_program(1)).trace()
    assert trace.steps() == {}
    arrays = trace.arrays()
    assert arrays["logits"].shape == (0, Dims().classes)
    assert arrays["encoder.pre_rnn.0.pre"].shape == (0, 6, 4)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (("layers", 0, "parts", 0, "tile"), 1 << 20, "outside its image"),
        (("layers", 0, "parts", 0, "scale_group"), 1 << 20, "outside its image"),
        (("layers", 0, "bias_group"), -1, "outside its image"),
        (("layers", 0, "parts", 0, "padded"), 13, "not whole tiles"),
        (("layers", 0, "parts", 0, "columns"), 1, "padding columns"),
        (("layers", 0, "parts", 0, "input"), "y", "takes x or h"),
        (("layers", 0, "name"), "elsewhere", "no such layer"),
        (("layers", 1, "units"), 5, "do not fit"),
        (("features", "count"), 9, "do not fit"),
        (("decoding", "blank"), 0, "do not fit"),
        (("pad", "embedding_unit"), 1 << 20, "outside its image"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(where: tuple[str | int, ...], value: object, message: str) -> None:
    program = make_program(3)
    target: object = program.manifest
    for key in where[:-1]:
        target = target[key]  # type: ignore[index]
    target[where[-1]] = value  # type: ignore[index]
    with pytest.raises(BadInput, match=message):
        ReferenceModel.from_program(program)


def test_bad_steps_are_refused() -> None:
    program = make_program(4)
    model = ReferenceModel.from_program(program)
    for shape in ((0, 10), (3, 10), (1, 11), (10,)):
        with pytest.raises(BadInput, match="not the feature vectors"):
            model.encode_step(model.encoder_state(), np.zeros(shape, np.int64))
    for token in (-1, model.tokens):
        with pytest.raises(BadInput, match="no embedding"):
            model.predict(model.prediction_state(), token)
    with pytest.raises(BadInput, match="state before"):
        model.predict(None, 0)
