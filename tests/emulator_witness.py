# SPDX-License-Identifier: Apache-2.0
"""The machine in plain numpy int64, one entry at a time, for the emulator's tests: slow, and short."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from emulator_program import SECTIONS, Images

from gharial.isa.configs import Config
from gharial.isa.instructions import NO_SECOND, RECORDS, Opcode, Post, Predicate, Space

I64 = npt.NDArray[np.int64]
FREE, LIVE, ENDED = range(3)


def rsr(v: I64, n: I64 | int) -> I64:
    """Rounding shift right, half up; negative n shifts left."""
    v, n = np.broadcast_arrays(np.asarray(v, np.int64), np.asarray(n, np.int64))
    right = np.maximum(n, 1)
    return np.where(n > 0, (v + (1 << (right - 1))) >> right, v << np.maximum(-n, 0))


def saturate(v: I64, bits: int) -> I64:
    """Clamp to a signed range."""
    return np.clip(v, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


@dataclass
class Slot:
    """A and C part of a slot."""

    a: I64
    c: I64
    flag: int = FREE


@dataclass
class Entry:
    """An entry's own memories, and its slots."""

    scratch: I64
    sums: I64
    logits: I64
    source: Slot
    destination: Slot
    encoder: Slot | None = None
    bank: int = 0
    vectors: int = 0
    token: int | None = None
    trace: list[tuple[str, int, I64]] = field(default_factory=list)


