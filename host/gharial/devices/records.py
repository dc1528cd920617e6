# SPDX-License-Identifier: Apache-2.0
"""From the records of a simulated device to the tensors of docs/numerics.md, section 12.

A record is a head, then its payload, little-endian: of CELL all pre-activations, all c and all h, of the others their
values.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, list[npt.NDArray[np.generic]]]

_HEAD = struct.Struct("<BBBBHHIII")  # section, kind, vector, 0, instruction, entry, rows, bytes, padded bytes
_SECTIONS = ("predict", "encode", "joint")
_CELL, _I16, _I8, _LOGIT, _JOINT, _LSE, _FEATURES = range(1, 8)
_GATES = 4


class Tracer:
    """Names records and cuts their padding off.

    Args:
        layers: the manifest's `layers`: name and unpadded size of each.
        trace: the manifest's `trace`: which instruction makes which layer's output.

    Attributes:
        arrays: what has been taken so far, by tensor key, a list over time.
    """

    def __init__(self, layers: Sequence[Mapping[str, Any]], trace: Sequence[Mapping[str, Any]]) -> None:
        self.arrays: Arrays = {}
        self._units = {str(layer["name"]): int(layer["units"]) for layer in layers}
        self._layer = {(str(made["section"]), int(made["instruction"])): str(made["layer"]) for made in trace}
        first = layers[0]["parts"] if layers and "parts" in layers[0] else []
        self._features = max((p["column"] + p["columns"] for p in first if p["input"] == "x"), default=None)

    def take(self, records: bytes) -> None:
        """Add records; instructions that `trace` does not name are left out."""
        at = 0
        while at < len(records):
            section, kind, _, _, instruction, _, rows, size, padded = _HEAD.unpack_from(records, at)
            at += _HEAD.size
            payload = records[at : at + size]
            at += padded
            if kind == _FEATURES:
                self._add("features", np.frombuffer(payload, "i1")[: self._features])
            elif kind == _LSE:
                self._log_sum_exp(rows, payload)
            else:
                layer = self._layer.get((_SECTIONS[section], instruction))
                if layer in self._units:
                    self._output(layer, kind, rows, payload)

    def _log_sum_exp(self, rows: int, payload: bytes) -> None:
        del rows
        self._add("lse", np.frombuffer(payload, "<i4")[0])

    def _output(self, layer: str, kind: int, rows: int, payload: bytes) -> None:
        units = self._units[layer]
        if kind == _CELL:
            cells = rows // _GATES
            pre = np.frombuffer(payload, "<i2", rows)
            self._add(f"{layer}.pre", pre.reshape(cells, _GATES)[:units])
            self._add(f"{layer}.c", np.frombuffer(payload, "<i2", cells, 2 * rows)[:units])
            self._add(f"{layer}.h", np.frombuffer(payload, "i1", cells, 2 * rows + 2 * cells)[:units])
        else:
            self._add(layer, np.frombuffer(payload, "i1" if kind in (_I8, _JOINT) else "<i2")[:units])

    def _add(self, key: str, value: Any) -> None:
        self.arrays.setdefault(key, []).append(np.asarray(value))
