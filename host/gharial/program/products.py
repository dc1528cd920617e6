# SPDX-License-Identifier: Apache-2.0
"""Whether the instructions compute the layers that the manifest lists: each part once, in sums that belong together."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, NoReturn

from gharial.errors import BadInput
from gharial.isa.instructions import Opcode, Post
from gharial.program.code import Instruction
from gharial.program.program import Program

_KINDS = {Post.CELL: "lstm", Post.I16: "linear", Post.I8: "linear", Post.LOGIT: "linear"}


@dataclass(frozen=True)
class Piece:
    """Some row groups of one part of a layer, as one MATVEC computes them.

    Attributes:
        layer: name of the layer.
        part: index of the part.
        group: first row group.
    """

    layer: str
    part: int
    group: int


class Products:
    """Looks instructions up in the manifest's layers."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.columns = program.config.cols
        self.layers: dict[str, dict[str, Any]] = program.layers
        found = [
            (part["tile"], layer["name"], index)
            for layer in self.layers.values()
            for index, part in enumerate(layer.get("parts", []))
        ]
        self.parts = sorted(found)
        self.starts = [tile for tile, _, _ in self.parts]
        self.trace: dict[tuple[str, int], list[str]] = {}
        for entry in program.manifest["trace"]:
            self.trace.setdefault((entry["section"], entry["instruction"]), []).append(entry["layer"])
        self._now: Instruction | None = None

    def _fail(self, what: str, found: object = None, expected: object = None) -> NoReturn:
        assert self._now is not None
        raise BadInput(what, f"{self.program.where}: {self._now.name}", found, expected)

    def check_trace(self, code: dict[str, list[Instruction]]) -> None:
        """Raise BadInput unless the trace names, for the instructions that it lists, each of their outputs once."""
        for (section, index), layers in self.trace.items():
            where = f"{self.program.where}: trace of {layers[0]}"
            if index >= len(code[section]):
                raise BadInput("no such instruction", where, f"{section}[{index}]", f"0..{len(code[section]) - 1}")
            instruction = code[section][index]
            outputs = {Opcode.JOINT: 1, Opcode.LOOKUP: 0}.get(instruction.opcode)
            if outputs is None:
                outputs = instruction["last"].bit_count()
            if len(layers) != outputs:
                raise BadInput(f"{instruction.name} makes another number of outputs", where, outputs, len(layers))

    def piece(self, instruction: Instruction) -> Piece:
        """The part that a MATVEC computes.

        Raises:
            BadInput: its tiles, scales, biases or post-operation are not those of a layer; it is named.
        """
        self._now = instruction
        tile, tiles = instruction["tile"], instruction["col_tiles"]
        at = bisect_right(self.starts, tile) - 1
        if at < 0:
            self._fail("weights that belong to no layer", f"tile {tile}")
        start, name, index = self.parts[at]
        layer = self.layers[name]
        part = layer["parts"][index]
        group, inside = divmod(tile - start, tiles)
        if tiles != part["padded"] // self.columns or inside or group + instruction["row_groups"] > layer["row_groups"]:
            found = f"{instruction['row_groups']} x {tiles} tiles from {tile}"
            expected = f"row groups of {layer['row_groups']} x {part['padded'] // self.columns} from {start}"
            self._fail(f"tiles are not those of {name}, part {index}", found, expected)
        self._same(f"scales of {name}, part {index}", instruction["scale_group"], part["scale_group"] + group)
        if instruction["first"]:
            self._same(f"biases of {name}", instruction["bias_group"], layer["bias_group"] + group)
        if instruction["last"]:
            self._post(instruction, layer)
        return Piece(name, index, group)

    def joint(self, instruction: Instruction) -> None:
        """Raise BadInput unless a JOINT instruction is as the manifest says."""
        self._now = instruction
        self._same("joint shift", instruction["shift"], self.program.manifest["numerics"]["joint_shift"])
        for name in self.trace.get((instruction.section, instruction.index), []):
            if self.layers[name]["kind"] != "joint":
                self._fail("traced as a layer that is no joint", name)

    def _same(self, what: str, found: int, expected: int) -> None:
        if found != expected:
            self._fail(f"other {what} than the manifest has", found, expected)

    def _post(self, instruction: Instruction, layer: dict[str, Any]) -> None:
        post = Post(instruction["post"])
        if _KINDS[post] != layer["kind"]:
            self._fail(f"{post.name} for layer {layer['name']}", layer["kind"], _KINDS[post])
        if post == Post.CELL:
            found = (instruction["shift"], instruction["qh"])
            if found != (layer["qc"], layer["qh"]):
                self._fail(f"units of {layer['name']} differ (qc, qh)", found, (layer["qc"], layer["qh"]))
        for name in self.trace.get((instruction.section, instruction.index), []):
            if name != layer["name"]:
                self._fail("traced as another layer", name, layer["name"])


class Sums:
    """What is in each sum group while a section runs for entries of one number of feature vectors.

    Args:
        products: the layers.
        full: whether an entry of this number of vectors has all of a step: then no sum may be left over.
    """

    def __init__(self, products: Products, full: bool) -> None:
        self.products, self.full = products, full
        # sum group: (layer, row group, parts added so far)
        self.held: dict[int, tuple[str, int, tuple[int, ...]]] = {}
        self.last: dict[int, Instruction] = {}

    def step(self, instruction: Instruction, piece: Piece) -> None:
        """Add a MATVEC.

        Raises:
            BadInput: it goes on from sums of another product or of none, begins over unfinished ones, adds a part
                twice, or ends a product that lacks a part; it is named.
        """
        count = instruction["row_groups"]
        for vector in range(instruction.vectors):
            for g in range(count):
                self._group(instruction, piece, vector, piece.group + g, instruction["sum"] + vector * count + g)

    def finish(self) -> None:
        """Raise BadInput if a product was begun and not ended; the instruction that last added to it is named."""
        if self.full and self.held:
            self._fail(self.last[min(self.held)], "leaves a product that nothing ends")

    def _fail(self, instruction: Instruction, what: str, found: object = None, expected: object = None) -> NoReturn:
        raise BadInput(what, f"{self.products.program.where}: {instruction.name}", found, expected)

    def _group(self, now: Instruction, piece: Piece, vector: int, group: int, at: int) -> None:
        first, last = now.has("first", vector), now.has("last", vector)
        parts: tuple[int, ...] = ()
        if not first:
            layer, row, parts = self.held.get(at, ("", 0, ()))
            if (layer, row) != (piece.layer, group):
                there = f"those of {layer}, row group {row}" if layer else "none"
                self._fail(now, "goes on from sums of another product", there, f"{piece.layer}, row group {group}")
            if piece.part in parts:
                self._fail(now, "adds a part twice", f"{piece.layer}, part {piece.part}")
        elif not last and self.full and at in self.held:
            self._fail(now, "begins over a product that is not ended", self.held[at][0])
        parts = (*parts, piece.part)
        if not last:
            self.held[at] = (piece.layer, group, parts)
            self.last[at] = now
            return
        if not first:
            del self.held[at]
        wanted = len(self.products.layers[piece.layer]["parts"])
        if len(parts) != wanted:
            self._fail(now, "ends a product that lacks a part", f"{len(parts)} of {piece.layer}", wanted)
