# SPDX-License-Identifier: Apache-2.0
"""The network at the level of layers, in integers: docs/numerics.md, sections 6, 7 and 9.

A model is read from a program's manifest and space images alone. It knows neither instructions nor addresses of
activations, so a fault in a compiled instruction stream shows as a difference between it and the device.

States and outputs have the machine's padded length, so that they can be compared with its slots; what goes into a
product is cut to the units that exist.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gharial.errors import BadInput
from gharial.isa.configs import Config, config
from gharial.isa.header import HEADER

from .layout import Images, Product, Tables
from .numerics import Array, cell, joint, whole
from .ranking import argmax, log_sum_exp
from .trace import Trace

UNIT_T = 1 << 14  # T = 1.0
MAX_SYMBOLS = 30


class Program(Protocol):
    """What is needed of gharial.program.Program."""

    manifest: dict[str, Any]
    sections: dict[str, bytes]


@dataclass(frozen=True)
class Layer:
    """An LSTM layer (qc, qh set) or a linear one: its product, units without padding and padded units."""

    name: str
    units: int
    padded: int
    product: Product
    qc: int = 0
    qh: int = 0

    def lstm(self, tables: Tables, x: Array, h: Array, c: Array) -> tuple[Array, Array, Array]:
        """One step of an LSTM layer.

        Args:
            tables: function tables.
            x: input int8 (columns,), h: int8 (padded,), c: int16 (padded,).

        Returns:
            Pre-activations int16 (padded, 4), then h and c after the step.
        """
        y = self.product({"x": x, "h": h[: self.units]}).reshape(-1, 4)  # rows 4u .. 4u+3 are unit u
        c, h = cell(tables.sigmoid, tables.tanh, y, c, self.qc, self.qh)
        return y, h, c


@dataclass
class EncoderState:
    """State of an encoder: for each layer, pre_rnn's first, h int8 and c int16 (padded,), and joint_enc's two banks,
    int16 (2, padded J)."""

    h: list[Array]
    c: list[Array]
    banks: Array


@dataclass
class PredictionState:
    """State of a prediction network: for each layer h int8 and c int16 (padded,), and joint_pred's output, int16
    (padded J,)."""

    h: list[Array]
    c: list[Array]
    joint_pred: Array


@dataclass
class Emission:
    """One encoder step decoded greedily.

    Attributes:
        tokens: (class, logit, log-sum-exp) of each emitted token.
        joints: joint evaluations.
        capped: whether the step ended because the most symbols were reached.
        state: the prediction state afterwards.
    """

    state: PredictionState
    tokens: list[tuple[int, int, int]] = field(default_factory=list)
    joints: int = 0
    capped: bool = False


@dataclass
class Transcript:
    """A whole utterance decoded greedily: token ids, encoder step, logit and log-sum-exp of each."""

    tokens: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    logits: list[int] = field(default_factory=list)
    lse: list[int] = field(default_factory=list)


class ReferenceModel:
    """The integer network of one program.

    Args:
        manifest: the program's manifest (docs/program.md).
        sections: its images by name: code, weights, scales, biases, tables, embedding.

    Raises:
        BadInput: the manifest lacks a layer, or a layer does not fit the images or its neighbours.
    """

    def __init__(self, manifest: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        self.config: Config = config(manifest["config"]["name"])
        images = Images(self.config, sections)
        if len(sections["code"]) < HEADER.bytes:
            raise BadInput("the code image is shorter than its header", found=len(sections["code"]))
        self.header = HEADER.unpack(np.frombuffer(sections["code"], dtype="<u4", count=HEADER.words))
        self.tables = images.tables()

        entries = {entry["name"]: entry for entry in manifest["layers"]}
        self.pre = _stack(images, entries, "encoder.pre_rnn")
        self.post = _stack(images, entries, "encoder.post_rnn", least=0)
        self.joint_enc = _linear(images, entries, "joint_enc")
        self.prediction = _stack(images, entries, "prediction")
        self.joint_pred = _linear(images, entries, "joint_pred")
        self.logits_layer = _linear(images, entries, "logits")
        if "joint" not in entries:
            raise BadInput("the program has no such layer", where="manifest, layers", expected="joint")
        self.joint_units = int(entries["joint"]["units"])
        self.joint_padded = int(entries["joint"]["padded"])

        self.stack = self.header["vectors"]
        self.features = int(manifest["features"]["count"])
        self.features_padded = int(manifest["features"]["padded"])
        self.zs = int(manifest["numerics"]["joint_shift"])
        self.e = int(manifest["numerics"]["frac_bits"]["logits"])
        self.classes = self.logits_layer.units
        self.blank = int(manifest["decoding"]["blank"])
        self.pad = images.vectors(int(manifest["pad"]["embedding_unit"]), 1, int(manifest["pad"]["bytes"]))[0]
        self.tokens = self.header["tokens"]
        row = sum(part.stored for part in self.prediction[0].product.parts if part.input == "x")
        self.embedding = images.vectors(0, self.tokens, row)
        self._check()

    @classmethod
    def from_program(cls, program: Program) -> ReferenceModel:
        """The model of a program as gharial.program reads it."""
        return cls(program.manifest, program.sections)

    def _check(self) -> None:
        top = self.pre[-1]
        _same("features of a vector", self.pre[0].product.width("x"), self.features)
        _same("bytes of the pad", len(self.pad), top.padded)
        stacked = [*self.post, self.joint_enc][0]
        _same(f"columns of {stacked.name}", stacked.product.width("x"), self.stack * top.units)
        for chain in (self.pre, self.post, self.prediction):
            for below, layer in itertools.pairwise(chain):
                _same(f"columns of {layer.name}", layer.product.width("x"), below.units)
        if self.post:
            _same("columns of joint_enc", self.joint_enc.product.width("x"), self.post[-1].units)
        _same("columns of joint_pred", self.joint_pred.product.width("x"), self.prediction[-1].units)
        for layer in (self.joint_enc, self.joint_pred):
            _same(f"units of {layer.name}", layer.units, self.joint_units)
            _same(f"rows of {layer.name}", layer.padded, self.joint_padded)
        _same("columns of logits", self.logits_layer.product.width("x"), self.joint_units)
        _same("classes in the header", self.header["classes"], self.classes)
        _same("blank in the header", self.header["blank"], self.blank)
        _same("logit fraction bits in the header", self.header["logit_bits"], self.e)

    # States

    def encoder_state(self) -> EncoderState:
        """The state before the first step: zeros."""
        layers = self.pre + self.post
        return EncoderState(_zeros(layers), _zeros(layers), np.zeros((2, self.joint_padded), np.int64))

    def prediction_state(self) -> PredictionState:
        """A state of zeros. `predict` with token None makes the one that a sequence starts with."""
        return PredictionState(_zeros(self.prediction), _zeros(self.prediction), np.zeros(self.joint_padded, np.int64))

    # Steps

    def encode_step(
        self, state: EncoderState, vectors: npt.ArrayLike, bank: int = 0, trace: Trace | None = None
    ) -> tuple[EncoderState, Array]:
        """One encoder step.

        Args:
            state: before the step; it is left as it is.
            vectors: 1 to `stack` feature vectors, int8, (n, features) with or without padding.
            bank: where the output is kept in the state, 0 or 1.
            trace: records features, pre-activations, c, h and joint_enc.

        Returns:
            The state after the step and the encoder output, int16 (padded J,).
        """
        x8 = whole(vectors)
        if x8.ndim != 2 or not 1 <= len(x8) <= self.stack or x8.shape[1] not in (self.features, self.features_padded):
            raise BadInput("not the feature vectors of a step", found=x8.shape, expected=(self.stack, self.features))

        new = EncoderState(list(state.h), list(state.c), state.banks.copy())
        outputs = []
        for x in x8[:, : self.features]:
            if trace:
                trace.add("features", x)
            outputs.append(self._run(self.pre, new.h, new.c, 0, x, trace))
        missing = [self.pad[: self.pre[-1].units]] * (self.stack - len(outputs))
        x = self._run(self.post, new.h, new.c, len(self.pre), np.concatenate(outputs + missing), trace)
        enc = self.joint_enc.product({"x": x})
        new.banks[bank] = enc
        if trace:
            trace.add("joint_enc", enc)
        return new, enc

    def predict(self, state: PredictionState | None, token: int | None, trace: Trace | None = None) -> PredictionState:
        """One step of the prediction network.

        Args:
            state: before the step; it is left as it is. Not looked at for the start.
            token: class that was emitted, or None for the start of a sequence.
            trace: records pre-activations, c, h and joint_pred.
        """
        if token is None:
            new = self.prediction_state()
            x = np.zeros(self.prediction[0].product.width("x"), np.int64)
        else:
            if state is None:
                raise BadInput("a token needs the state before it")
            if not 0 <= token < self.tokens:
                raise BadInput("the token has no embedding", found=token, expected=f"0 to {self.tokens - 1}")
            new = PredictionState(list(state.h), list(state.c), state.joint_pred)
            x = self.embedding[token][: self.prediction[0].product.width("x")]
        x = self._run(self.prediction, new.h, new.c, 0, x, trace)
        new.joint_pred = self.joint_pred.product({"x": x})
        if trace:
            trace.add("joint_pred", new.joint_pred)
        return new

    def joint(self, enc: Array, pred: Array, trace: Trace | None = None) -> Array:
        """Logits, int16 (V,), of an encoder output and a joint_pred output, each int16 (padded J,)."""
        z = joint(enc, pred, self.zs)
        logits = self.logits_layer.product({"x": z[: self.joint_units]})[: self.classes]
        if trace:
            trace.add("joint", z)
            trace.add("logits", logits)
        return logits

    def lse(self, logits: Array, T: int = UNIT_T, trace: Trace | None = None) -> int:
        """Log-sum-exp of the logits at inverse temperature T, Q2.14; unit 2^-16 nat."""
        value = log_sum_exp(self.tables.exp, self.tables.log, logits, T, self.e)
        if trace:
            trace.add("lse", value)
        return value

    def greedy_step(
        self,
        enc: Array,
        state: PredictionState,
        max_symbols: int = MAX_SYMBOLS,
        T: int = UNIT_T,
        trace: Trace | None = None,
    ) -> Emission:
        """Decode one encoder output, int16 (padded J,), greedily; the state is left as it is."""
        result = Emission(state)
        while len(result.tokens) < max_symbols:
            logits = self.joint(enc, result.state.joint_pred, trace)
            lse = self.lse(logits, T, trace)
            result.joints += 1
            best = argmax(logits)
            if best == self.blank:
                return result
            result.tokens.append((best, int(logits[best]), lse))
            result.state = self.predict(result.state, best, trace)
        result.capped = True
        return result

    def greedy(
        self, vectors: npt.ArrayLike, max_symbols: int = MAX_SYMBOLS, T: int = UNIT_T, trace: Trace | None = None
    ) -> Transcript:
        """Decode the int8 feature vectors of an utterance, (T2, features), greedily."""
        x8 = whole(vectors)
        out = Transcript()
        encoder = self.encoder_state()
        prediction = self.predict(None, None, trace)
        for step in range(-(-len(x8) // self.stack)):
            encoder, enc = self.encode_step(encoder, x8[step * self.stack : (step + 1) * self.stack], 0, trace)
            emission = self.greedy_step(enc, prediction, max_symbols, T, trace)
            prediction = emission.state
            for token, logit, lse in emission.tokens:
                out.tokens.append(token)
                out.steps.append(step)
                out.logits.append(logit)
                out.lse.append(lse)
                if trace:
                    trace.add("tokens", token)
                    trace.add("steps", step)
        return out

    def trace(self) -> Trace:
        """An empty recorder for this model."""
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {"features": ("int8", (self.features,))}
        shapes |= _lstm_shapes(self.pre) | _lstm_shapes(self.post)
        shapes["joint_enc"] = ("int16", (self.joint_units,))
        shapes |= _lstm_shapes(self.prediction)
        shapes["joint_pred"] = ("int16", (self.joint_units,))
        shapes["joint"] = ("int8", (self.joint_units,))
        shapes["logits"] = ("int16", (self.classes,))
        shapes |= dict.fromkeys(("lse", "tokens", "steps"), ("int32", ()))
        return Trace(shapes)

    def _run(
        self, layers: Sequence[Layer], h: list[Array], c: list[Array], first: int, x: Array, trace: Trace | None
    ) -> Array:
        """Run LSTM layers whose states are h[first:] and c[first:], replacing them; the last layer's h, unpadded."""
        for at, layer in enumerate(layers, first):
            y, h[at], c[at] = layer.lstm(self.tables, x, h[at], c[at])
            x = h[at][: layer.units]
            if trace:
                trace.add(f"{layer.name}.pre", y)
                trace.add(f"{layer.name}.c", c[at])
                trace.add(f"{layer.name}.h", h[at])
        return x


