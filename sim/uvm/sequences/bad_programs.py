# SPDX-License-Identifier: Apache-2.0
"""Chunks and headers that have to be refused, and what can be done without a program: nothing."""

from __future__ import annotations

import zlib

import numpy as np

from gharial.isa.commands import Flag, Operation
from gharial.isa.header import HEADER, ProgramSpace
from sim.uvm.program.drawn import DrawnProgram
from sim.uvm.sequences.base import BenchSequence
from sim.uvm.sequences.host import TINY
from sim.uvm.sequences.refused import ALL_OPERATIONS

CODE = ProgramSpace.CODE
# Word of the header, and the fields that make it bad: new values, or with a sign what is added.
BAD_HEADERS: tuple[tuple[int, dict[str, int | str]], ...] = (
    (0, {"magic": 1}),
    (1, {"version": 0x00020000}),
    (2, {"config_id": 1}),
    (4, {"code_bytes": "+32"}),
    (5, {"weight_bytes": "+64"}),
    (6, {"scale_bytes": "-64"}),
    (7, {"bias_bytes": "+4"}),
    (8, {"table_bytes": 0}),
    (9, {"embed_bytes": "-4"}),
    (10, {"predict_first": 1000}),
    (11, {"encode_count": "+99"}),
    (12, {"joint_first": 0xFFFF}),
    (13, {"vectors": 5}),
    (14, {"feature_unit": "+500"}),
    (15, {"enc_a_units": 513}),
    (16, {"pred_c_units": 0xFFFF}),
    (17, {"joint_enc_units": "+99"}),
    (18, {"joint_pred_unit": "+99"}),
    (19, {"classes": 513}),
    (20, {"logit_bits": 13}),
    (21, {"sum_groups": 129}),
)


class BadPrograms(BenchSequence):
    """Begins and ends with the program that is current."""

    async def body(self) -> None:
        program = self.host.program
        assert program is not None
        await self._chunks(program)
        await self._nothing_runs()
        words = np.frombuffer(program.images["code"], "<u4")
        for word, fields in BAD_HEADERS:
            values = dict(program.header)
            for key, value in fields.items():
                values[key] = value if isinstance(value, int) else values[key] + int(value)
            changed = words.copy()
            changed[: HEADER.words] = HEADER.pack(**values)
            changed[HEADER.words - 1] = zlib.crc32(changed[: HEADER.words - 1].tobytes())
            await self._start(changed, word)
        changed = words.copy()
        changed[HEADER.words - 2] ^= 1
        await self._start(changed, HEADER.words - 1)
        await self.load(program, [CODE])

    async def _start(self, code: np.ndarray, word: int) -> None:
        await self.post(self.host.chunk(CODE, 0, code.tobytes()))
        done = await self.run(self.host.command(Operation.START, flags=0))
        assert done["detail"] == word, (done, word)

    async def _chunks(self, program: DrawnProgram) -> None:
        """What is refused by its descriptor leaves the program; a damaged chunk unloads it, and can be sent again."""
        data = program.images["scales"]
        for fields in (
            {"space": 6}, {"offset": 4}, {"bytes": 3}, {"bytes": TINY.scale_bytes + 4},
            {"entry_lo": TINY.window_bytes}, {"flags": int(Flag.IN_PLACE)}, {"body_crc": 1},
        ):  # fmt: skip
            space = fields.pop("space", int(ProgramSpace.SCALES))
            offset = fields.pop("offset", 0)
            await self.post(self.host.chunk(space, offset, data, **fields))
        await self.flush()
        await self.post(self.host.chunk(ProgramSpace.SCALES, 0, data))
        await self.flush()

    async def _nothing_runs(self) -> None:
        for operation in ALL_OPERATIONS:
            await self.post(self.host.command(operation, k=1))
        await self.flush()
