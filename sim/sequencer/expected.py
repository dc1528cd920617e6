# SPDX-License-Identifier: Apache-2.0
"""Entries for the sequencer, and all that each must come to: runs, scans, result words, its end (docs/isa.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gharial.isa.faults import Unit
from sim.sequencer.program import ADDRESS, D, E, Program, Run

NOP, ENCODE, DECODE, GREEDY = 1, 16, 17, 18
TOP_K, FUZZY, ALL = 0, 1, 2
PLACES = 33


@dataclass(eq=False)
class Joint:
    """What the top-k unit says of one joint evaluation."""

    best: int
    logit: int
    lse: int
    ranks: list[tuple[int, int]]  # class, logit
    logits: list[int]


@dataclass(eq=False)
class Scan:
    """A scan that must be asked for."""

    joint: Joint
    rank: int
    fuzzy: int
    temperature: int


@dataclass(eq=False)
class Expected:
    """An entry, and what must come of it.

    Attributes:
        fields: of `entry_t`.
        zeros: slots that are zeroed, (thread, first activation unit, first cell unit).
        runs: in order, section encode first.
        joints: of each run of section joint.
        scans, results: in order.
        tokens: emitted.
        done: of `entry_done_t`; the counts of an entry that fails are nobody's business.
    """

    fields: dict[str, int]
    zeros: list[tuple[int, int, int]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    results: list[tuple[int, int]] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    tokens: int = 0

    @property
    def encodes(self) -> bool:
        """Whether it runs section encode."""
        return not self.fields["fault"] and self.fields["operation"] in (ENCODE, GREEDY)

    @property
    def reads_bank(self) -> bool:
        """Whether it reads joint_enc."""
        f = self.fields
        return not f["fault"] and f["operation"] in (DECODE, GREEDY) and not f["no_joint"]


def draw(rng: np.random.Generator, number: int) -> dict[str, int]:
    """A random entry on a few slots, at a result address of its own."""
    f = {"index": int(rng.integers(1 << 16)), "last": int(rng.integers(2)), "result": 0x1_2000_0000 + number * 4096}
    f |= {"fault": 0, "unit": 0, "detail": 0}
    f["operation"] = int(rng.choice([NOP, ENCODE, DECODE, GREEDY], p=[0.1, 0.25, 0.35, 0.3]))
    if rng.random() < 0.05:
        f |= {"fault": int(rng.integers(1, 14)), "unit": int(rng.integers(1, 8)), "detail": int(rng.integers(1 << 32))}
    slot, source, target = (int(n) for n in rng.integers(0, 3, 3))
    f |= {"scratch_bank": 0, "vectors": int(rng.integers(1, 5)), "enc_reset": int(rng.random() < 0.3)}
    f |= {"enc_act": 1024 + 300 * slot, "enc_cell": 300 * slot, "bank": int(rng.integers(2))}
    for name, n in (("source", source), ("destination", target)):
        f |= {f"{name}_act": 3000 + 300 * n, f"{name}_cell": 2000 + 300 * n}
    f |= {"start": 0, "token_valid": 0, "token": int(rng.integers(40)), "no_joint": 0}
    if f["operation"] == DECODE:
        kind = rng.choice(["none", "token", "start"])
        f |= {"start": int(kind == "start"), "token_valid": int(kind == "token"), "no_joint": int(rng.random() < 0.2)}
        if kind == "none":
            f |= {"source_act": f["destination_act"], "source_cell": f["destination_cell"]}
    if f["operation"] == GREEDY:
        f |= {"start": f["enc_reset"]}
    f |= {"k": int(rng.integers(1, 5 if f["operation"] == GREEDY else PLACES + 1))}
    f |= {"mode": int(rng.choice([TOP_K, FUZZY, ALL])), "named": int(rng.integers(5))}
    f |= {"named_class": int.from_bytes(rng.integers(0, 36, 4).astype("<u2").tobytes(), "little")}
    return f | {"temperature": int(rng.integers(1 << 16))}


class Script:
    """Draws what the top-k unit says, and works out what an entry comes to."""

    def __init__(self, rng: np.random.Generator, program: Program) -> None:
        self.rng, self.program = rng, program
        self.bank = 0  # of scratch, by turns

    def expect(self, number: int, f: dict[str, int]) -> Expected:
        """All of an entry; its scratch bank is set."""
        e = Expected(f)
        end = {"last": f["last"], "index": f["index"], "fault": f["fault"], "unit": f["unit"], "detail": f["detail"]}
        if e.encodes:
            f["scratch_bank"] = self.bank
            self.bank ^= 1
            if f["enc_reset"]:
                e.zeros.append((E, f["enc_act"], f["enc_cell"]))
            e.runs.append(self._encode(number, f))
        for run in self._decode(number, e) if not e.runs or not e.runs[0].fault else ():
            e.runs.append(run)
        failed = next((run for run in e.runs if run.fault), None)
        if failed is not None:
            end |= {"fault": failed.fault, "unit": Unit.SEQUENCER, "detail": failed.detail}
        elif not f["fault"]:
            predictions = sum(run.section == "predict" for run in e.runs)
            end |= {"predictions": predictions, "joints": len(e.joints)}
            if f["operation"] == GREEDY:
                capped = e.tokens == f["k"]
                e.results += [(f["result"], e.tokens | capped << 16), (f["result"] + 4, len(e.joints))]
        e.done = end
        return e

    def _encode(self, number: int, f: dict[str, int]) -> Run:
        h = self.program.header
        bank = h["joint_enc_unit"] + f["bank"] * h["joint_enc_units"]
        context = {"scratch": f["scratch_bank"] * self.program.scratch, "vectors": f["vectors"], "zero": 0, "token": 0}
        for end in ("source", "destination"):
            context |= {f"{end}_act": f["enc_act"], f"{end}_cell": f["enc_cell"]}
        return self.program.run(E, number, "encode", context | {"i16_cell": f["enc_cell"] + bank})

    def _decode(self, number: int, e: Expected) -> Iterator[Run]:
        f, h = e.fields, self.program.header
        if f["fault"] or f["operation"] not in (DECODE, GREEDY):
            return
        greedy, start, token = f["operation"] == GREEDY, f["start"], f["token"]
        in_place = greedy or start
        context = {"scratch": 0, "vectors": 0, "i16_cell": f["destination_cell"] + h["joint_pred_unit"]}
        context["joint_enc"] = f["enc_cell"] + h["joint_enc_unit"] + f["bank"] * h["joint_enc_units"]
        for part in ("act", "cell"):
            context[f"source_{part}"] = f[f"{'destination' if in_place else 'source'}_{part}"]
            context[f"destination_{part}"] = f[f"destination_{part}"]
        context = {name: value % ADDRESS for name, value in context.items()}

        def run(section: str, zero: int = 0) -> Run:
            return self.program.run(D, number, section, context | {"zero": zero, "token": token})

        if start:
            e.zeros.append((D, f["destination_act"], f["destination_cell"]))
        if start or f["token_valid"]:
            found = run("predict", start)
            yield found
            if found.fault:
                return
        if f["no_joint"]:
            return
        while True:
            found = run("joint")
            yield found
            if found.fault:
                return
            joint = self._joint()
            e.joints.append(joint)
            if not greedy:
                e.scans.append(Scan(joint, int(f["mode"] != ALL), int(f["mode"] == FUZZY), f["temperature"]))
                e.results += self._result(f, joint)
                return
            if joint.best == h["blank"]:
                return
            e.tokens += 1
            e.scans.append(Scan(joint, 0, 0, f["temperature"]))
            at = f["result"] + 8 * e.tokens
            e.results += [(at, joint.best << 16 | joint.logit & 0xFFFF), (at + 4, joint.lse & 0xFFFFFFFF)]
            token = joint.best
            found = run("predict")
            yield found
            if found.fault or e.tokens == f["k"]:
                return

    def _joint(self) -> Joint:
        rng, h = self.rng, self.program.header
        best = h["blank"] if rng.random() < 0.4 else int(rng.integers(h["classes"]))
        logits = [int(n) for n in rng.integers(-(1 << 15), 1 << 15, h["classes"])]
        ranks = [(int(c), int(n)) for c, n in rng.integers(-(1 << 15), 1 << 15, (PLACES, 2))]
        return Joint(
            best, int(rng.integers(-(1 << 15), 1 << 15)), int(rng.integers(-(1 << 31), 1 << 31)), ranks, logits
        )

    def _result(self, f: dict[str, int], joint: Joint) -> list[tuple[int, int]]:
        classes = self.program.header["classes"]
        named = [f["named_class"] >> 16 * n & 0xFFFF for n in range(4)]
        halves = [joint.logits[c] & 0xFFFF if n < f["named"] else 0 for n, c in enumerate(named)]
        words = [joint.lse & 0xFFFFFFFF, halves[0] | halves[1] << 16, halves[2] | halves[3] << 16]
        words.append(classes if f["mode"] == ALL else f["k"])
        if f["mode"] == ALL:
            all_logits = [n & 0xFFFF for n in joint.logits] + [0] * (classes % 2)
            words += [low | high << 16 for low, high in zip(all_logits[::2], all_logits[1::2], strict=True)]
        else:
            words += [(c & 0xFFFF) << 16 | n & 0xFFFF for c, n in joint.ranks[: f["k"]]]
        return [(f["result"] + 4 * n, word) for n, word in enumerate(words)]
