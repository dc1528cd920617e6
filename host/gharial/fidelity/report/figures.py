# SPDX-License-Identifier: Apache-2.0
"""The figures of a report, as they are written to JSON; the page shows nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gharial
from gharial.compiler.quantise import WeightType
from gharial.fidelity.bound import LEAST_AGREEMENT, LEAST_SQNR, verdict
from gharial.fidelity.compare import DECISIVE, Comparison, Parting
from gharial.fidelity.noise import TensorNoise
from gharial.fidelity.weights import WeightNoise, row_name
from gharial.program import Program


def figures(
    program: Program, weights: WeightType, matrices: Sequence[WeightNoise], found: Comparison, worst: int
) -> dict[str, Any]:
    """All of a report; ratios are in dB, null where there is no noise or no signal.

    Args:
        program: the program.
        weights: type of its weights.
        matrices: of `gharial.fidelity.weights`.
        found: of `gharial.fidelity.compare`.
        worst: units to name of each tensor.
    """
    seen = verdict(program, found)
    return {
        "version": gharial.__version__,
        "model": program.manifest["model"]["name"],
        "source_sha256": program.manifest["model"]["source_sha256"],
        "config": program.config.name,
        "weights": weights.name,
        "bound": {
            "holds": seen.good,
            "least_sqnr_db": LEAST_SQNR,
            "least_agreement": LEAST_AGREEMENT,
        },
        "output": seen.tensor,
        "sqnr_db": _rounded(seen.sqnr),
        "sqnr_changes_db": _rounded(found.tensors[seen.tensor].sqnr_changes),
        "evaluations": found.evaluations,
        "agreement": found.agreement,
        "decisive": {
            "margin": DECISIVE * found.error,
            "evaluations": found.decisive,
            "agreement": found.decisive_agreement,
        },
        "recordings": found.recordings,
        "babble": found.babble,
        "units": units_of(program),
        "weight_tensors": [_matrix(matrix) for matrix in matrices],
        "tensors": [_tensor(name, noise, worst) for name, noise in found.tensors.items()],
        "partings": [_parting(parting) for parting in found.partings],
    }


def units_of(program: Program) -> dict[str, Any]:
    """The program's units: fraction bits by layer, and the joint's."""
    numerics = program.manifest["numerics"]
    lstms = {name: layer for name, layer in program.layers.items() if layer["kind"] == "lstm"}
    return {
        "features": numerics["frac_bits"]["features"],
        "h": {name: layer["qh"] for name, layer in lstms.items()},
        "c": {name: layer["qc"] for name, layer in lstms.items()},
        "joint_unit": numerics["joint_unit"],
        "joint_shift": numerics["joint_shift"],
        "logits": numerics["frac_bits"]["logits"],
        "embedding_unit": numerics["embedding_unit"],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 2)


def _worst(units: Sequence[tuple[Any, float]]) -> list[dict[str, Any]]:
    return [{"row": row, "sqnr_db": round(ratio, 2)} for row, ratio in units]


def _matrix(matrix: WeightNoise) -> dict[str, Any]:
    return {
        "name": matrix.name,
        "rows": matrix.rows,
        "columns": matrix.columns,
        "sqnr_db": _rounded(matrix.sqnr),
        "clipped": matrix.clipped,
        "zero_rows": matrix.zero_rows,
        "histogram": matrix.histogram.tolist(),
        "worst": _worst(matrix.worst),
    }


def _tensor(name: str, noise: TensorNoise, worst: int) -> dict[str, Any]:
    return {
        "name": name,
        "unit": noise.unit,
        "elements": noise.count,
        "largest": noise.largest,
        "range": [noise.low * noise.unit, noise.high * noise.unit],
        "sqnr_db": _rounded(noise.sqnr),
        "sqnr_changes_db": _rounded(noise.sqnr_changes),
        "at_limit": noise.at_limit,
        "beyond": noise.beyond,
        "histogram": noise.histogram.tolist(),
        "worst": _worst([(row_name(row, name.endswith(".pre")), ratio) for row, ratio in noise.worst(worst)]),
    }


def _parting(parting: Parting) -> dict[str, Any]:
    return {
        "recording": parting.recording,
        "place": parting.place,
        "step": parting.step,
        "evaluation": parting.evaluation,
        "float_class": parting.float_class,
        "integer_class": parting.integer_class,
        "margin": parting.margin,
        "errors": {name: round(error, 3) for name, error in parting.errors.items()},
    }
