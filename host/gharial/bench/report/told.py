# SPDX-License-Identifier: Apache-2.0
"""The figures of a run in words."""

from __future__ import annotations

from typing import Any

from gharial.devices.verilator.profile import CAUSES

CAUSE_WORDS = {
    "active": ("multiplying", "the array makes a step"),
    "weights": ("waits for weights", "the array has a segment, but its tile has not come from memory"),
    "dependency": ("waits for results", "what is next needs results or state that are not there yet"),
    "backpressure": ("no room for results", "the array has a segment and a tile, but must not start or finish it yet"),
    "loading": ("commands read", "there is a command, and none of it has come to the threads"),
    "idle": ("nothing to do", "no command"),
}
"""Of each cause: its name on the page, and what it means."""
assert tuple(CAUSE_WORDS) == CAUSES


def causes_of(found: dict[str, Any]) -> list[tuple[str, int]]:
    """Clocks by cause, those without any left out."""
    clocks = {"active": found["active"], **found["stalls"]}
    return [(cause, clocks[cause]) for cause in CAUSES if clocks[cause]]


def percent(part: float, whole: float = 1.0) -> str:
    """A share, two digits behind the point."""
    return f"{100 * part / whole:.2f} %" if whole else "-"


def sentences(found: dict[str, Any]) -> list[str]:
    """What came out, for somebody who reads nothing else."""
    cycles = found["cycles"]
    told = [
        f"The RTL of {found['config']} ran {found['model']}, workload {found['workload']}, batch {found['batch']}: "
        f"{found['n_encode']:,} encoder steps, {found['n_pred']:,} prediction steps and {found['n_joint']:,} joints in "
        f"{cycles:,} clocks. All that came out is what the emulator gives.",
        f"In {percent(found['active'], cycles)} of the clocks the array multiplied; of all the products that it could "
        f"have made in that time, {percent(found['utilisation'])} are the model's.",
    ]
    stalls = sorted(found["stalls"].items(), key=lambda item: -item[1])
    lost = cycles - found["active"]
    if lost:
        cause, most = stalls[0]
        told.append(
            f"It stood still for {lost:,} clocks, {percent(most, lost)} of them because of this: "
            f"{CAUSE_WORDS[cause][0]} ({CAUSE_WORDS[cause][1]})."
        )
    if found["linear_read_bytes_per_cycle"]:
        bound = "memory" if found["roofline_cycles"] * found["array_macs_per_cycle"] > found["useful_macs"] else "array"
        told.append(
            f"The {bound} is what bounds this run: without any stall it would take {found['roofline_cycles']:,.0f} "
            f"clocks, and it took {found['roofline_ratio']:.3f} times that."
        )
    return told


def figures(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Rows of the table: key of the JSON object, value, what it says."""
    rows = [
        ("config", found["config"], "hardware configuration"),
        ("model", found["model"], "model, or shape with random weights"),
        ("workload", found["workload"], "what ran"),
        ("batch", f"{found['batch']:,}", "entries of a command"),
        ("n_encode", f"{found['n_encode']:,}", "encoder steps"),
        ("n_pred", f"{found['n_pred']:,}", "prediction steps"),
        ("n_joint", f"{found['n_joint']:,}", "joint evaluations"),
        ("cycles", f"{found['cycles']:,}", "clocks, from the first doorbell to the last completion"),
        ("useful_macs", f"{found['useful_macs']:,}", "products that the model's shapes ask for, without padding"),
        ("array_macs_per_cycle", f"{found['array_macs_per_cycle']:,}", "products that the array can make in a clock"),
        ("utilisation", percent(found["utilisation"]), "useful products of those the array could have made"),
        ("encode_cycles", f"{found['encode_cycles']:,}", "clocks of encoder steps run alone"),
        ("encode_utilisation", percent(found["encode_utilisation"]), "the same share, encoder steps alone"),
    ]
    linear = found["linear_read_bytes_per_cycle"]
    if linear:
        read = found["bytes_read"]
        rows += [
            ("bytes_read", f"{read:,}", f"moved by the device, {read / found['cycles']:.1f} a clock"),
            ("linear_read_bytes_per_cycle", f"{linear:.1f}", "bytes a clock of a plain linear read"),
        ]
    rows += [
        ("roofline_cycles", f"{found['roofline_cycles']:,.0f}", "clocks that array and memory allow at best"),
        ("roofline_ratio", f"{found['roofline_ratio']:.3f}", "clocks taken over those"),
    ]
    if "text" in found:
        rows.insert(3, ("text", found["text"], "what was heard"))
    return rows
