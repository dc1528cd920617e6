# SPDX-License-Identifier: Apache-2.0
"""Traces of the RTL: the records of simulation, and the log-sum-exps that the RTL has no use for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gharial.devices import checkout
from gharial.devices.records import Tracer

_ENTRIES = 64  # of the tables exp and log


class RtlTracer(Tracer):
    """As `Tracer`; `fill` has to be called at the end."""

    def __init__(self, layers: Sequence[Mapping[str, Any]], trace: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(layers, trace)
        self._missing: list[tuple[int, int, int]] = []  # evaluation, inverse temperature, logits' fraction bits

    def fill(self, tables: np.ndarray) -> None:
        """Compute the log-sum-exps that are missing from the logits, by the reference model.

        Args:
            tables: uint32 (256,): pairs of words (base, slope) of the tables exp and log.
        """
        pairs = tables.astype(np.int32).astype(np.int64).reshape(2, _ENTRIES, 2)
        ranking = checkout.module("sim.reference.ranking")
        for evaluation, temperature, bits in self._missing:
            logits = self.arrays["logits"][evaluation]
            value = ranking.log_sum_exp(pairs[0], pairs[1], logits, temperature, bits)
            self.arrays["lse"][evaluation] = np.asarray(value, np.int32)
        self._missing.clear()

    def _log_sum_exp(self, rows: int, payload: bytes) -> None:
        if not rows:
            settings = int.from_bytes(payload, "little")
            self._missing.append((len(self.arrays.get("lse", ())), settings & 0xFFFF, settings >> 16))
        super()._log_sum_exp(rows, payload)
