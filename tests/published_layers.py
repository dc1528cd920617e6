# SPDX-License-Identifier: Apache-2.0
"""A stack of float LSTM layers as the integer reference model runs it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from reference_quantiser import Float, FloatLstm, Int, choose_qc, choose_qh, half_up, lstm_layer, run_layer, tables
from scripts.convert.encoder import Lstm

TABLES = tables()
# Steps of 2^-5 to 2^-2 of a standard deviation; the finest that clips next to nothing.
_FEATURE_BITS = (5, 4, 3, 2)
_CLIPPED = 1e-4


def double(lstm: Lstm) -> FloatLstm:
    """The layer in double precision."""
    return FloatLstm(*(array.astype(np.float64) for array in (lstm.weight_ih, lstm.weight_hh, lstm.bias)))


def run_float(weights: FloatLstm, x: Float) -> tuple[Float, Float]:
    """h and c over time, (T, H), by PyTorch in double precision, from zero states."""
    cell = torch.nn.LSTMCell(weights.w_x.shape[1], weights.w_h.shape[1], dtype=torch.float64)
    cell.load_state_dict(
        {
            "weight_ih": torch.tensor(weights.w_x),
            "weight_hh": torch.tensor(weights.w_h),
            "bias_ih": torch.tensor(weights.b),
            "bias_hh": torch.zeros(len(weights.b), dtype=torch.float64),
        }
    )
    state, hs, cs = None, [], []
    with torch.inference_mode():
        for row in torch.tensor(x):
            state = cell(row[None], state)
            hs.append(state[0][0].numpy())
            cs.append(state[1][0].numpy())
    return np.array(hs), np.array(cs)


class IntegerStack:
    """LSTM layers in integers, units calibrated in float as docs/numerics.md, section 11, has it.

    Inputs are normalised column by column to mean 0 and deviation 1, as the recogniser's features are, and the first
    layer's weights take that back: one int8 unit for all columns needs columns of like size.

    Args:
        layers: first layer first.
        calibration: (T, X) inputs of recordings other than those the stack is judged by.
    """

    def __init__(self, layers: Sequence[FloatLstm], calibration: Sequence[Float]) -> None:
        joined = np.concatenate(calibration)
        self._mean, self._deviation = joined.mean(axis=0), joined.std(axis=0)
        first = layers[0]
        shifted = first.b + first.w_x @ self._mean
        self._float = [FloatLstm(first.w_x * self._deviation, first.w_h, shifted), *layers[1:]]
        sizes = np.abs((joined - self._mean) / self._deviation)
        fitting = (bits for bits in _FEATURE_BITS if np.mean(sizes > 127.5 * 2.0**-bits) <= _CLIPPED)
        self.feature_bits = next(fitting, _FEATURE_BITS[-1])
        self._units = [2.0**-self.feature_bits]
        self._layers = []
        xs = [self._quantised(x) * self._units[0] for x in calibration]
        for weights in self._float:
            outputs = [run_float(weights, x) for x in xs]
            xs = [h for h, _ in outputs]
            qh = max(7, choose_qh(np.concatenate(xs)))  # no unit of an LSTM passes 1
            qc = choose_qc(np.concatenate([c for _, c in outputs]))
            self._layers.append(lstm_layer(weights, self._units[-1], qc, qh))
            self._units.append(2.0**-qh)

    def __call__(self, x: Float) -> Float:
        """The last layer's h, (T, H), of inputs (T, X) as they come."""
        return self._chain(x)[-1] * self._units[-1]

    def distances(self, x: Float) -> list[float]:
        """dB by which each layer's h lies above its difference from PyTorch's on the very int8 inputs it was given."""
        chain = self._chain(x)
        found = []
        for index, weights in enumerate(self._float):
            exact, _ = run_float(weights, chain[index] * self._units[index])
            difference = chain[index + 1] * self._units[index + 1] - exact
            found.append(float(10 * np.log10(np.square(exact).sum() / np.square(difference).sum())))
        return found

    def _quantised(self, x: Float) -> Int:
        normalised = (x - self._mean) / self._deviation
        return np.clip(half_up(normalised * 2.0**self.feature_bits), -127, 127)

    def _chain(self, x: Float) -> list[Int]:
        """int8 inputs, then each layer's int8 h."""
        chain = [self._quantised(x)]
        for layer in self._layers:
            chain.append(run_layer(layer, TABLES, chain[-1])[0])
        return chain