def _stack(images: Images, entries: Mapping[str, Mapping[str, Any]], prefix: str, least: int = 1) -> list[Layer]:
    """The LSTM layers `prefix.0`, `prefix.1` and so on, at least so many."""
    layers: list[Layer] = []
    while f"{prefix}.{len(layers)}" in entries:
        entry = entries[f"{prefix}.{len(layers)}"]
        layer = Layer(
            entry["name"],
            int(entry["units"]),
            int(entry["padded"]),
            images.product(entry),
            int(entry["qc"]),
            int(entry["qh"]),
        )
        _same(f"rows of {layer.name}", len(layer.product.bias), 4 * layer.padded)
        _same(f"h columns of {layer.name}", layer.product.width("h"), layer.units)
        layers.append(layer)
    if len(layers) < least:
        raise BadInput("the program has no such layer", where="manifest, layers", expected=f"{prefix}.0")
    return layers


def _linear(images: Images, entries: Mapping[str, Mapping[str, Any]], name: str) -> Layer:
    if name not in entries:
        raise BadInput("the program has no such layer", where="manifest, layers", expected=name)
    entry = entries[name]
    layer = Layer(name, int(entry["units"]), int(entry["padded"]), images.product(entry))
    _same(f"rows of {name}", len(layer.product.bias), layer.padded)
    return layer


def _lstm_shapes(layers: Sequence[Layer]) -> dict[str, tuple[str, tuple[int, ...]]]:
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {}
    for layer in layers:
        shapes[f"{layer.name}.pre"] = ("int16", (layer.units, 4))
        shapes[f"{layer.name}.c"] = ("int16", (layer.units,))
        shapes[f"{layer.name}.h"] = ("int8", (layer.units,))
    return shapes


def _zeros(layers: Sequence[Layer]) -> list[Array]:
    return [np.zeros(layer.padded, np.int64) for layer in layers]


def _same(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise BadInput(f"{what} do not fit their neighbours", where="manifest", found=found, expected=expected)
