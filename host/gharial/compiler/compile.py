# SPDX-License-Identifier: Apache-2.0
"""Checkpoint in, program out."""

import hashlib
import math
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import gharial
from gharial.checkpoint.hardware import HardwareCheckpoint
from gharial.compiler.calibrate import Calibration
from gharial.compiler.fit import fit, shortages
from gharial.compiler.layout import Laid, lay_out
from gharial.compiler.network import Network, quantise_network
from gharial.compiler.quantise import INT8, WeightType
from gharial.compiler.tables import default_tables, function_tables, hard_sigmoid, hard_tanh, sigmoid, table_image
from gharial.compiler.units import Units, choose_units
from gharial.errors import BadInput
from gharial.features.spec import SETTINGS, FeatureSpec
from gharial.isa.configs import Config, configs
from gharial.isa.header import HEADER, INTERFACE_TEXT, INTERFACE_VERSION, MAGIC
from gharial.isa.words import Words
from gharial.program import Program, verify

SECTIONS = ("predict", "encode", "joint")
MAX_SYMBOLS = 30
# Manifest's section name, configuration's capacity, header's size field; in the order of the program id.
SPACES = (
    ("weights", "weight_bytes"),
    ("scales", "scale_bytes"),
    ("biases", "bias_bytes"),
    ("tables", "table_bytes"),
    ("embedding", "embed_bytes"),
)


def compile_checkpoint(
    checkpoint: HardwareCheckpoint,
    config: Config | None,
    calibration: Calibration,
    weights: WeightType = INT8,
    units: Units | None = None,
) -> Program:
    """Compile a hardware checkpoint for a configuration.

    Args:
        checkpoint: the model.
        config: None picks the smallest that holds the model.
        calibration: what was seen on recordings (gharial.compiler.calibrate).
        weights: type of the weights.
        units: other units than those that the calibration leads to, for studies.

    Raises:
        BadInput: the model does not fit (bytes needed and there), or holds what cannot be compiled.
    """
    if units is None:
        units = choose_units(calibration.ranges, calibration.feature_bits)
    if config is not None:
        return _compile(checkpoint, config, units, weights)
    refused: BadInput | None = None
    for candidate in configs().values():
        if not candidate.automatic:
            continue
        try:
            return _compile(checkpoint, candidate, units, weights)
        except DoesNotFit as error:
            refused = error
    assert refused is not None
    raise refused


class DoesNotFit(BadInput):
    """The model is too big for the configuration."""


def _compile(checkpoint: HardwareCheckpoint, config: Config, units: Units, weights: WeightType) -> Program:
    check_size(checkpoint, config)
    network = quantise_network(checkpoint, config, units, weights)
    laid = lay_out(network, checkpoint.dims, config, units.joint_shift)
    spaces = _images(checkpoint, network, laid)
    code, program_id = _code(checkpoint, config, units, laid, spaces)
    spaces = {"code": code, **spaces}
    _check_capacity(checkpoint, config, laid, spaces)
    spaces["sentencepiece"] = checkpoint.sentencepiece
    spaces["melmeans"] = checkpoint.melmeans.astype("<f8").tobytes()
    spaces["melvars"] = checkpoint.melvars.astype("<f8").tobytes()
    manifest = _manifest(checkpoint, config, units, network, laid, program_id, spaces)
    if weights is not INT8:
        # Where it says nothing they are int8: those are the programs of every earlier version.
        manifest["numerics"]["weights"] = weights.name
    program = Program(manifest=manifest, sections=spaces)
    verify(program)
    return program


def check_size(checkpoint: HardwareCheckpoint, config: Config | None) -> None:
    """Refuse what does not fit, by sizes alone: to be asked before the ranges of a model are measured.

    Args:
        checkpoint: the model.
        config: None for any that is picked by itself.

    Raises:
        DoesNotFit: a BadInput with the bytes needed and there; without a configuration, of the largest.
    """
    candidates = [config] if config is not None else [one for one in configs().values() if one.automatic]
    short = [list(fit(checkpoint.dims, one).short) for one in candidates]
    if all(short):
        _refuse(checkpoint, candidates[-1], short[-1])


def _check_capacity(checkpoint: HardwareCheckpoint, config: Config, laid: Laid, spaces: dict[str, bytes]) -> None:
    sizes = {name: len(data) for name, data in spaces.items()}
    _refuse(checkpoint, config, shortages(config, laid.header, sizes, checkpoint.dims.classes))


def _refuse(checkpoint: HardwareCheckpoint, config: Config, short: list[str]) -> None:
    if short:
        raise DoesNotFit(
            f"the model does not fit configuration {config.name}",
            where=checkpoint.path,
            found="; ".join(short),
            remedy="compile for a larger configuration (--config) or use a smaller model",
        )


