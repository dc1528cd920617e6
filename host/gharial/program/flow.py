# SPDX-License-Identifier: Apache-2.0
"""What each unit of memory means while a transducer's section runs, so that every product reads what its layer takes.

The layers' names say what feeds what (docs/program.md), and their sizes where each lies in a slot. A value is named by
(layer or input, feature vector of the step, unit); the section is gone through with names in place of numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NoReturn

from gharial.errors import BadInput
from gharial.isa.instructions import NO_SECOND, Opcode, Post, Space
from gharial.program.code import Instruction, place
from gharial.program.products import Piece
from gharial.program.program import Program

Value = tuple[str, int, int]

PRE, POST, PREDICTION = "encoder.pre_rnn.", "encoder.post_rnn.", "prediction."
OLD = "old "  # before a layer's name: its h before the command
FEATURES, TOKEN, PAD, JOINT = "features", "token", "pad", "joint"


class Transducer:
    """The network that a manifest's layers name: what feeds what, and where state lies.

    Attributes:
        encoder, prediction: names of the LSTM layers, in order.
        stacked: the product that takes the stacked outputs of pre_rnn: encoder.post_rnn.0, or joint_enc without it.
        inputs: of each product but that one, what its x is.
        h, c: first unit of each LSTM layer's h and c in its slot.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        layers, config = program.layers, program.config
        self.pre = [name for name in layers if name.startswith(PRE)]
        self.post = [name for name in layers if name.startswith(POST)]
        self.encoder = self.pre + self.post
        self.prediction = [name for name in layers if name.startswith(PREDICTION)]
        self.inputs: dict[str, str] = {"logits": JOINT}
        self.stacked = [*self.post, "joint_enc"][0]
        for group, first in ((self.pre, FEATURES), (self.prediction, TOKEN)):
            self.inputs |= dict(zip(group, [first, *group[:-1]], strict=True))
        self.inputs |= dict(pairwise([*self.post, "joint_enc"][::-1]))
        self.inputs["joint_pred"] = self.prediction[-1]
        self.h: dict[str, int] = {}
        self.c: dict[str, int] = {}
        for names in (self.encoder, self.prediction):
            a = c = 0
            for name in names:
                self.h[name], self.c[name] = a, c
                a += layers[name]["padded"] // config.cols
                c += layers[name]["padded"] // config.cell_unit

    @staticmethod
    def describes(program: Program) -> bool:
        """Whether the layers are those of a transducer, all of them and no others, in the machine's order."""
        names = list(program.layers)
        expected: list[str] = []
        for prefix in (PRE, POST):
            expected += _numbered(prefix, names)
        expected += ["joint_enc", *_numbered(PREDICTION, names), "joint_pred", "joint", "logits"]
        counts = [len(_numbered(prefix, names)) for prefix in (PRE, PREDICTION)]
        return names == expected and min(counts) > 0

    def check_slots(self) -> None:
        """Raise BadInput unless the header gives slots the layout of docs/program.md."""
        layers, config, header = self.program.layers, self.program.config, self.program.header
        joint = layers["joint"]["padded"] // config.cell_unit
        encoder = sum(layers[name]["padded"] for name in self.encoder)
        prediction = sum(layers[name]["padded"] for name in self.prediction)
        expected = {
            "enc_a_units": encoder // config.cols,
            "enc_c_units": encoder // config.cell_unit + 2 * joint,
            "joint_enc_unit": encoder // config.cell_unit,
            "joint_enc_units": joint,
            "pred_a_units": prediction // config.cols,
            "pred_c_units": prediction // config.cell_unit + joint,
            "joint_pred_unit": prediction // config.cell_unit,
            "joint_pred_units": joint,
        }
        for name, value in expected.items():
            if header[name] != value:
                where = f"{self.program.where}: header, {name}"
                raise BadInput("slots are not laid out in the order of the layers", where, header[name], value)


def _numbered(prefix: str, names: list[str]) -> list[str]:
    count = sum(name.startswith(prefix) for name in names)
    return [f"{prefix}{index}" for index in range(count)]


