# SPDX-License-Identifier: Apache-2.0
"""On which configurations a model runs, and what it takes there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gharial.checkpoint import ModelDims
from gharial.compiler.fit import Fit, fit
from gharial.isa.configs import Config, configs
from gharial.program.inspect import slot_bytes, slot_count
from gharial.program.pace import TOKENS_A_STEP, Pace

_ALIGN = 64  # of slots in device memory (docs/isa.md, section 2)
_HEADS = (
    "configuration",
    "",
    "weights",
    "slots of a stream",
    "streams",
    "device memory",
    "clocks a step",
    "live streams",
)


def configurations(dims: ModelDims, step_seconds: float) -> list[dict[str, Any]]:
    """A model of these sizes on every configuration, smallest first.

    Args:
        dims: its sizes.
        step_seconds: seconds of audio that an encoder step takes.

    Returns:
        For each: config, stands_for, default (whether the compiler takes it where none is named), fits, short (clauses
        that say what lacks). Where it fits further: bytes and capacity by space, slots and memory as `placed`, pace as
        `paced`.
    """
    found = [fit(dims, config) for config in configs().values()]
    default = next((one.config.name for one in found if one.fits and one.config.automatic), None)
    return [_facts(one, one.config.name == default, step_seconds) for one in found]


def placed(header: dict[str, int], config: Config, weights: int, embedding: int) -> dict[str, Any]:
    """Where a program's state lies.

    Returns:
        slots {encoder, prediction: {bytes, slots}}; stream_bytes (one slot of each); memory {weights, embedding, state
        of all slots, needed, there} of configurations with weights in memory, else None.
    """
    slots = {
        kind: {"bytes": slot_bytes(header, config, kind), "slots": slot_count(header, config, kind)}
        for kind in ("encoder", "prediction")
    }
    memory = None
    if config.in_memory:
        state = sum(-(-slot["bytes"] // _ALIGN) * _ALIGN * slot["slots"] for slot in slots.values())
        parts = {"weights": weights, "embedding": embedding, "state": state}
        memory = {**parts, "needed": sum(parts.values()), "there": config.window_bytes}
    return {"slots": slots, "stream_bytes": sum(slot["bytes"] for slot in slots.values()), "memory": memory}


def paced(pace: Pace, streams: int, step_seconds: float) -> dict[str, Any]:
    """How fast a program can be.

    Returns:
        steps of the array for one entry by section; live_clocks: the least clocks of a live stream for an encoder step
        (`TOKENS_A_STEP` tokens); live_streams: at most so many, by array, memory and slots; None where the
        configuration has no clock; mhz: clock that one live stream needs.
    """
    most = pace.most_streams(step_seconds)
    return {
        "steps": dict(pace.steps),
        "live_clocks": round(pace.live_clocks),
        "live_streams": None if most is None else min(most, streams),
        "mhz": round(pace.live_clocks / step_seconds / 1e6, 6),
    }


def table(found: Sequence[dict[str, Any]]) -> list[str]:
    """`configurations` as lines of a table."""
    rows = [_HEADS, *(_row(one) for one in found if one["fits"])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    lines = list(_laid(rows, widths)) if len(rows) > 1 else []
    width = max(len(one["config"]) for one in found)
    lines += [f"  not on {one['config']:<{width}}  {'; '.join(one['short'])}" for one in found if not one["fits"]]
    if len(rows) > 1:
        lines.append(f"  live streams: at most, by array, memory and slots, at {TOKENS_A_STEP:g} tokens a step")
    return lines


def _facts(found: Fit, default: bool, step_seconds: float) -> dict[str, Any]:
    config = found.config
    facts: dict[str, Any] = {"config": config.name, "stands_for": config.stands_for, "default": default}
    facts |= {"fits": found.fits, "short": list(found.short)}
    if not found.fits or found.pace is None:
        return facts
    where = placed(dict(found.header), config, found.bytes["weights"], found.bytes["embedding"])
    return {
        **facts,
        "bytes": dict(found.bytes),
        "weights_capacity": config.weight_bytes,
        **where,
        "pace": paced(found.pace, where["slots"]["encoder"]["slots"], step_seconds),
    }


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    pace, memory, slots = one["pace"], one["memory"], one["slots"]
    weights = one["bytes"]["weights"]
    percent = 100 * weights / one["weights_capacity"]
    share = f"{percent:.0f} %" if percent >= 1 else "under 1 %"
    enough = "" if memory is None or memory["needed"] <= memory["there"] else ", NOT ENOUGH"
    return (
        one["config"],
        "default" if one["default"] else "",
        f"{weights:,} bytes, {share}",
        f"{one['stream_bytes']:,} bytes",
        f"{slots['encoder']['slots']:,}",
        "on chip" if memory is None else f"{_mega(memory['needed'])} of {_mega(memory['there'])} MB{enough}",
        f"{pace['live_clocks']:,}",
        f"one needs {pace['mhz']:.3g} MHz" if pace["live_streams"] is None else f"{pace['live_streams']:,}",
    )


def _laid(rows: Sequence[tuple[str, ...]], widths: Sequence[int]) -> Iterator[str]:
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True) if width]
        yield ("  " + "  ".join(cells)).rstrip()


def _mega(size: int) -> str:
    return f"{size / 1e6:,.1f}"
