# SPDX-License-Identifier: Apache-2.0
"""A small assembler for the emulator's tests: images of the program spaces from matrices and instructions."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gharial.compiler.tables import default_tables, table_image
from gharial.isa.configs import Config
from gharial.isa.header import HEADER, INTERFACE_VERSION, MAGIC, tokens_needed
from gharial.isa.instructions import JOINT, LOOKUP, MATVEC, NO_SECOND, Opcode, Post, Predicate, Space, operand

Ints = npt.NDArray[np.integer]
SECTIONS = ("predict", "encode", "joint")
TABLES = table_image(default_tables())


@dataclass
class Images:
    """The six images, in the order of their space numbers, and the header's fields."""

    spaces: list[bytes]
    header: dict[str, int]

    def with_code(self, code: bytes) -> Images:
        """The same program with other code."""
        return Images([code, *self.spaces[1:]], self.header)


def sealed(words: npt.NDArray[np.uint32]) -> bytes:
    """Header words with their CRC."""
    words = words.copy()
    words[63] = zlib.crc32(words[:63].tobytes())
    return words.astype("<u4").tobytes()


def pack_tiles(matrix: Ints, rows: int, cols: int) -> bytes:
    """int8 (N, K), N and K multiples of rows and cols, in the order of docs/isa.md, section 2."""
    n, k = matrix.shape
    tiled = matrix.reshape(n // rows, rows, k // cols, cols).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(tiled, np.int8).tobytes()


def scale_words(m: Ints, k: Ints) -> Ints:
    """Multiplier and shift of each row as the scales' space has them."""
    return np.asarray(m, np.int64) | (np.asarray(k, np.int64) & 63) << 17


@dataclass
class Assembler:
    """Collects what a program is made of."""

    config: Config
    tables: bytes = TABLES
    code: dict[str, list[Ints]] = field(default_factory=lambda: {name: [] for name in SECTIONS})
    weights: bytearray = field(default_factory=bytearray)
    scales: list[int] = field(default_factory=list)
    biases: list[int] = field(default_factory=list)
    embedding: bytearray = field(default_factory=bytearray)

    def tiles(self, matrix: Ints) -> int:
        """Place a matrix; its first tile."""
        first = len(self.weights) // self.config.tile_bytes
        self.weights += pack_tiles(matrix, self.config.rows, self.config.cols)
        return first

    def scale(self, m: Ints, k: Ints) -> int:
        """Place scales; their first row group."""
        first = len(self.scales) // self.config.rows
        self.scales += scale_words(m, k).tolist()
        return first

    def bias(self, b: Ints) -> int:
        """Place biases; their first row group."""
        first = len(self.biases) // self.config.rows
        self.biases += np.asarray(b, np.int64).tolist()
        return first

    def embed(self, rows: Ints) -> int:
        """Place int8 (n, units * C) rows; their first unit."""
        first = len(self.embedding) // self.config.cols
        self.embedding += np.ascontiguousarray(rows, np.int8).tobytes()
        return first

    def waits(self, section: str) -> dict[str, int]:
        """An instruction depends on the one before it: devices that overlap them run these programs too."""
        return {"depends": len(self.code[section])}

    def matvec(self, section: str, matrix: Ints, **fields: int) -> None:
        """Add a MATVEC over a matrix; tile, row_groups and col_tiles follow from it unless given."""
        n, k = matrix.shape
        shape = {"row_groups": n // self.config.rows, "col_tiles": k // self.config.cols}
        tile = fields.pop("tile") if "tile" in fields else self.tiles(matrix)
        values = {"opcode": Opcode.MATVEC, "tile": tile, **shape, **self.waits(section), **fields}
        if values.get("post") == Post.CELL:
            values.setdefault("second", NO_SECOND)
        self.code[section].append(MATVEC.pack(**values))

    def lookup(self, section: str, **fields: int) -> None:
        """Add a LOOKUP."""
        self.code[section].append(LOOKUP.pack(**{"opcode": Opcode.LOOKUP, **self.waits(section), **fields}))

    def joint(self, **fields: int) -> None:
        """Add a JOINT to section joint."""
        self.code["joint"].append(JOINT.pack(**{"opcode": Opcode.JOINT, **self.waits("joint"), **fields}))

    def build(self, **header: int) -> Images:
        """The images; `header` gives what cannot be derived, and may override the rest."""
        body = [np.asarray(words, "<u4").tobytes() for name in SECTIONS for words in self.code[name]]
        spaces = [
            bytes(self.weights),
            np.array(self.scales, np.int64).astype("<u4").tobytes(),
            np.array(self.biases, np.int64).astype("<i4").tobytes(),
            self.tables,
            bytes(self.embedding),
        ]
        sizes = [HEADER.bytes + 32 * len(body), *map(len, spaces)]
        keys = ("code_bytes", "weight_bytes", "scale_bytes", "bias_bytes", "table_bytes", "embed_bytes")
        values = {
            "magic": MAGIC,
            "version": INTERFACE_VERSION,
            "config_id": self.config.config_id,
            "program_id": zlib.crc32(b"".join(spaces)),
            **dict(zip(keys, sizes, strict=True)),
        }
        first = 0
        for name in SECTIONS:
            values |= {f"{name}_first": first, f"{name}_count": len(self.code[name])}
            first += len(self.code[name])
        values |= header
        values.setdefault("tokens", tokens_needed(values))
        return Images([sealed(HEADER.pack(**values)) + b"".join(body), *spaces], values)


def random_scales(rng: np.random.Generator, rows: int, columns: int) -> tuple[Ints, Ints]:
    """Multipliers and shifts under which sums of random products use the range of an output."""
    spread = int(np.log2(columns) / 2 + 13)
    k = rng.integers(max(0, spread - 14), spread - 9, rows)
    return rng.integers(1 << 16, 1 << 17, rows), k


@dataclass(frozen=True)
class Sizes:
    """A network for the tests; every number in units of its smallest step (C, R/4 or R)."""

    features: int = 3
    hidden: int = 16
    joint: int = 16
    classes: int = 48
    vectors: int = 2


def padded(units: int, config: Config) -> int:
    """Hidden units that fill whole row groups and whole activation units."""
    return -(-units // int(np.lcm(config.cell_unit, config.cols))) * int(np.lcm(config.cell_unit, config.cols))


def network(config: Config, rng: np.random.Generator, sizes: Sizes = Sizes()) -> tuple[Images, list[dict[str, object]]]:
    """A recurrent transducer with random weights: pre_rnn, stack-time, post_rnn, joint_enc; prediction; joint.

    The x part of pre_rnn serves all vectors of a step at once; the last layers' h go to a second destination too; a
    missing vector is replaced by the pad constant. Returns the images and the manifest's `trace`.
    """
    a = Assembler(config)
    C, R, V = config.cols, config.rows, sizes.vectors
    f, h = -(-sizes.features // C) * C, padded(sizes.hidden, config)
    j = -(-sizes.joint // np.lcm(R, C)) * int(np.lcm(R, C))
    n = -(-sizes.classes // R) * R
    hu, ju, fu = h // C, j // C, f // C
    cells, outs, trace = 4 * h // R, j // R * 4, []
    at = {"features": 0, "stack": V * fu, "post": V * fu + V * hu, "embed": 0, "pred": 0, "z": 0}
    at["embed"] = at["post"] + hu
    at["pred"] = at["embed"] + hu
    at["z"] = at["pred"] + hu

    def weights(rows: int, columns: int) -> Ints:
        return rng.integers(-127, 128, (rows, columns))

    def scaled(rows: int, columns: int) -> dict[str, int]:
        return {"scale_group": a.scale(*random_scales(rng, rows, columns))}

    def biased(rows: int) -> dict[str, int]:
        return {"bias_group": a.bias(rng.integers(-(1 << 22), 1 << 22, rows))}

    def made(section: str, layer: str, vector: int = 0) -> None:
        trace.append({"section": section, "instruction": len(a.code[section]), "vector": vector, "layer": layer})

    def scratch(unit: int) -> int:
        return operand(Space.SCRATCH, unit)

    source, slot = operand(Space.SOURCE, 0), operand(Space.DESTINATION, 0)
    everything = (1 << V) - 1
    cell = {"post": Post.CELL, "shift": 11, "qh": 7}
    # pre_rnn: x of all vectors, then h of each in turn; vector v > 0 only where the entry has it.
    a.matvec("encode", weights(4 * h, f), vectors_less_1=V - 1, first=everything, source=scratch(0), source_stride=fu,
             **scaled(4 * h, f), **biased(4 * h))  # fmt: skip
    w, scale = weights(4 * h, h), scaled(4 * h, h)
    tile = a.tiles(w)
    for v in range(V):
        made("encode", "encoder.pre_rnn.0", v)
        a.matvec("encode", w, tile=tile, last=1, source=source if v == 0 else slot, destination=slot, sum=v * cells,
                 second=scratch(at["stack"] + v * hu), cell=0, predicate=Predicate.MORE if v else Predicate.ALWAYS,
                 threshold=v, **cell, **scale)  # fmt: skip
    pad = a.embed(rng.integers(-127, 128, (1, h)))
    for v in range(1, V):
        a.lookup("encode", constant=1, unit=pad, units=hu, destination=scratch(at["stack"] + v * hu),
                 predicate=Predicate.AT_MOST, threshold=v)  # fmt: skip
    own = operand(Space.SOURCE, hu)
    a.matvec("encode", weights(4 * h, h), first=1, source=own, **scaled(4 * h, h), **biased(4 * h))
    made("encode", "encoder.post_rnn.0")
    a.matvec("encode", weights(4 * h, V * h), last=1, source=scratch(at["stack"]), cell=cells,
             destination=operand(Space.DESTINATION, hu), second=scratch(at["post"]), **cell,
             **scaled(4 * h, V * h))  # fmt: skip
    made("encode", "joint_enc")
    a.matvec("encode", weights(j, h), first=1, last=1, post=Post.I16, source=scratch(at["post"]), destination=0,
             **scaled(j, h), **biased(j))  # fmt: skip
    tokens = a.embed(rng.integers(-127, 128, (sizes.classes - 1, h)))
    a.lookup("predict", unit=tokens, units=hu, destination=scratch(at["embed"]))
    shared = {"sum": V * cells}  # sums that section encode does not use
    a.matvec("predict", weights(4 * h, h), first=1, source=source, **shared, **scaled(4 * h, h), **biased(4 * h))
    made("predict", "prediction.0")
    a.matvec("predict", weights(4 * h, h), last=1, source=scratch(at["embed"]), cell=0, destination=slot,
             second=scratch(at["pred"]), **shared, **cell, **scaled(4 * h, h))  # fmt: skip
    made("predict", "joint_pred")
    a.matvec("predict", weights(j, h), first=1, last=1, post=Post.I16, source=scratch(at["pred"]), destination=0,
             **scaled(j, h), **biased(j))  # fmt: skip
    made("joint", "joint")
    a.joint(cell_units=outs, destination=scratch(at["z"]), shift=6)
    made("joint", "logits")
    blank = np.zeros(n, np.int64)
    blank[sizes.classes - 1] = 2 << 22  # often enough the largest
    a.matvec("joint", weights(n, j), first=1, last=1, post=Post.LOGIT, source=scratch(at["z"]),
             bias_group=a.bias(rng.integers(-(1 << 22), 1 << 22, n) + blank), **scaled(n, j))  # fmt: skip
    images = a.build(
        feature_bytes=f, vectors=V, feature_unit=0, scratch_units=at["z"] + ju, enc_a_units=2 * hu,
        enc_c_units=2 * cells + 2 * outs, pred_a_units=hu, pred_c_units=cells + outs, joint_enc_unit=2 * cells,
        joint_enc_units=outs, joint_pred_unit=cells, joint_pred_units=outs, classes=sizes.classes,
        blank=sizes.classes - 1, logit_bits=11, sum_groups=(V + 1) * cells,
    )  # fmt: skip
    return images, trace
