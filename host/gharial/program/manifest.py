# SPDX-License-Identifier: Apache-2.0
"""What a program's manifest must hold (docs/program.md): types and ranges of each key, and agreement between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gharial.errors import BadInput
from gharial.isa.configs import Config, configs
from gharial.isa.header import INTERFACE_TEXT, LOGIT_BITS, MAX_COLUMNS, MAX_VECTORS, TABLE_BYTES
from gharial.program.container import AGAIN
from gharial.program.schema import (
    boolean,
    case_of,
    integer,
    list_of,
    map_of,
    nullable,
    number,
    one_of,
    record,
    shown,
    text,
)

SECTIONS = ("predict", "encode", "joint")
"""Sections of instructions, in the header's order."""

OTHER_LIMIT = 64 << 20
"""Bytes of a section that is no space of the machine, at most."""

_WORD = (1 << 32) - 1
_BYTES = 1 << 40
_GROUPS = (1 << 16) - 1
_INDEX = 1 << 24

_NAME = text(64, r"[A-Za-z_][A-Za-z0-9_.]*", "a name of letters, digits, underscores and dots")
_SHA256 = text(64, r"[0-9a-f]{64}", "64 hexadecimal digits")
_LINE = text(1024)
_UNIT = number(0.0, 1e30, above=True)

_PART = record(
    {
        "input": one_of(("x", "h")),
        "column": integer(0, MAX_COLUMNS * MAX_VECTORS),
        "columns": integer(1, MAX_COLUMNS),
        "padded": integer(1, MAX_COLUMNS),
        "tile": integer(0, _WORD),
        "scale_group": integer(0, _GROUPS),
    }
)
_LAYER = {"name": _NAME, "units": integer(1, _INDEX), "padded": integer(1, _INDEX)}
_PRODUCT = _LAYER | {
    "row_groups": integer(1, _GROUPS),
    "bias_group": integer(0, _GROUPS),
    "parts": list_of(_PART, 1, 7),
}
_LAYERS = case_of(
    "kind",
    {
        "lstm": record(_PRODUCT | {"qc": integer(8, 15), "qh": integer(5, 14)}),
        "linear": record(_PRODUCT),
        "joint": record(_LAYER),
    },
)

_SECTION = {"bytes": integer(0, _BYTES), "offset": integer(0, _BYTES), "sha256": _SHA256}

_MANIFEST = record(
    {
        "program_id": integer(0, _WORD),
        "compiler": _LINE,
        "model": record(
            {
                "name": _LINE,
                "source_sha256": _SHA256,
                "version": _LINE,
                "parameters": integer(1, 1 << 48),
                "dims": map_of(_NAME, integer(0, _INDEX), 64),
            }
        ),
        "features": record(
            {
                "sample_rate": integer(1, 1_000_000),
                "window": integer(1, 1 << 20),
                "hop": integer(1, 1 << 20),
                "n_fft": integer(1, 1 << 20),
                "n_mels": integer(1, 4096),
                "stacking": integer(1, 64),
                "subsampling": integer(1, 64),
                "melalpha": number(0.0, 1.0),
                "frac_bits": integer(-16, 16),
                "count": integer(1, MAX_COLUMNS),
                "padded": integer(1, _GROUPS),
            },
            {"given": boolean},
        ),
        "numerics": record(
            {
                "frac_bits": record(
                    {"features": integer(-16, 16), "logits": integer(LOGIT_BITS.start, LOGIT_BITS.stop - 1)}
                ),
                "joint_shift": integer(0, 8),
                "joint_unit": _UNIT,
                "embedding_unit": _UNIT,
            },
            {"weights": one_of(("int8", "int4"))},
        ),
        "layers": list_of(_LAYERS, 1, 256),
        "pad": record({"embedding_unit": integer(0, _WORD), "bytes": integer(0, MAX_COLUMNS)}),
        "decoding": record(
            {"blank": integer(0, _GROUPS), "max_symbols": integer(1, 255)},
            {
                "prefix_spec": nullable(record({"valid_prefix": text(4096)}, {"default_prefix": nullable(text(4096))})),
                "ngram_scale": nullable(number(-1e3, 1e3)),
            },
        ),
        "trace": list_of(
            record(
                {
                    "section": one_of(SECTIONS),
                    "instruction": integer(0, 254),
                    "vector": integer(0, MAX_VECTORS - 1),
                    "layer": _NAME,
                }
            ),
            0,
            4 * 3 * 255,
        ),
    }
)

_IDENTITY = record(
    {
        "interface_version": text(16, r"[0-9]{1,4}\.[0-9]{1,4}", "two numbers with a dot, as in 1.0"),
        "config": record({"name": _LINE, "id": integer(0, _WORD)}),
    }
)
_TABLE = map_of(_NAME, record(_SECTION), 64)


@dataclass(frozen=True)
class SpaceInfo:
    """A space of the machine: its section in the file, the configuration's capacity, the header's size field."""

    name: str
    capacity: str
    size: str


SPACES = (
    SpaceInfo("code", "code_bytes", "code_bytes"),
    SpaceInfo("weights", "weight_bytes", "weight_bytes"),
    SpaceInfo("scales", "scale_bytes", "scale_bytes"),
    SpaceInfo("biases", "bias_bytes", "bias_bytes"),
    SpaceInfo("tables", "", "table_bytes"),
    SpaceInfo("embedding", "embed_bytes", "embed_bytes"),
)
"""In the order of the space numbers (isa.md, section 2)."""


