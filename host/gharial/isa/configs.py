# SPDX-License-Identifier: Apache-2.0
"""Named hardware configurations, from the one file that RTL builds, compiler and devices share (rtl/configs.yaml)."""

import zlib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import yaml

from gharial.errors import BadInput

# The package carries a copy made when it is built.
_COPY = Path(__file__).with_name("_configs.yaml")


@dataclass(frozen=True)
class Config:
    """One hardware configuration. Capacities are in the units that docs/isa.md, section 2, defines."""

    name: str
    stands_for: str
    automatic: bool
    rows: int
    cols: int
    weights: str
    code_bytes: int
    weight_bytes: int
    scale_bytes: int
    bias_bytes: int
    embed_bytes: int
    scratch_units: int
    sum_groups: int
    max_classes: int
    max_entries: int
    enc_a_units: int
    enc_c_units: int
    pred_a_units: int
    pred_c_units: int
    enc_slots: int
    pred_slots: int
    batch: int
    lanes: int
    rank_lanes: int
    ports: int
    port_bytes: int
    ahead: int
    acc_vectors: int
    memory_mb_s: int
    memory_latency: int
    window_bytes: int
    clock_mhz: float | None

    @property
    def in_memory(self) -> bool:
        """Whether weights, embedding and state lie in the device memory."""
        return self.weights == "memory"

    @property
    def cell_unit(self) -> int:
        """int16 values in a cell unit."""
        return self.rows // 4

    @property
    def tile_bytes(self) -> int:
        """Bytes of a weight tile."""
        return self.rows * self.cols

    @property
    def memory_rate(self) -> float:
        """Bytes a clock that the memory off chip moves in simulation; 0: as fast as the ports."""
        return self.memory_mb_s / self.clock_mhz if self.clock_mhz else 0.0

    @property
    def config_id(self) -> int:
        """CRC-32 over name and architectural sizes; device and program must have the same (isa.md, section 8)."""
        arch = [f.name for f in fields(self) if f.name not in _NOT_ARCH]
        text = self.name + "".join(f";{key}={getattr(self, key)}" for key in sorted(arch))
        return zlib.crc32(text.encode())


_GROUPS = ("arch", "build")
_BUILD = {"batch", "lanes", "rank_lanes", "ports", "port_bytes", "ahead", "acc_vectors"}
_BUILD |= {"memory_mb_s", "memory_latency", "window_bytes", "clock_mhz"}
_NOT_ARCH = {"name", "stands_for", "automatic", *_BUILD}


@cache
def configs() -> dict[str, Config]:
    """All configurations by name, in the file's order (smallest first)."""
    table = yaml.safe_load(_COPY.read_text(encoding="utf-8"))
    return {
        name: Config(
            name=name, **{k: v for k, v in entry.items() if k not in _GROUPS}, **entry["arch"], **entry["build"]
        )
        for name, entry in table.items()
    }


def config(name: str) -> Config:
    """The configuration of that name.

    Raises:
        BadInput: there is none.
    """
    try:
        return configs()[name]
    except KeyError:
        raise BadInput(
            "unknown hardware configuration", found=name, expected=", ".join(configs()), remedy="choose one of these"
        ) from None
