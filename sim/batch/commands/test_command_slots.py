# SPDX-License-Identifier: Apache-2.0
"""Command block: slots that RESET has made zero, whatever their memory holds, by every way that a slot is read."""

from __future__ import annotations

import zlib
from typing import Any

import cocotb

from gharial.isa.commands import DECODE_ENTRY, ENCODE_ENTRY, SLOT_ENTRY, Kind, Operation
from sim.batch.commands.test_command_block import begin


@cocotb.test()
async def blank_slots(dut: Any) -> None:
    """Once filled and then RESET, a slot and its copies are saved as zeros, and as what a step has stored after it."""
    host = await begin(dut, "blank_slots")
    host.pace("free")
    width, full = host.header["feature_bytes"], host.header["vectors"]
    for prediction in (False, True):
        size, flags = host.slot_bytes(prediction), int(prediction)
        filled, blank, copied, stored = 0, 1, 2, 3
        images = b"".join(bytes([17 * n + 1]) * size for n in (filled, blank, copied, stored))
        entries = [SLOT_ENTRY.pack(slot=n, offset=n * size).tobytes() for n in (filled, blank, copied, stored)]
        await host.do(Operation.RESTORE, b"".join(entries), flags=flags, result_lo=host.place(images))
        reset = b"".join(SLOT_ENTRY.pack(slot=n).tobytes() for n in (blank, stored))
        await host.do(Operation.RESET, reset, flags=flags)
        await host.do(Operation.COPY, SLOT_ENTRY.pack(slot=blank, second=copied).tobytes(), flags=flags)
        if prediction:
            step = DECODE_ENTRY.pack(kind=Kind.TOKEN, source=stored, destination=stored, no_joint=1).tobytes()
            await host.do(Operation.DECODE, step, k=1, stride=32, result_lo=host.room(32))
        else:
            data = bytes(width * full)
            step = ENCODE_ENTRY.pack(slot=stored, vectors=full, offset=host.place(data), crc=zlib.crc32(data)).tobytes()
            await host.do(Operation.ENCODE, step)
        assert host.contents[prediction, blank] == host.contents[prediction, copied] == bytes(size)
        assert any(host.contents[prediction, filled]) and any(host.contents[prediction, stored])
        done = await host.do(Operation.SAVE, b"".join(entries), flags=flags, result_lo=host.room(4 * size))
        assert done["status"] == 0
    assert {((False, 3), True), ((True, 3), True)} <= set(host.engine.told)
