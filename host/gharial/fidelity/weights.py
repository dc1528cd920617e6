# SPDX-License-Identifier: Apache-2.0
"""What quantisation does to the weights: each matrix, part by part, and its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gharial.checkpoint.hardware import HardwareCheckpoint
from gharial.compiler.network import Layer, Network, interleave
from gharial.fidelity.noise import BINS, decibels

_GATES = "ifgo"
_DENSE = {"logits": "joint_net.2"}
_LSTMS = {
    "encoder.pre_rnn": "encoder.pre_rnn.lstm",
    "encoder.post_rnn": "encoder.post_rnn.lstm",
    "prediction": "prediction.dec_rnn.lstm",
}


@dataclass(frozen=True)
class WeightNoise:
    """One part of a product, or the embedding.

    Attributes:
        name: "LAYER x" or "LAYER h", with the first column where an input is split; "embedding".
        rows, columns: without padding.
        sqnr: of the whole, dB; None where it is exact.
        clipped: weights more than half a step beyond the largest.
        zero_rows: rows of zeros.
        histogram: int64 (BINS,), steps in equal parts of -127..127.
        worst: (row, dB) of the rows with the lowest ratio, lowest first.
    """

    name: str
    rows: int
    columns: int
    sqnr: float | None
    clipped: int
    zero_rows: int
    histogram: np.ndarray
    worst: list[tuple[str, float]]


def weight_noise(checkpoint: HardwareCheckpoint, network: Network, worst: int) -> Iterator[WeightNoise]:
    """Every matrix of a quantised network beside the checkpoint's, in the order of the machine.

    Args:
        checkpoint: the float weights.
        network: made of it by gharial.compiler.network.
        worst: rows to name of each.
    """
    for layer in network.layers.values():
        matrices = _matrices(checkpoint, layer)
        for part in layer.parts:
            exact = matrices[part.input][:, part.column : part.column + part.columns]
            count = len(exact)
            found = part.rows.weights[:count, : part.columns]
            at = f" {part.column}.." if sum(other.input == part.input for other in layer.parts) > 1 else ""
            name = f"{layer.name} {part.input}{at}"
            yield _noise(name, layer.kind == "lstm", exact, found, part.rows.scales[:count], worst)
    table = checkpoint.state["prediction.embed.weight"]
    scales = np.full(len(table), network.embedding_unit)
    yield _noise("embedding", False, table, network.embedding[:, : table.shape[1]], scales, worst)


def _matrices(checkpoint: HardwareCheckpoint, layer: Layer) -> dict[str, np.ndarray]:
    """The layer's float weights by input, rows as the machine has them."""
    state = checkpoint.state
    if layer.kind != "lstm":
        return {"x": state[f"{_DENSE.get(layer.name, layer.name)}.weight"]}
    stack, index = layer.name.rsplit(".", 1)
    prefix = _LSTMS[stack]
    return {
        "x": interleave(state[f"{prefix}.weight_ih_l{index}"]),
        "h": interleave(state[f"{prefix}.weight_hh_l{index}"]),
    }


def _noise(name: str, gates: bool, exact: np.ndarray, steps: np.ndarray, scales: np.ndarray, worst: int) -> WeightNoise:
    values = exact.astype(np.float64)
    noise = steps * scales[:, None] - values
    # Half a step is what rounding may be off by; more than that, only clipping.
    clipped = np.count_nonzero(np.abs(noise) > (0.5 + 1e-9) * scales[:, None], axis=1)
    signal, errors = np.square(values).sum(axis=1), np.square(noise).sum(axis=1)
    rows = np.flatnonzero((signal > 0) & (errors > 0))
    ratios = 10 * np.log10(signal[rows] / errors[rows])
    order = np.argsort(ratios, kind="stable")[:worst]
    named = [(row_name(int(rows[i]), gates), float(ratios[i])) for i in order]
    places = np.clip((steps.astype(np.int64).ravel() + 127) * BINS // 255, 0, BINS - 1)
    return WeightNoise(
        name,
        len(exact),
        exact.shape[1],
        decibels(float(signal.sum()), float(errors.sum())),
        int(clipped.sum()),
        int(np.count_nonzero(signal == 0)),
        np.bincount(places, minlength=BINS),
        named,
    )


def row_name(row: int, gates: bool) -> str:
    """What a row is called: rows of an LSTM's product and its pre-activations are four to a unit, one a gate."""
    return f"unit {row // 4}, gate {_GATES[row % 4]}" if gates else f"row {row}"