def capacity(config: Config, space: SpaceInfo) -> int:
    """Bytes that the configuration has for a space."""
    return int(getattr(config, space.capacity)) if space.capacity else TABLE_BYTES


def check_identity(manifest: Mapping[str, Any], where: str) -> Config:
    """The configuration a program was compiled for.

    Raises:
        BadInput: an interface version that this package does not speak, or a configuration that it does not have, or
            has otherwise.
    """
    _IDENTITY(manifest, where)
    version = manifest["interface_version"]
    major, minor = (int(part) for part in version.split("."))
    own_major, own_minor = (int(part) for part in INTERFACE_TEXT.split("."))
    if major != own_major or minor > own_minor:
        raise BadInput("program of another interface version", where, version, INTERFACE_TEXT, AGAIN)
    name, found = manifest["config"]["name"], manifest["config"]["id"]
    config = configs().get(name)
    if config is None:
        raise BadInput("program for an unknown configuration", where, shown(name), ", ".join(configs()), AGAIN)
    if config.config_id != found:
        raise BadInput(
            f"program for another {name} than this version's",
            where,
            f"configuration id {found:#010x}",
            f"{config.config_id:#010x}",
            AGAIN,
        )
    return config


def check_table(manifest: Mapping[str, Any], config: Config, where: str) -> Mapping[str, Mapping[str, Any]]:
    """The manifest's table of sections, checked against the configuration before any section is read.

    Raises:
        BadInput: not such a table, a space is missing, or a section is longer than its limit.
    """
    record({"sections": _TABLE})(manifest, where)
    table: Mapping[str, Mapping[str, Any]] = manifest["sections"]
    check_sizes({name: entry["bytes"] for name, entry in table.items()}, config, where)
    return table


def check_sizes(sizes: Mapping[str, int], config: Config, where: str) -> None:
    """Raise BadInput if a space is missing, or a section is longer than its limit."""
    limits = {space.name: capacity(config, space) for space in SPACES}
    for name in limits:
        if name not in sizes:
            raise BadInput("a section is missing", where, ", ".join(sizes) or "none", name)
    for name, size in sizes.items():
        limit = limits.get(name, OTHER_LIMIT)
        if size > limit:
            room = f"at most {limit} in configuration {config.name}" if name in limits else f"at most {limit}"
            raise BadInput(f"section {name} is too long", where, f"{size} bytes", room)


def check_manifest(manifest: Mapping[str, Any], config: Config, sizes: Mapping[str, int], where: str) -> None:
    """Check every key but `sections`, and what one says about another.

    Args:
        manifest: the manifest.
        config: the program's configuration.
        sizes: bytes of each section.
        where: the file, for errors.

    Raises:
        BadInput: a key is missing, has the wrong type or range, or contradicts another.
    """
    _MANIFEST(manifest, where)
    check_sizes(sizes, config, where)
    features, numerics = manifest["features"], manifest["numerics"]
    _agree(where, "numerics.frac_bits.features", numerics["frac_bits"]["features"], features["frac_bits"])
    _padding(where, "features", features["count"], features["padded"], config.cols)
    for name in ("melmeans", "melvars"):
        if name in sizes:
            _agree(where, f"{name} in bytes", sizes[name], 8 * features["n_mels"])
    end = manifest["pad"]["embedding_unit"] * config.cols + manifest["pad"]["bytes"]
    _within(where, "pad", end, sizes["embedding"])
    names = [layer["name"] for layer in manifest["layers"]]
    if len(set(names)) != len(names):
        raise BadInput("two layers have one name", where, max(names, key=names.count))
    for layer in manifest["layers"]:
        _check_layer(layer, config, sizes, f"{where}: layer {layer['name']}")
    for index, entry in enumerate(manifest["trace"]):
        if entry["layer"] not in names:
            raise BadInput("trace names an unknown layer", f"{where}.trace[{index}]", shown(entry["layer"]))


def _check_layer(layer: Mapping[str, Any], config: Config, sizes: Mapping[str, int], where: str) -> None:
    _padding(where, "units", layer["units"], layer["padded"], 1)
    if layer["kind"] == "joint":
        return
    rows = layer["padded"] * (4 if layer["kind"] == "lstm" else 1)
    groups = layer["row_groups"]
    _agree(where, "row_groups", groups, -(-rows // config.rows))
    _within(where, "biases", 4 * config.rows * (layer["bias_group"] + groups), sizes["biases"])
    for index, part in enumerate(layer["parts"]):
        place = f"{where}, part {index}"
        _padding(place, "columns", part["columns"], part["padded"], config.cols)
        tiles = groups * (part["padded"] // config.cols)
        _within(place, "weights", config.tile_bytes * (part["tile"] + tiles), sizes["weights"])
        _within(place, "scales", 4 * config.rows * (part["scale_group"] + groups), sizes["scales"])


def _agree(where: str, what: str, found: int, expected: int) -> None:
    if found != expected:
        raise BadInput("manifest entries contradict each other", f"{where}: {what}", found, expected)


def _padding(where: str, what: str, plain: int, padded: int, multiple: int) -> None:
    if padded < plain or padded % multiple:
        raise BadInput(f"{what} padded wrongly", where, padded, f"a multiple of {multiple}, {plain} or more")


def _within(where: str, what: str, end: int, size: int) -> None:
    if end > size:
        raise BadInput(f"lies outside the section {what}", where, f"end at byte {end}", f"at most {size}")
