# SPDX-License-Identifier: Apache-2.0
"""What has to be seen before the accelerator counts as tried: the groups and their bins (docs/verification.md)."""

from __future__ import annotations

from collections.abc import Iterable

from gharial.isa import _registers as reg
from gharial.isa.commands import Operation
from gharial.isa.faults import Fault
from sim.uvm.coverage.group import CoverGroup

OPERATIONS = [operation.name for operation in Operation]
STREAMS = ["ENCODE", "DECODE", "GREEDY"]
SLOTS = ["RESET", "FREE", "COPY", "SAVE", "RESTORE"]
REMAINDERS = ["whole", "one over", "between", "one short"]
COUNTERS = ["active", "dependency", "backpressure", "loading", "idle"]
HEADER_WORDS = [0, 1, 2, *range(4, 10), *range(10, 22), 63]


def crossed(*axes: Iterable[object]) -> list[str]:
    """Bins of every combination."""
    out = [""]
    for axis in axes:
        values = [str(value) for value in axis]
        out = [f"{head}, {value}" if head else value for head in out for value in values]
    return out


def groups() -> dict[str, CoverGroup]:
    """New groups, by name."""
    stacks = [f"{vectors} of {stack}" for stack in range(1, 5) for vectors in range(1, stack + 1)]
    found = [
        CoverGroup("commands", "operation, and how it ended", [
            *crossed(OPERATIONS, ["done", "refused"]), "unknown, refused",
        ]),
        CoverGroup("flags", "operation, and a flag of its descriptor", [
            *crossed([*STREAMS, *SLOTS], ["unchecked", "checked"]), *crossed(SLOTS, ["encoder", "prediction"]),
            "interrupt", "no interrupt",
        ]),
        CoverGroup("batches", "operation, and how many entries it had", [
            *crossed(STREAMS, ["0", "1", "2", "3 to 7", "8 and more"]), *crossed(SLOTS, ["0", "1", "2 and more"]),
            "DECODE, all that fit",
        ]),
        CoverGroup("succession", "operations that were on their way together, the older first",
                   crossed([*STREAMS, "slots"], [*STREAMS, "slots"])),
        CoverGroup("encoding", "vectors of an entry, of those of a full step", stacks),
        CoverGroup("entry flags", "reset and bank of encode and greedy entries",
                   crossed(["ENCODE", "GREEDY"], ["reset", "goes on"], ["bank 0", "bank 1"])),
        CoverGroup("decode kinds", "kind of entry, with and without joint, and its slots", [
            *crossed(["none", "token", "start"], ["joint", "no joint"]),
            "in place", "from another slot", "two from one slot", "bank 0", "bank 1",
        ]),
        CoverGroup("results", "what a decode entry's result lists, and at what temperature", [
            "top 1", "top few", "top all", "top 33", "all, even", "all, odd", *crossed(["named"], range(5)),
            "T 0", "T 1", "T other", "T most",
        ]),
        CoverGroup("greedy", "how a greedy step ended", [
            "no token", "one token", "several tokens", "capped", "capped at one",
        ]),
        CoverGroup("slots", "what a slot was used for after what", [
            "goes on after a step", "begun anew while live", "begun anew after its end", "decoded after its end",
            "copied after its end", "used after its fault", "used while copied", "copied to itself",
            "saved and restored", "restored over a live one", "freed and refused",
        ]),
        CoverGroup("limits", "numbers at the ends of their range, as they were written to the memory",
                   crossed(["logit", "h", "c"], ["least", "most"])),
        CoverGroup("sizes, rows", "units of a layer beyond whole row groups (LSTM: four rows each)",
                   crossed(["lstm", "joint", "logits"], REMAINDERS)),
        CoverGroup("sizes, columns", "inputs of a product beyond whole tiles",
                   crossed(["features", "h", "joint"], REMAINDERS)),
        CoverGroup("layers", "LSTM layers of each part of the network",
                   [*crossed(["pre", "post"], [1, 2, 3]), *crossed(["prediction"], [1, 2])]),
        CoverGroup("instructions", "what the sequencer handed out", [
            *crossed(["encode", "decode"], ["sums", "CELL", "I16"]), "decode, LOGIT", "CELL with a second destination",
            "token", "start", "pad", "joint",
        ]),
        CoverGroup("products", "row groups and column tiles of a product",
                   crossed(["1 row group", "2 row groups", "more row groups"], ["1 tile", "2 tiles", "more tiles"])),
        CoverGroup("vectors", "vectors that share a product's weights", [*crossed(["product of"], [1, 2, 3, 4])]),
        CoverGroup("parts", "order in which the parts of a layer were summed up",
                   ["x alone", "x, then h", "h, then x", "h, then several x"]),
        CoverGroup("threads", "whose job followed whose", crossed(["encode", "decode"], ["encode", "decode"])),
        CoverGroup("pace", "steps of a product: a job takes 16 clocks at least", ["shorter than 16 clocks", "longer"]),
        CoverGroup("stalls", "counters that counted, and the accelerator held back by its ring", [
            *crossed(["clocks"], COUNTERS), "completion ring full",
        ]),
        CoverGroup("bus", "what happened on the AXI4 port", [
            "read waits", "gap in a burst", "one word", "some words", "a full burst", "up to a border of 4 KiB",
            "address first", "word first", "address and word together", "8 writes on their way",
        ]),
        CoverGroup("rings", "the rings' state at a fetch or completion", [
            "commands wrapped", "completions wrapped", "one entry", "several entries", "fetched ahead: 0",
            "fetched ahead: 1", "fetched ahead: 2 and more",
        ]),
        CoverGroup("interrupts", "what IRQ_STATUS was seen to hold", [
            "completion", "completion of one that failed", "halt",
        ]),
        CoverGroup("registers", "registers that were read or written", [
            *crossed(["read"], [r.name for r in reg.REGISTERS if r.access != "wo"]),
            *crossed(["written"], [r.name for r in reg.REGISTERS if r.access != "ro"]),
        ]),
        CoverGroup("faults", "faults that were reported", [f.name for f in Fault if f != Fault.NONE]),
        CoverGroup("fault sites", "where a fault was", [
            *crossed(["CHECKSUM"], ["descriptor", "entries", "features", "chunk"]),
            *crossed(["ADDRESS"], ["entries", "features", "results", "chunk", "instruction"]),
            *crossed(["BUS_READ"], ["descriptor", "entries", "features", "chunk", "image"]),
            *crossed(["BUS_WRITE"], ["result", "image", "completion"]),
            *crossed(["BAD_OPCODE"], ["encode", "predict", "joint"]),
            *crossed(["BAD_COMMAND word"], [0, 6, 7, 8, 9, 12, 13]),
            *crossed(["BAD_ENTRY word"], [0, 1, 2, 3]),
            *crossed(["BAD_PROGRAM word"], HEADER_WORDS),
            *crossed(["BAD_SLOT"], ["beyond", "free", "ended"]),
            *crossed(["HAZARD"], ["encoder", "written twice", "read after written", "written after read"]),
        ]),
        CoverGroup("recovery", "what a soft reset came upon", [
            "nothing", "commands on their way", *crossed(["halt by"], [f.name for f in Fault if f.halts]),
        ]),
    ]  # fmt: skip
    return {group.name: group for group in found}
