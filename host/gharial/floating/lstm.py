# SPDX-License-Identifier: Apache-2.0
"""LSTM layers in NumPy, over a batch of sequences at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Activation = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class LstmOutput:
    """What a layer computed.

    Attributes:
        pre: (B, T, 4, H) sums before the gates' functions, gates i, f, g, o.
        c: (B, T, H) cell state after each step.
        h: (B, T, H) output of each step.
    """

    pre: np.ndarray
    c: np.ndarray
    h: np.ndarray


class LstmLayer:
    """One layer with PyTorch's definition: gate rows i, f, g, o, and both biases added.

    Args:
        weight_ih: (4 H, X).
        weight_hh: (4 H, H).
        bias: (4 H,), the sum of both.
        sigmoid: function of the gates i, f and o.
        tanh: function of the gate g and of the cell state.
    """

    def __init__(
        self, weight_ih: np.ndarray, weight_hh: np.ndarray, bias: np.ndarray, sigmoid: Activation, tanh: Activation
    ) -> None:
        # Transposed copies: a row of states times a contiguous (X, 4 H) matrix is the faster product.
        self._weight_ih = np.ascontiguousarray(weight_ih.T)
        self._weight_hh = np.ascontiguousarray(weight_hh.T)
        self._bias = bias
        self._sigmoid = sigmoid
        self._tanh = tanh
        self.hidden = weight_hh.shape[1]

    def run(self, x: np.ndarray, h: np.ndarray | None = None, c: np.ndarray | None = None) -> LstmOutput:
        """Outputs of every step.

        Args:
            x: (B, T, X) inputs; a sequence shorter than T may be followed by anything, since no step looks ahead.
            h, c: (B, H) state before the first step; zeros if None.
        """
        batch, steps, width = x.shape
        # The input's share of all steps is one product; only the recurrent share has to wait for the step before.
        pre = (x.reshape(batch * steps, width) @ self._weight_ih + self._bias).reshape(batch, steps, 4, self.hidden)
        cells = np.empty((batch, steps, self.hidden), pre.dtype)
        outputs = np.empty_like(cells)
        h = np.zeros_like(cells, shape=(batch, self.hidden)) if h is None else h
        c = np.zeros_like(cells, shape=(batch, self.hidden)) if c is None else c
        for t in range(steps):
            gates = pre[:, t]
            gates += (h @ self._weight_hh).reshape(batch, 4, self.hidden)
            i, f, g, o = (gates[:, gate] for gate in range(4))
            c = self._sigmoid(f) * c + self._sigmoid(i) * self._tanh(g)
            h = self._sigmoid(o) * self._tanh(c)
            cells[:, t] = c
            outputs[:, t] = h
        return LstmOutput(pre, cells, outputs)


def layers_of(
    state: Mapping[str, np.ndarray], prefix: str, count: int, dtype: np.dtype, sigmoid: Activation, tanh: Activation
) -> list[LstmLayer]:
    """The `count` layers whose tensors are called `prefix`weight_ih_l0 and so on, first layer first."""

    def tensor(name: str, layer: int) -> np.ndarray:
        return np.asarray(state[f"{prefix}{name}_l{layer}"], dtype)

    return [
        LstmLayer(
            tensor("weight_ih", layer),
            tensor("weight_hh", layer),
            tensor("bias_ih", layer) + tensor("bias_hh", layer),
            sigmoid,
            tanh,
        )
        for layer in range(count)
    ]


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Logistic function, without overflow for any finite argument."""
    # By tanh: exp(-x) overflows for large negative x, and 1 / (1 + exp(-x)) is no more exact.
    return 0.5 * np.tanh(0.5 * x) + 0.5


def hard_sigmoid(x: np.ndarray) -> np.ndarray:
    """clamp(0.5 + x/8, 0, 1), CAIMAN-ASR's optional replacement."""
    return np.clip(0.5 + 0.125 * x, 0.0, 1.0)


def hard_tanh(x: np.ndarray) -> np.ndarray:
    """clamp(x, -1, 1), CAIMAN-ASR's optional replacement."""
    return np.clip(x, -1.0, 1.0)
