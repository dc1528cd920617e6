# SPDX-License-Identifier: Apache-2.0
"""Names, types and sizes of a trace's tensors (docs/numerics.md, section 12)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gharial.program import Program

_PARTS = (".pre", ".c", ".h")
_ENCODER = re.compile(r"encoder\.(pre|post)_rnn\.\d+")
_PREDICTION = re.compile(r"prediction\.\d+")


def tensors(program: Program) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of one step of each tensor of a program's trace, in the order of the machine."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {"prefix": ("int32", ())}
    found["features"] = ("int8", (program.manifest["features"]["count"],))
    for name, layer in program.layers.items():
        units = layer["units"]
        if layer["kind"] == "lstm":
            found |= {f"{name}.pre": ("int16", (units, 4)), f"{name}.c": ("int16", (units,))}
            found[f"{name}.h"] = ("int8", (units,))
        else:
            found[name] = ("int8" if name == "joint" else "int16", (units,))
    return found | {"lse": ("int32", ()), "tokens": ("int32", ()), "steps": ("int32", ())}


def encoder_layers(keys: Iterable[str]) -> tuple[list[str], list[str]]:
    """Tensors of the layers before and after the stacking of time, each in the order of the machine."""
    names = _layers(keys, _ENCODER)
    pre = [name for name in names if name.startswith("encoder.pre_rnn.")]
    return _expanded(pre), _expanded([name for name in names if name not in pre])


def decoder_layers(keys: Iterable[str]) -> list[str]:
    """Tensors of one prediction step."""
    return [*_expanded(_layers(keys, _PREDICTION)), "joint_pred"]


def _layers(keys: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    found = {key.removesuffix(part) for key in keys for part in _PARTS if key.endswith(part)}
    return sorted((name for name in found if pattern.fullmatch(name)), key=lambda name: int(name.rsplit(".", 1)[1]))


def _expanded(layers: list[str]) -> list[str]:
    return [layer + part for layer in layers for part in _PARTS]
