# SPDX-License-Identifier: Apache-2.0
"""The RNN-T in floating point, NumPy alone: what the compiler measures ranges with.

Tensors are named and laid out as in the integer trace (docs/numerics.md), so that the two can be set side by side:
`encoder.pre_rnn.{l}.pre`, `.c`, `.h` and so on, time first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gharial.checkpoint import HardwareCheckpoint
from gharial.errors import BadInput
from gharial.floating.lstm import LstmLayer, LstmOutput, hard_sigmoid, hard_tanh, layers_of, sigmoid

MAX_SYMBOLS = 30
"""Most tokens that greedy decoding emits at one encoder step (CAIMAN-ASR's limit)."""


@dataclass(frozen=True)
class PredictionState:
    """State of the prediction network for a batch of B sequences.

    Attributes:
        h, c: one (B, P) array a layer, after the last token.
        output: (B, J) joint_pred's output for it.
    """

    h: tuple[np.ndarray, ...]
    c: tuple[np.ndarray, ...]
    output: np.ndarray

    def rows(self, which: np.ndarray) -> PredictionState:
        """The sequences picked by an index array or mask."""
        return PredictionState(tuple(h[which] for h in self.h), tuple(c[which] for c in self.c), self.output[which])

    def replaced(self, which: np.ndarray, by: PredictionState) -> PredictionState:
        """A copy where the sequences picked by an index array are those of `by`."""

        def put(old: np.ndarray, new: np.ndarray) -> np.ndarray:
            copy = old.copy()
            copy[which] = new
            return copy

        return PredictionState(
            tuple(put(old, new) for old, new in zip(self.h, by.h, strict=True)),
            tuple(put(old, new) for old, new in zip(self.c, by.c, strict=True)),
            put(self.output, by.output),
        )


class FloatNetwork:
    """A checkpoint's network; batch norm is already folded into its weights.

    Args:
        checkpoint: as `load_hardware` gives it.
        dtype: float32 or float64; every weight and result is of this type.
    """

    def __init__(self, checkpoint: HardwareCheckpoint, dtype: type[np.floating] = np.float32) -> None:
        dims = checkpoint.dims
        state = checkpoint.state
        self.dims = dims
        self.dtype = np.dtype(dtype)
        self.blank = dims.classes - 1
        functions = (
            hard_sigmoid if checkpoint.hard_sigmoid else sigmoid,
            hard_tanh if checkpoint.hard_tanh else np.tanh,
        )
        self._pre_rnn = layers_of(state, "encoder.pre_rnn.lstm.", dims.pre_layers, self.dtype, *functions)
        self._post_rnn = layers_of(state, "encoder.post_rnn.lstm.", dims.post_layers, self.dtype, *functions)
        self._dec_rnn = layers_of(state, "prediction.dec_rnn.lstm.", dims.pred_layers, self.dtype, *functions)
        self._pad = checkpoint.post_pad.astype(self.dtype)
        self._embedding = state["prediction.embed.weight"].astype(self.dtype)
        self._joint_enc = _dense(checkpoint, "joint_enc", self.dtype)
        self._joint_pred = _dense(checkpoint, "joint_pred", self.dtype)
        self._joint_net = _dense(checkpoint, "joint_net.2", self.dtype)

    def encode(self, features: np.ndarray) -> dict[str, np.ndarray]:
        """Every tensor of the encoder for one recording.

        Args:
            features: (T2, F) normalised, stacked feature vectors; T2 may be 0, or no multiple of the stack factor.

        Returns:
            `encoder.pre_rnn.{l}.pre` (T2, H, 4) with gates i, f, g, o, `.c` and `.h` (T2, H); the same for
            `encoder.post_rnn.{l}` over T = ceil(T2 / stack) encoder steps; `joint_enc` (T, J).

        Raises:
            BadInput: the features have another width than the model's.
        """
        return self.encode_many([features])[0]

    def encode_many(self, features: Sequence[np.ndarray]) -> list[dict[str, np.ndarray]]:
        """`encode` of several recordings at once: the weights are read once a step for all, which is far quicker.

        The results are those of `encode` but for rounding: matrix products of other shapes may sum in another order.
        """
        for index, array in enumerate(features):
            if array.ndim != 2 or array.shape[1] != self.dims.features:
                expected = f"(any, {self.dims.features})"
                raise BadInput("features have the wrong shape", f"recording {index}", array.shape, expected)
        lengths = [len(array) for array in features]
        stack = self.dims.stack
        steps = [-(-length // stack) for length in lengths]
        batch, longest = len(features), max(steps, default=0)
        x = np.zeros((batch, longest * stack, self.dims.features), self.dtype)
        for row, array in enumerate(features):
            x[row, : len(array)] = array
        results: list[dict[str, np.ndarray]] = [{} for _ in features]
        x = self._stack("encoder.pre_rnn", self._pre_rnn, x, lengths, results)
        for row, length in enumerate(lengths):
            # What the layers made of the vectors that are missing in the last step must not be seen.
            x[row, length:] = self._pad
        x = x.reshape(batch, longest, stack * self.dims.hidden)
        x = self._stack("encoder.post_rnn", self._post_rnn, x, steps, results)
        outputs = _apply(self._joint_enc, x)
        for row, count in enumerate(steps):
            results[row]["joint_enc"] = outputs[row, :count]
        return results

    def predict(
        self, tokens: np.ndarray | int | None, state: PredictionState | None = None, batch: int = 1
    ) -> tuple[PredictionState, list[LstmOutput]]:
        """One step of the prediction network.

        Args:
            tokens: (B,) token ids, or one id for B = 1; None is the start of a sequence, a vector of zeros.
            state: what the step before returned; None is the zero state.
            batch: B where `tokens` is None.

        Returns:
            The new state, and each layer's tensors with T = 1.
        """
        width = self._embedding.shape[1]
        if tokens is None:
            x = np.zeros((batch, 1, width), self.dtype)
        else:
            x = self._embedding[np.atleast_1d(tokens)][:, None]
        outputs = []
        for index, layer in enumerate(self._dec_rnn):
            output = layer.run(x) if state is None else layer.run(x, state.h[index], state.c[index])
            outputs.append(output)
            x = output.h
        h = tuple(output.h[:, 0] for output in outputs)
        c = tuple(output.c[:, 0] for output in outputs)
        return PredictionState(h, c, _apply(self._joint_pred, h[-1])), outputs

    def joint(self, joint_enc: np.ndarray, joint_pred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The joint network.

        Args:
            joint_enc: (..., J) encoder outputs, a row of `encode`'s `joint_enc` each.
            joint_pred: (..., J) prediction outputs, `PredictionState.output`.

        Returns:
            (..., J) after the ReLU, and (..., V) logits; the last class is blank.
        """
        hidden = np.maximum(joint_enc + joint_pred, 0)
        return hidden, _apply(self._joint_net, hidden)

    def _stack(
        self,
        name: str,
        layers: Sequence[LstmLayer],
        x: np.ndarray,
        lengths: Sequence[int],
        results: Sequence[dict[str, np.ndarray]],
    ) -> np.ndarray:
        """Run layers one on top of the other and put each recording's tensors into its results."""
        for index, layer in enumerate(layers):
            output = layer.run(x)
            for row, length in enumerate(lengths):
                prefix = f"{name}.{index}"
                results[row][f"{prefix}.pre"] = np.swapaxes(output.pre[row, :length], 1, 2)
                results[row][f"{prefix}.c"] = output.c[row, :length]
                results[row][f"{prefix}.h"] = output.h[row, :length]
            x = output.h
        return x


def _dense(checkpoint: HardwareCheckpoint, name: str, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    weight = np.asarray(checkpoint.state[f"{name}.weight"], dtype)
    return np.ascontiguousarray(weight.T), np.asarray(checkpoint.state[f"{name}.bias"], dtype)


def _apply(dense: tuple[np.ndarray, np.ndarray], x: np.ndarray) -> np.ndarray:
    weight, bias = dense
    return x @ weight + bias