class Witness:
    """Runs sections of a program; slots are made as they are named."""

    def __init__(self, config: Config, images: Images) -> None:
        self.config, self.h = config, images.header
        code, weights, scales, biases, tables, embedding = images.spaces
        body = np.frombuffer(code, "<u4")[64:].reshape(-1, 8)
        self.sections = {n: body[self.h[f"{n}_first"] :][: self.h[f"{n}_count"]] for n in SECTIONS}
        self.weights = np.frombuffer(weights, np.int8).astype(np.int64).reshape(-1, config.rows, config.cols)
        words = np.frombuffer(scales, "<u4").astype(np.int64)
        self.m = words & 0x1FFFF
        self.k = (words >> 17 & 63) - ((words >> 22 & 1) << 6)
        self.biases = np.frombuffer(biases, "<i4").astype(np.int64)
        pairs = np.frombuffer(tables, "<i4").astype(np.int64).reshape(-1, 2)
        self.sigmoid, self.tanh, self.exp, self.log = np.split(pairs, [512, 1024, 1088])
        self.embedding = np.frombuffer(embedding, np.int8).astype(np.int64)
        self.encoder: dict[int, Slot] = {}
        self.prediction: dict[int, Slot] = {}

    def slot(self, side: str) -> Slot:
        """A new slot of zeros."""
        units, cells = self.h[f"{side}_a_units"], self.h[f"{side}_c_units"]
        return Slot(np.zeros(units * self.config.cols, np.int64), np.zeros(cells * self.config.cell_unit, np.int64))

    def entry(self, source: Slot, destination: Slot) -> Entry:
        """An entry about to run."""
        return Entry(
            np.zeros(self.h["scratch_units"] * self.config.cols, np.int64),
            np.zeros(self.h["sum_groups"] * self.config.rows, np.int64),
            np.zeros(self.h["classes"], np.int64),
            source,
            destination,
        )

    def function(self, table: I64, u: I64, complement: int) -> I64:
        """Sigmoid or tanh of arguments in Q3.15."""
        magnitude = np.minimum(np.abs(u), (1 << 18) - 1)
        base, slope = table[magnitude >> 9].T
        v = np.clip(rsr(base * 512 + slope * (magnitude & 511), 11), 0, 32767)
        return np.where(u >= 0, v, complement - v)

    def run(self, section: str, e: Entry) -> None:
        """All instructions of a section for one entry."""
        for index, words in enumerate(self.sections[section]):
            opcode = Opcode(int(words[0]) & 0xFF)
            i = RECORDS[opcode].unpack(words)
            if i["predicate"] == Predicate.MORE and e.vectors <= i["threshold"]:
                continue
            if i["predicate"] == Predicate.AT_MOST and e.vectors > i["threshold"]:
                continue
            {Opcode.MATVEC: self._matvec, Opcode.LOOKUP: self._lookup, Opcode.JOINT: self._joint}[opcode](
                section, index, i, e
            )

    def _at(self, e: Entry, field_value: int) -> tuple[I64, int]:
        memory = {Space.SCRATCH: e.scratch, Space.SOURCE: e.source.a, Space.DESTINATION: e.destination.a}
        return memory[Space(field_value >> 14)], (field_value & 0x3FFF) * self.config.cols

    def _write(self, e: Entry, field_value: int, stride: int, values: I64) -> None:
        memory, at = self._at(e, field_value)
        at += stride * self.config.cols
        assert at + len(values) <= len(memory)
        memory[at : at + len(values)] = values

    def _lookup(self, section: str, index: int, i: dict[str, int], e: Entry) -> None:
        size = i["units"] * self.config.cols
        row = 0 if i["constant"] else e.token
        values = np.zeros(size, np.int64)
        if row is not None:
            start = i["unit"] * self.config.cols + row * size
            values = self.embedding[start : start + size]
        self._write(e, i["destination"], 0, values)

    def _joint(self, section: str, index: int, i: dict[str, int], e: Entry) -> None:
        unit, count = self.config.cell_unit, i["cell_units"] * self.config.cell_unit
        first = (self.h["joint_enc_unit"] + e.bank * self.h["joint_enc_units"] + i["encoder"]) * unit
        second = (self.h["joint_pred_unit"] + i["prediction"]) * unit
        assert e.encoder is not None
        total = e.encoder.c[first : first + count] + e.destination.c[second : second + count]
        z = np.clip(rsr(total, i["shift"]), 0, 127)
        self._write(e, i["destination"], 0, z)
        e.trace.append((section, index, z))

    def _matvec(self, section: str, index: int, i: dict[str, int], e: Entry) -> None:
        R, C, n = self.config.rows, self.config.cols, i["row_groups"] * self.config.rows
        tiles = self.weights[i["tile"] : i["tile"] + i["row_groups"] * i["col_tiles"]]
        matrix = tiles.reshape(i["row_groups"], i["col_tiles"], R, C).transpose(0, 2, 1, 3).reshape(n, -1)
        rows = slice(i["scale_group"] * R, i["scale_group"] * R + n)
        for v in range(i["vectors_less_1"] + 1):
            memory, at = self._at(e, i["source"])
            at += v * i["source_stride"] * C
            x = memory[at : at + i["col_tiles"] * C]
            assert len(x) == i["col_tiles"] * C
            a = saturate(rsr(matrix @ x, self.k[rows]), 18)
            t = rsr(a * self.m[rows], 7)
            kept = slice(i["sum"] * R + v * n, i["sum"] * R + v * n + n)
            first, last = i["first"] >> v & 1, i["last"] >> v & 1
            s = t + (self.biases[i["bias_group"] * R :][:n] if first else e.sums[kept])
            if last:
                self._finish(section, index, i, e, v, saturate(rsr(s, 10), 16))
            else:
                e.sums[kept] = s

    def _finish(self, section: str, index: int, i: dict[str, int], e: Entry, v: int, y: I64) -> None:
        cells = e.destination.c
        match i["post"]:
            case Post.CELL:
                n = len(y) // 4
                at = i["cell"] * self.config.cell_unit
                yi, yf, yg, yo = 8 * y.reshape(n, 4).T
                qc, old = i["shift"], e.source.c[at : at + n]
                gate_i, gate_f = self.function(self.sigmoid, yi, 32768), self.function(self.sigmoid, yf, 32768)
                gate_g, gate_o = self.function(self.tanh, yg, 0), self.function(self.sigmoid, yo, 32768)
                c = saturate(rsr(gate_f * old * (1 << (15 - qc)) + gate_i * gate_g, 30 - qc), 16)
                u = np.clip(c << (15 - qc), -((1 << 18) - 1), (1 << 18) - 1)
                h = np.clip(rsr(gate_o * self.function(self.tanh, u, 0), 30 - i["qh"]), -127, 127)
                cells[at : at + n] = c
                self._write(e, i["destination"], v * i["destination_stride"], h)
                if i["second"] != NO_SECOND:
                    self._write(e, i["second"], v * i["destination_stride"], h)
                e.trace += [(section, index, y.reshape(n, 4)), (section, index, c), (section, index, h)]
                return
            case Post.I16:
                base = self.h["joint_pred_unit"]
                if section == "encode":
                    base = self.h["joint_enc_unit"] + e.bank * self.h["joint_enc_units"]
                at = (base + i["destination"] + v * i["destination_stride"]) * self.config.cell_unit
                cells[at : at + len(y)] = y
            case Post.I8:
                low, high = -127 if i["second"] >> 7 & 1 else 0, i["second"] & 127
                y = np.minimum(high, np.maximum(low, rsr(y, i["shift"])))
                self._write(e, i["destination"], v * i["destination_stride"], y)
            case Post.LOGIT:
                e.logits[: len(y)] = y[: self.h["classes"]]
            case _:
                return
        e.trace.append((section, index, y))

    def encode(self, slot: int, features: I64, reset: bool, bank: int) -> Entry:
        """An encode entry; features int8 (vectors, bytes)."""
        if reset:
            self.encoder[slot] = self.slot("enc")
            self.encoder[slot].flag = LIVE
        state = self.encoder[slot]
        e = self.entry(state, state)
        e.encoder, e.bank, e.vectors = state, bank, len(features)
        at = self.h["feature_unit"] * self.config.cols
        e.scratch[at : at + features.size] = features.ravel()
        self.run("encode", e)
        if len(features) < self.h["vectors"]:
            state.flag = ENDED
        return e

    def predict(self, source: int | None, destination: int, token: int | None) -> Entry:
        """A prediction step; no source: the start of a sequence."""
        before = self.slot("pred") if source is None else self.prediction[source]
        after = before if source == destination else self.prediction.get(destination, self.slot("pred"))
        self.prediction[destination] = after
        after.flag = LIVE
        e = self.entry(before, after)
        e.token = token
        self.run("predict", e)
        return e

    def joint(self, encoder: int, bank: int, prediction: int, before: Entry | None = None) -> Entry:
        """A joint evaluation; its logits are in the entry. Scratch and sums are those of the step before, if given."""
        state = self.prediction[prediction]
        e = self.entry(state, state)
        if before is not None:
            e.scratch, e.sums = before.scratch, before.sums
        e.encoder, e.bank = self.encoder[encoder], bank
        self.run("joint", e)
        return e

    def log_sum_exp(self, logits: I64, temperature: int) -> int:
        """docs/numerics.md, section 8."""
        e, most = self.h["logit_bits"], int(logits.max())
        q = rsr(rsr((most - logits) * temperature, e + 2) * 47274, 15)
        n, g = q >> 12, q & 63
        base, slope = self.exp[(q & 4095) >> 6].T
        total = int(np.where(n < 25, 2 * (base * 64 + slope * g) >> np.minimum(n, 40), 0).sum())
        b = total.bit_length() - 1
        z = (total << 16 >> b) - 65536
        w = int(rsr(self.log[z >> 10, 0] * 1024 + self.log[z >> 10, 1] * (z & 1023), 11))
        return int(rsr(most * temperature, e - 2) + rsr(((b - 24) * 65536 + w) * 45426, 16))


def top_k(logits: I64, k: int, among: list[int] | None = None) -> list[int]:
    """Classes of the largest logits, ties by class."""
    classes = range(len(logits)) if among is None else among
    return sorted(classes, key=lambda j: (-int(logits[j]), j))[:k]


def fuzzy(logits: I64) -> tuple[I64, list[int]]:
    """Logits with what does not survive replaced, and the survivors."""
    blocks = logits.reshape(-1, 8, 32)
    deep = blocks.argmax(axis=1)
    survivors = sorted(256 * b + 32 * int(deep[b, lane]) + lane for b in range(len(blocks)) for lane in range(32))
    replaced = np.full_like(logits, logits[survivors].min())
    replaced[survivors] = logits[survivors]
    return replaced, survivors
