# SPDX-License-Identifier: Apache-2.0
"""Instructions and space images of a scheduled network (docs/isa.md, sections 2 and 4)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gharial.compiler.network import Layer, Part
from gharial.compiler.quantise import scale_words
from gharial.compiler.schedule import Op, Value
from gharial.isa.configs import Config
from gharial.isa.instructions import JOINT, LOOKUP, MATVEC, NO_SECOND, Opcode, Post, Predicate
from gharial.isa.words import Words


@dataclass(frozen=True)
class Place:
    """Where vectors lie: the activation operand of vector 0, and units from one vector to the next."""

    operand: int
    stride: int = 0


@dataclass
class Images:
    """Weights, scales and biases as they are laid down, each once, in the order of first use."""

    config: Config
    weights: list[bytes] = field(default_factory=list)
    scales: list[Words] = field(default_factory=list)
    biases: list[npt.NDArray[np.int32]] = field(default_factory=list)
    parts: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    bias_groups: dict[str, int] = field(default_factory=dict)
    tiles: int = 0
    groups: int = 0
    bias_used: int = 0

    def part(self, layer: Layer, index: int) -> tuple[int, int]:
        """First tile and first scale group of a part."""
        key = (layer.name, index)
        if key not in self.parts:
            rows = layer.parts[index].rows
            self.parts[key] = (self.tiles, self.groups)
            self.weights.append(tile(rows.weights, self.config))
            self.scales.append(scale_words(rows.multipliers, rows.shifts))
            self.tiles += rows.weights.size // self.config.tile_bytes
            self.groups += len(rows.scales) // self.config.rows
        return self.parts[key]

    def bias(self, layer: Layer) -> int:
        """First group of a layer's biases."""
        if layer.name not in self.bias_groups:
            self.bias_groups[layer.name] = self.bias_used
            self.biases.append(layer.bias.astype("<i4"))
            self.bias_used += len(layer.bias) // self.config.rows
        return self.bias_groups[layer.name]


def tile(weights: npt.NDArray[np.int8], config: Config) -> bytes:
    """Padded int8 (rows, columns) as tiles, row group by row group."""
    rows, columns = weights.shape
    shape = (rows // config.rows, config.rows, columns // config.cols, config.cols)
    return weights.reshape(shape).transpose(0, 2, 1, 3).tobytes()


@dataclass(frozen=True)
class Target:
    """Where a layer's post-operation goes, and how.

    Attributes:
        post: the post-operation.
        place: destination of vector 0 and stride.
        cell: C unit of c.
        second: activation operand of the second destination, for the last vector of a step.
        shift, qh: fields of the post-operation.
    """

    post: Post
    place: Place
    cell: int = 0
    second: int = NO_SECOND
    shift: int = 0
    qh: int = 0


class SectionEmitter:
    """Emits the instructions of one section."""

    def __init__(self, name: str, images: Images, layers: dict[str, Layer], steps: int) -> None:
        self.name = name
        self.images = images
        self.layers = layers
        self.steps = steps
        self.code: list[Words] = []
        self.trace: list[dict[str, Any]] = []
        self.writer: dict[Value, int] = {}

    def _depends(self, reads: tuple[Value, ...]) -> int:
        return max((self.writer.get(value, 0) for value in reads), default=0)

    def lookup(self, value: Value, unit: int, units: int, destination: int, constant: bool, at_most: int = 0) -> None:
        """A LOOKUP that makes `value`; at_most > 0: only for entries with at most that many vectors."""
        self.code.append(
            LOOKUP.pack(
                opcode=Opcode.LOOKUP,
                predicate=Predicate.AT_MOST if at_most else Predicate.ALWAYS,
                threshold=at_most,
                constant=int(constant),
                unit=unit,
                units=units,
                destination=destination,
            )
        )
        self.writer[value] = len(self.code)

    def joint(self, cell_units: int, destination: int, shift: int) -> None:
        """The JOINT instruction; it makes value ("joint", 0)."""
        self.trace.append({"section": self.name, "instruction": len(self.code), "vector": 0, "layer": "joint"})
        self.code.append(JOINT.pack(opcode=Opcode.JOINT, cell_units=cell_units, destination=destination, shift=shift))
        self.writer["joint", 0] = len(self.code)

    def matvec(self, op: Op, sum_group: int, source: Place, target: Target) -> None:
        """One part; the source is that of the op's first vector, the target that of the layer's vector 0."""
        layer = self.layers[op.layer]
        part: Part = layer.parts[op.part]
        config = self.images.config
        tile_index, scale_group = self.images.part(layer, op.part)
        v0 = op.vectors[0]
        row_groups = len(layer.bias) // config.rows
        one_region_a_step = op.groups > row_groups
        post = target.post if op.last else Post.NONE
        cell = post == Post.CELL
        final = cell and self.steps - 1 in op.last
        # What an entry lacks writes nothing; a part of none but later vectors can be left out.
        later = v0 > 0
        for v in sorted(op.last):
            self.trace.append({"section": self.name, "instruction": len(self.code), "vector": v, "layer": op.layer})
        self.code.append(
            MATVEC.pack(
                opcode=Opcode.MATVEC,
                post=post,
                predicate=Predicate.MORE if later else Predicate.ALWAYS,
                threshold=v0 if later else 0,
                vectors_less_1=len(op.vectors) - 1,
                first=_mask(op, op.first),
                last=_mask(op, op.last),
                tile=tile_index,
                row_groups=row_groups,
                col_tiles=part.padded // config.cols,
                source=source.operand,
                source_stride=source.stride if len(op.vectors) > 1 else 0,
                destination=target.place.operand + v0 * target.place.stride if op.last else 0,
                destination_stride=target.place.stride if len(op.vectors) > 1 and op.last else 0,
                cell=target.cell if cell else 0,
                second=target.second if final else NO_SECOND if cell else 0,
                sum=sum_group + (v0 * row_groups if one_region_a_step else 0) if op.keeps_sums else 0,
                depends=self._depends(op.reads),
                shift=target.shift if cell else 0,
                qh=target.qh if cell else 0,
                scale_group=scale_group,
                bias_group=self.images.bias(layer) if op.first else 0,
            )
        )
        for value in op.writes:
            self.writer[value] = len(self.code)


def _mask(op: Op, vectors: frozenset[int]) -> int:
    return sum(1 << (v - op.vectors[0]) for v in vectors)
