# SPDX-License-Identifier: Apache-2.0
"""The benches of sim/: which there are, and what each is built with, from the bench.toml beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SIM = Path(__file__).resolve().parent
KEYS = {"top", "module", "configs", "variants", "parameters"}


@dataclass(frozen=True)
class Run:
    """One build of a bench: a configuration, and a variant where the bench has some.

    `parameters` are those of the top module.
    """

    bench: str
    folder: Path
    top: str
    modules: tuple[str, ...]
    config: str
    variant: str = ""
    parameters: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Unique among all runs: `bench/config` or `bench/config/variant`."""
        return "/".join(part for part in (self.bench, self.config, self.variant) if part)


def runs() -> list[Run]:
    """All runs of all benches, by folder and in the order of each bench.toml.

    Raises:
        ValueError: a bench.toml has an unknown key, or two benches share a name.
    """
    found = [run for file in sorted(SIM.rglob("bench.toml")) for run in _read(file)]
    names = [run.name for run in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"benches share a name: {', '.join(sorted(twice))}")
    return found


def _read(file: Path) -> Iterator[Run]:
    for name, entry in tomllib.loads(file.read_text(encoding="utf-8")).items():
        unknown = entry.keys() - KEYS
        if unknown:
            raise ValueError(f"{file}: {name}: unknown key {sorted(unknown)}, known: {sorted(KEYS)}")
        for config in entry.get("configs", ["tiny"]):
            for variant, own in entry.get("variants", {"": {}}).items():
                yield _run(file.parent, name, entry, config, variant, own)


def _run(folder: Path, name: str, entry: Mapping[str, Any], config: str, variant: str, own: Mapping[str, Any]) -> Run:
    modules = entry.get("module", f"test_{name}")
    modules = [modules] if isinstance(modules, str) else modules
    return Run(
        bench=name,
        folder=folder,
        top=entry.get("top", name),
        modules=tuple(".".join(("sim", *folder.relative_to(SIM).parts, module)) for module in modules),
        config=config,
        variant=variant,
        parameters={**entry.get("parameters", {}), **own},
    )