def _images(checkpoint: HardwareCheckpoint, network: Network, laid: Laid) -> dict[str, bytes]:
    if checkpoint.hard_sigmoid or checkpoint.hard_tanh:
        tables = function_tables(
            hard_sigmoid if checkpoint.hard_sigmoid else sigmoid, hard_tanh if checkpoint.hard_tanh else np.tanh
        )
    else:
        tables = default_tables()
    embedding = network.embedding.tobytes() + network.pad.tobytes()
    return {
        "weights": b"".join(laid.images.weights),
        "scales": b"".join(words.tobytes() for words in laid.images.scales),
        "biases": b"".join(words.tobytes() for words in laid.images.biases),
        "tables": table_image(tables),
        "embedding": embedding + bytes(-len(embedding) % math.lcm(4, laid.images.config.cols)),
    }


def _code(
    checkpoint: HardwareCheckpoint, config: Config, units: Units, laid: Laid, spaces: dict[str, bytes]
) -> tuple[bytes, int]:
    """The code image with its header, and the program id."""
    program_id = 0
    for name, _ in SPACES:
        program_id = zlib.crc32(spaces[name], program_id)
    instructions: list[Words] = []
    where: dict[str, int] = {}
    for name in SECTIONS:
        where[f"{name}_first"], where[f"{name}_count"] = len(instructions), len(laid.code[name])
        instructions += laid.code[name]
    header = HEADER.pack(
        magic=MAGIC,
        version=INTERFACE_VERSION,
        config_id=config.config_id,
        program_id=program_id,
        code_bytes=HEADER.bytes + sum(words.nbytes for words in instructions),
        classes=checkpoint.dims.classes,
        blank=checkpoint.dims.classes - 1,
        logit_bits=units.logit_bits,
        **{field: len(spaces[name]) for name, field in SPACES},
        **where,
        **laid.header,
    )
    header[-1] = zlib.crc32(header[:-1].tobytes())
    return header.tobytes() + b"".join(words.tobytes() for words in instructions), program_id


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _prefix_spec(checkpoint: HardwareCheckpoint) -> dict[str, Any] | None:
    spec = checkpoint.prefix_spec
    return None if spec is None else {"valid_prefix": spec.pattern, "default_prefix": spec.default}


def _layer_entries(network: Network, laid: Laid, dims_joint: int) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for name, layer in network.layers.items():
        if name == "logits":
            padded = network.layers["joint_enc"].padded
            entries.append({"name": "joint", "kind": "joint", "units": dims_joint, "padded": padded})
        entry: dict[str, Any] = {
            "name": name,
            "kind": layer.kind,
            "units": layer.units,
            "padded": layer.padded,
            "row_groups": len(layer.bias) // laid.images.config.rows,
            "bias_group": laid.images.bias_groups[name],
            "parts": [],
        }
        if layer.kind == "lstm":
            entry |= {"qc": layer.qc, "qh": layer.qh}
        for index, part in enumerate(layer.parts):
            tile_index, scale_group = laid.images.parts[name, index]
            fields = {"input": part.input, "column": part.column, "columns": part.columns, "padded": part.padded}
            entry["parts"].append(fields | {"tile": tile_index, "scale_group": scale_group})
        entries.append(entry)
    return entries


def _manifest(
    checkpoint: HardwareCheckpoint,
    config: Config,
    units: Units,
    network: Network,
    laid: Laid,
    program_id: int,
    spaces: dict[str, bytes],
) -> dict[str, Any]:
    dims, front_end = checkpoint.dims, FeatureSpec.from_checkpoint(checkpoint)
    width = network.embedding.shape[1]
    return {
        "interface_version": INTERFACE_TEXT,
        "config": {"name": config.name, "id": config.config_id},
        "program_id": program_id,
        "compiler": gharial.__version__,
        "sections": {name: {"sha256": hashlib.sha256(data).hexdigest()} for name, data in spaces.items()},
        "model": {
            "name": Path(checkpoint.path).name.removesuffix(".hw.pt"),
            "source_sha256": _digest(checkpoint.path),
            "version": checkpoint.version,
            "parameters": sum(int(w.size) for w in checkpoint.state.values()),
            "dims": asdict(dims),
        },
        "features": {
            **{name: getattr(front_end, name) for name in SETTINGS},
            "frac_bits": units.feature_bits,
            "count": dims.features,
            "padded": laid.header["feature_bytes"],
            **({"given": True} if front_end.given else {}),
        },
        "numerics": {
            "frac_bits": {"features": units.feature_bits, "logits": units.logit_bits},
            "joint_shift": units.joint_shift,
            "joint_unit": units.joint,
            "embedding_unit": network.embedding_unit,
        },
        "layers": _layer_entries(network, laid, dims.joint),
        "pad": {
            "embedding_unit": len(network.embedding) * width // config.cols,
            "bytes": len(network.pad),
        },
        "decoding": {
            "blank": dims.classes - 1,
            "max_symbols": MAX_SYMBOLS,
            "prefix_spec": _prefix_spec(checkpoint),
            "ngram_scale": checkpoint.ngram_scale,
        },
        "trace": laid.trace,
    }