class Flow:
    """Follows one section for entries of one number of feature vectors.

    Args:
        network: the transducer.
        section: "predict", "encode" or "joint".
        vectors: feature vectors of the entry.
    """

    def __init__(self, network: Transducer, section: str, vectors: int) -> None:
        self.network, self.section, self.vectors = network, section, vectors
        program = network.program
        self.program, self.config, self.header = program, program.config, program.header
        self.scratch: list[Value | None] = [None] * self.header["scratch_units"]
        self.names = {"encode": network.encoder, "predict": network.prediction, "joint": []}[section]
        self.state: list[Value | None] = [(OLD + name, 0, u) for name in self.names for u in range(self._h_units(name))]
        self.new: list[Value | None] = [None] * len(self.state)
        self.cell_steps = {name: [-1] * self._cell_units(name) for name in self.names}
        # sum group: feature vector of the step that its product is for; None if the entry has no such vector
        self.sums: dict[int, int | None] = {}
        if section == "encode":
            units = self.header["feature_bytes"] // self.config.cols
            for v in range(vectors):
                at = self.header["feature_unit"] + v * units
                self.scratch[at : at + units] = [(FEATURES, v, u) for u in range(units)]
        self._now: Instruction | None = None

    def _h_units(self, name: str) -> int:
        return int(self.program.layers[name]["padded"]) // self.config.cols

    def _cell_units(self, name: str) -> int:
        return int(self.program.layers[name]["padded"]) // self.config.cell_unit

    def step(self, instruction: Instruction, piece: Piece | None) -> None:
        """The next instruction that has an effect for the entry; `piece` is a MATVEC's part.

        Raises:
            BadInput: it reads or writes something else than its layer does; it is named.
        """
        self._now = instruction
        if instruction.opcode == Opcode.LOOKUP:
            self._lookup(instruction)
        elif instruction.opcode == Opcode.JOINT:
            self._joint(instruction)
        else:
            assert piece is not None
            self._matvec(instruction, piece)

    def finish(self) -> None:
        """Raise BadInput unless the state is that of the next step: a full one, as a short one ends the slot."""
        if self.section == "encode" and self.vectors < self.header["vectors"]:
            return
        for name in self.names:
            last = self.vectors - 1 if name in self.network.pre else 0
            start, count = self.network.h[name], self._h_units(name)
            where = f"{self.program.where}: section {self.section}"
            if self.new[start : start + count] != [(name, last, u) for u in range(count)]:
                raise BadInput(f"the new h of {name} is not where the old one was", where)
            if set(self.cell_steps[name]) != {last}:
                raise BadInput(f"not all cells of {name} are renewed", where)

    def _fail(self, what: str, found: object = None, expected: object = None) -> NoReturn:
        assert self._now is not None
        raise BadInput(what, f"{self.program.where}: {self._now.name}", found, expected)

    def _read(self, operand: int, offset: int, count: int) -> list[Value | None]:
        space, start = place(operand)
        memories = {Space.SCRATCH: self.scratch, Space.SOURCE: self.state, Space.DESTINATION: self.new}
        return memories[Space(space)][start + offset : start + offset + count]

    def _write(self, operand: int, offset: int, values: list[Value]) -> None:
        space, start = place(operand)
        memory = self.scratch if space == Space.SCRATCH else self.new
        memory[start + offset : start + offset + len(values)] = values

    def _lookup(self, f: Instruction) -> None:
        pad = self.program.manifest["pad"]
        if f["constant"]:
            name, start, most = PAD, pad["embedding_unit"], pad["bytes"] // self.config.cols
        else:
            first = self.program.layers[self.network.prediction[0]]["parts"]
            width = sum(part["padded"] for part in first if part["input"] == "x")
            name, start, most = TOKEN, 0, width // self.config.cols
            if f["units"] * self.header["tokens"] > pad["embedding_unit"]:
                self._fail("the tokens' rows reach into the pad", f["units"] * self.header["tokens"], start)
        if f["unit"] != start or f["units"] != most:
            self._fail(
                f"LOOKUP of something else than the {name}", f"{f['units']} from {f['unit']}", f"{most} from {start}"
            )
        self._write(f["destination"], 0, [(name, 0, u) for u in range(most)])

    def _joint(self, f: Instruction) -> None:
        if f["encoder"] or f["prediction"]:
            self._fail("JOINT does not begin with the first units", f"{f['encoder']}, {f['prediction']}", "0, 0")
        count = f["cell_units"] * self.config.cell_unit // self.config.cols
        self._write(f["destination"], 0, [(JOINT, 0, u) for u in range(count)])

    def _matvec(self, f: Instruction, piece: Piece) -> None:
        layer = self.program.layers[piece.layer]
        home = {"joint_enc": "encode", "joint_pred": "predict", "logits": "joint"}
        belongs = home.get(piece.layer, "encode" if piece.layer in self.network.encoder else "predict")
        if belongs != self.section:
            self._fail(f"{piece.layer} belongs to section {belongs}")
        groups = f["row_groups"]
        for v in range(f.vectors):
            values = self._read(f["source"], v * f["source_stride"], f["col_tiles"])
            known = [value for value in values if value is not None]
            vector = self._vector(piece, layer["parts"][piece.part], known) if len(known) == len(values) else None
            for group in range(f["sum"] + v * groups, f["sum"] + (v + 1) * groups):
                if not f.has("first", v) and self.sums.get(group) != vector:
                    if vector is None or self.sums.get(group) is None:
                        self._fail("a product that is in part for a feature vector that the entry does not have")
                    self._fail("adds to sums of another feature vector", vector, self.sums[group])
                if not (f.has("first", v) and f.has("last", v)):
                    self.sums[group] = vector
            if f.has("last", v):
                if vector is None:
                    self._fail("ends a product for a feature vector that the entry does not have")
                self._post(f, piece, v, vector)

    def _vector(self, piece: Piece, part: dict[str, Any], values: list[Value]) -> int:
        """Feature vector of the step that the product is for; what it reads must be its layer's input."""
        name, count = piece.layer, len(values)
        first = values[0]
        recurs = name in self.network.pre
        if part["input"] == "h":
            vector = first[1] + 1 if recurs and first[0] == name else 0
            source = name if vector else OLD + name
            expected = [(source, max(vector - 1, 0), u) for u in range(count)]
        elif name == self.network.stacked:
            vector, expected = 0, self._stacked(part, count)
        else:
            vector = first[1] if recurs else 0
            start = self._whole(part["column"])
            expected = [(self.network.inputs[name], vector, start + u) for u in range(count)]
        if values != expected:
            at = next(i for i, pair in enumerate(zip(values, expected, strict=True)) if pair[0] != pair[1])
            self._fail(f"{name} reads something else than its {part['input']}", _text(values[at]), _text(expected[at]))
        return vector

    def _stacked(self, part: dict[str, Any], count: int) -> list[Value]:
        """The outputs of the last layer before time is stacked, end to end; the pad for vectors that are missing."""
        below = self.network.pre[-1]
        units = int(self.program.layers[below]["units"])
        expected: list[Value] = []
        for u in range(count):
            column = part["column"] + u * self.config.cols
            # Padding belongs to the vector before it; a part over several vectors is one without padding.
            inside = part["columns"] <= units - part["column"] % units
            vector = part["column"] // units if inside else column // units
            unit = self._whole(column - vector * units)
            expected.append((below, vector, unit) if vector < self.vectors else (PAD, 0, unit))
        return expected

    def _whole(self, column: int) -> int:
        if column % self.config.cols:
            self._fail("a part begins within an activation unit", column, f"a multiple of {self.config.cols}")
        return column // self.config.cols

    def _post(self, f: Instruction, piece: Piece, v: int, vector: int) -> None:
        name, post, groups = piece.layer, f["post"], f["row_groups"]
        expected = {"joint_enc": Post.I16, "joint_pred": Post.I16, "logits": Post.LOGIT}.get(name, Post.CELL)
        if post != expected:
            self._fail(f"post-operation of {name}", Post(post).name, expected.name)
        if post == Post.I16:
            if f["destination"] + v * f["destination_stride"] != 4 * piece.group:
                self._fail(f"output of {name} at another place", f["destination"], 4 * piece.group)
        elif post == Post.LOGIT:
            if piece.group:
                self._fail("logits of later rows only", piece.group, 0)
        else:
            units = self.config.cell_unit
            start, count = self._whole(piece.group * units), groups * units // self.config.cols
            values = [(name, vector, start + u) for u in range(count)]
            self._write(f["destination"], v * f["destination_stride"], values)
            if f["second"] != NO_SECOND:
                self._write(f["second"], 0, values)
            if f["cell"] != self.network.c[name] + piece.group:
                self._fail(f"cells of {name} elsewhere", f["cell"], self.network.c[name] + piece.group)
            steps = self.cell_steps[name]
            for group in range(piece.group, piece.group + groups):
                if steps[group] != vector - 1:
                    self._fail(f"cells of {name} out of order", f"after vector {steps[group]}", f"after {vector - 1}")
                steps[group] = vector


def _text(value: Value) -> str:
    name, vector, unit = value
    return f"{name}, unit {unit}" + (f" of vector {vector}" if name == FEATURES or name.startswith(PRE) else "")
