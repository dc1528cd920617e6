# SPDX-License-Identifier: Apache-2.0
"""What a program file is, for a person or a script to read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from gharial.isa.configs import Config
from gharial.program.code import disassemble
from gharial.program.container import VERSION
from gharial.program.manifest import SECTIONS, SPACES, capacity
from gharial.program.program import Program


def describe(
    path: str | os.PathLike[str], *, instructions: bool = False, program: Program | None = None
) -> dict[str, Any]:
    """Read and verify a program file, and tell what it holds.

    Args:
        path: the file.
        instructions: also list the instructions as text.
        program: the file's program, where it has been read already.

    Returns:
        kind "program", path, bytes, container_version, interface_version, compiler, config {name, id, stands_for},
        program_id, model (as in the manifest), features, sections {name: {bytes, capacity or None, percent or None,
        sha256}}, use {name: {used, of, percent}} of scratch, sums and classes, slots {encoder, prediction: {bytes,
        slots}}, code {section: number of instructions}, layers (as in the manifest), and with `instructions` also a
        list of lines.

    Raises:
        BadInput: as `Program.read`.
    """
    program = program or Program.read(path)
    manifest, header, config = program.manifest, program.header, program.config
    limits = {space.name: capacity(config, space) for space in SPACES}
    result: dict[str, Any] = {
        "kind": "program",
        "path": os.fspath(path),
        "bytes": Path(path).stat().st_size,
        "container_version": VERSION,
        "interface_version": manifest["interface_version"],
        "compiler": manifest["compiler"],
        "config": {"name": config.name, "id": config.config_id, "stands_for": config.stands_for},
        "program_id": program.program_id,
        "model": manifest["model"],
        "features": manifest["features"],
        "sections": {
            name: {
                "bytes": len(data),
                "capacity": limits.get(name),
                "percent": _percent(len(data), limits[name]) if name in limits else None,
                "sha256": hashlib.sha256(data).hexdigest(),
            }
            for name, data in program.sections.items()
        },
        "use": {
            "scratch": _use(header["scratch_units"], config.scratch_units),
            "sums": _use(header["sum_groups"], config.sum_groups),
            "classes": _use(header["classes"], config.max_classes),
        },
        "slots": {kind: _slots(header, config, kind) for kind in ("encoder", "prediction")},
        "code": {name: header[f"{name}_count"] for name in SECTIONS},
        "layers": manifest["layers"],
    }
    if instructions:
        result["instructions"] = disassemble(program)
    return result


def slot_bytes(header: dict[str, int], config: Config, kind: str) -> int:
    """Bytes of a slot's state, A part and C part; kind is "encoder" or "prediction"."""
    short = "enc" if kind == "encoder" else "pred"
    return header[f"{short}_a_units"] * config.cols + header[f"{short}_c_units"] * 2 * config.cell_unit


def slot_count(header: dict[str, int], config: Config, kind: str) -> int:
    """Slots of that kind which a device has under the program (docs/isa.md, section 2)."""
    short = "enc" if kind == "encoder" else "pred"
    most = int(getattr(config, f"{short}_slots"))
    if config.in_memory:
        return most
    for part in ("a", "c"):
        used = header[f"{short}_{part}_units"]
        if used:
            most = min(most, int(getattr(config, f"{short}_{part}_units")) // used)
    return most


def _slots(header: dict[str, int], config: Config, kind: str) -> dict[str, int]:
    return {"bytes": slot_bytes(header, config, kind), "slots": slot_count(header, config, kind)}


def _percent(used: int, there: int) -> float:
    return round(100.0 * used / there, 1) if there else 0.0


def _use(used: int, there: int) -> dict[str, float]:
    return {"used": used, "of": there, "percent": _percent(used, there)}


def format_description(description: dict[str, Any]) -> str:
    """A description as text of several lines."""
    d = description
    model, features, config = d["model"], d["features"], d["config"]
    dims = ", ".join(f"{name} {value}" for name, value in model["dims"].items())
    step = 1000.0 * features["hop"] * features["subsampling"] / features["sample_rate"]
    lines = [
        f"{d['path']}: Gharial program, {d['bytes']} bytes, good",
        f"  model          {model['name']} {model['version']}".rstrip() + f", {model['parameters']} parameters",
        f"                 {dims}",
        f"  source sha256  {model['source_sha256']}",
        f"  configuration  {config['name']} ({config['stands_for']}), id {config['id']:#010x}",
        f"  versions       interface {d['interface_version']}, container {d['container_version']}, "
        f"compiler {d['compiler']}",
        f"  program id     {d['program_id']:#010x}",
        f"  features       {features['count']} a vector, {step:g} ms each, {features['sample_rate']} Hz",
    ]
    for name, entry in d["sections"].items():
        share = "" if entry["percent"] is None else f"  {entry['percent']:5.1f} % of {entry['capacity']}"
        lines.append(f"  {name:13s}  {entry['bytes']:10d} bytes{share}")
    for name, entry in d["use"].items():
        lines.append(f"  {name:13s}  {entry['used']:10d}        {entry['percent']:5.1f} % of {entry['of']}")
    for name, entry in d["slots"].items():
        lines.append(f"  {name + ' slots':16s}{entry['slots']:9d}        {entry['bytes']} bytes each")
    counts = ", ".join(f"{name} {count}" for name, count in d["code"].items())
    lines.append(f"  instructions   {counts}")
    lines.extend(f"    {line}" for line in d.get("instructions", []))
    return "\n".join(lines)
