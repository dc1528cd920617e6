# SPDX-License-Identifier: Apache-2.0
"""Both models led along a given path: the float network, and a program on the emulated device.

Tensors have the names and shapes of the trace (docs/numerics.md, section 12), time first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import numpy as np

from gharial.devices.emulator import open_emulator
from gharial.driver import DecodeEntry, DecodeResult, Driver, EncodeEntry, Ticket
from gharial.floating.lstm import LstmOutput
from gharial.floating.network import MAX_SYMBOLS, FloatNetwork
from gharial.floating.path import LatticePath, path_targets
from gharial.isa.commands import Kind
from gharial.program import Program
from gharial.trace.keys import tensors


def float_tensors(network: FloatNetwork, encoded: Mapping[str, np.ndarray], path: LatticePath) -> dict[str, np.ndarray]:
    """Every tensor of the float network along a path.

    Args:
        network: the model.
        encoded: what its `encode` gives for the recording.
        path: (encoder step, token id) of each token.

    Raises:
        BadInput: the path does not fit the recording.
    """
    found = dict(encoded)
    state, outputs = network.predict(None)
    predicted: list[Sequence[LstmOutput]] = [outputs]
    stored = [state.output[0]]
    # What the joint reads is known beforehand, so it is one product for all evaluations.
    read, written = [], []
    for step, target in path_targets(path, len(encoded["joint_enc"]), network.blank, MAX_SYMBOLS):
        read.append(step)
        written.append(len(stored) - 1)
        if target != network.blank:
            state, outputs = network.predict(target, state)
            predicted.append(outputs)
            stored.append(state.output[0])
    for layer in range(len(outputs)):
        steps = [one[layer] for one in predicted]
        found[f"prediction.{layer}.pre"] = np.stack([step.pre[0, 0].T for step in steps])
        found[f"prediction.{layer}.c"] = np.stack([step.c[0, 0] for step in steps])
        found[f"prediction.{layer}.h"] = np.stack([step.h[0, 0] for step in steps])
    found["joint_pred"] = np.stack(stored)
    found["joint"], found["logits"] = network.joint(encoded["joint_enc"][read], found["joint_pred"][written])
    return found


def units_of(program: Program) -> dict[str, float]:
    """The value of one step of each tensor of a program's trace, in the order of the machine."""
    numerics = program.manifest["numerics"]
    bits = numerics["frac_bits"]
    units = {"features": 2.0 ** -bits["features"]}
    for name, layer in program.layers.items():
        if layer["kind"] == "lstm":
            units |= {f"{name}.pre": 2.0**-12, f"{name}.c": 2.0 ** -layer["qc"], f"{name}.h": 2.0 ** -layer["qh"]}
        elif name == "joint":
            units[name] = numerics["joint_unit"]
        elif name == "logits":
            units[name] = 2.0 ** -bits["logits"]
        else:
            units[name] = numerics["joint_unit"] * 2.0 ** -numerics["joint_shift"]
    return units


class IntegerRun:
    """A program on an emulated device of its configuration; use it in a `with` statement.

    Args:
        program: what to run.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._keys = tensors(program)
        self._device = open_emulator(program.config)
        self._driver = Driver(self._device, program)  # closes the device where it fails

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._driver.close()

    def tensors(self, vectors: np.ndarray, path: LatticePath) -> dict[str, np.ndarray]:
        """Every tensor along a path, as integers.

        Args:
            vectors: int8 (T2, F) feature vectors.
            path: (encoder step, token id) of each token.

        Raises:
            BadInput: the path does not fit the recording.
            DeviceError: the device failed.
        """
        manifest = self._program.manifest
        stack = self._program.header["vectors"]
        steps = -(-len(vectors) // stack)
        decoding = manifest["decoding"]
        targets = path_targets(path, steps, decoding["blank"], decoding["max_symbols"])
        driver = self._driver
        (encoder,), (prediction,) = driver.allocate("encoder"), driver.allocate("prediction")
        self._device.start_trace(manifest["layers"], manifest["trace"])
        results: list[Ticket[DecodeResult]] = []
        encoded, kind, token = 0, Kind.START, 0
        try:
            for step, target in targets:
                while encoded <= step:
                    part = vectors[encoded * stack : (encoded + 1) * stack]
                    driver.encode([EncodeEntry(encoder, part, encoded & 1, encoded == 0)])
                    encoded += 1
                results.append(driver.decode([DecodeEntry(encoder, step & 1, kind, prediction, prediction, token)]))
                kind, token = (Kind.NONE, 0) if target == decoding["blank"] else (Kind.TOKEN, target)
            if path and kind == Kind.TOKEN:
                # The last token's step of the prediction network is on the float network's side as well.
                results.append(
                    driver.decode([DecodeEntry(encoder, steps - 1 & 1, kind, prediction, prediction, token)])
                )
            for ticket in results:
                ticket.result()
        finally:
            kept = self._device.stop_trace()
            driver.release("encoder", (encoder,))
            driver.release("prediction", (prediction,))
        found = {}
        for name, (dtype, shape) in self._keys.items():
            if name not in ("prefix", "lse", "tokens", "steps"):
                rows = kept.get(name, [])
                found[name] = np.array(rows, dtype) if rows else np.zeros((0, *shape), dtype)
        for name in ("joint", "logits"):
            found[name] = found[name][: len(targets)]
        return found
