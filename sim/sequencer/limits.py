# SPDX-License-Identifier: Apache-2.0
"""How large an operand of an instruction may be (docs/isa.md, section 4)."""

from __future__ import annotations

from collections.abc import Iterator

from gharial.isa.instructions import NO_SECOND, Opcode, Post, Space


def largest(header: dict[str, int], rows: int, cols: int, section: str, f: dict[str, int]) -> dict[str, int]:
    """The largest value of each field that is checked: one more and the operand ends outside its space.

    Args:
        header: of the program, its spaces in the units of instructions.
        rows, cols: of the configuration.
        section: of the instruction.
        f: its fields.
    """
    side = "enc" if section == "encode" else "pred"

    def act(field: str, units: int) -> tuple[str, int]:
        space = f[field] >> 14
        limit = header["scratch_units"] if space == Space.SCRATCH else header[f"{side}_a_units"]
        return field, space << 14 | limit - units

    def units_of(cell_units: int) -> int:
        return -(-cell_units * (rows // 4) // cols)

    def matvec() -> Iterator[tuple[str, int]]:
        groups, more, last = f["row_groups"], f["vectors_less_1"], f["last"]
        yield "tile", header["tiles"] - groups * f["col_tiles"]
        yield "scale_group", header["scale_groups"] - groups
        yield act("source", f["col_tiles"] + more * f["source_stride"])
        if f["first"]:
            yield "bias_group", header["bias_groups"] - groups
        kept = ((2 << more) - 1) & ~(f["first"] & last)
        if kept:
            yield "sum", header["sum_groups"] - groups * kept.bit_length()
        far = more * f["destination_stride"]
        if last and f["post"] == Post.CELL:
            yield "cell", header[f"{side}_c_units"] - groups
            yield act("destination", units_of(groups) + far)
            if f["second"] != NO_SECOND:
                yield act("second", units_of(groups) + far)
        if last and f["post"] == Post.I8:
            yield act("destination", groups * rows // cols + far)
        if last and f["post"] == Post.I16:
            yield "destination", header[f"joint_{side}_units"] - 4 * groups - far

    if f["opcode"] == Opcode.MATVEC:
        return dict(matvec())
    if f["opcode"] == Opcode.LOOKUP:
        rows_of = 1 if f["constant"] else header["tokens"]
        return {"unit": header["embed_units"] - rows_of * f["units"]} | dict([act("destination", f["units"])])
    count = f["cell_units"]
    found = {"encoder": header["joint_enc_units"] - count, "prediction": header["joint_pred_units"] - count}
    return found | dict([act("destination", units_of(count))])
