# SPDX-License-Identifier: Apache-2.0
"""Command block: LOAD and START beside the emulator, which starts any program that is sound."""

from __future__ import annotations

import zlib
from typing import Any

import cocotb
import numpy as np

from gharial.devices.emulator import open_emulator
from gharial.isa import _registers as reg
from gharial.isa.commands import SLOT_ENTRY, Flag, Operation
from gharial.isa.header import HEADER, ProgramSpace
from sim.batch.commands.host import EMBEDDING, STATE, WEIGHTS
from sim.batch.commands.test_command_block import begin
from sim.common import bench


@cocotb.test()
async def programs(dut: Any) -> None:
    """LOAD and START: what is refused, and the program that is left; all slots are free behind a START."""
    host = await begin(dut, "programs", open_emulator(bench.config()))
    rng, config, sections = host.rng, bench.config(), host.program.sections
    end = config.window_bytes
    good = host.places()
    for fields in (
        {"entry_lo": EMBEDDING + 64}, {"feature_lo": WEIGHTS - 64}, {"result_lo": STATE + 4}, {"result_lo": STATE + 32},
        {"result_lo": end}, {"result_lo": end - 4096}, {"result_hi": 1}, {"feature_hi": 1}, {"entry_hi": 1},
        {"result_lo": 0xFFFFFFC0, "result_hi": 0xFFFFFFFF}, {"result_lo": end - 64},
    ):  # fmt: skip
        done = await host.do(Operation.START, **(good | fields))
        assert done["status"] == 5, fields
    assert await host.read(reg.STATUS) == 9
    listed = SLOT_ENTRY.pack(slot=3).tobytes()
    await host.do(Operation.RESET, listed)
    assert (await host.do(Operation.START, **good))["status"] == 0
    assert (await host.do(Operation.SAVE, listed))["status"] == 3
    for space in ProgramSpace:
        image = sections[space.name.lower()]
        base = {1: WEIGHTS, 5: EMBEDDING}.get(space)
        flags = 0 if base is None else int(Flag.IN_PLACE)
        assert (await host.chunk(space, 0, image, base or 4096, flags ^ Flag.IN_PLACE))["detail"] == 0
        if base is None:
            continue
        # In pieces; a damaged one is not counted; one that lies elsewhere makes a START impossible.
        cut = len(image) // 8 * 4
        assert (await host.chunk(space, 0, image[:cut], base, flags))["status"] == 0
        assert (await host.chunk(space, cut, image[cut:], base + cut, flags, body_crc=1))["status"] == 6
        assert (await host.do(Operation.START, **good))["detail"] == 4 + space
        assert (await host.chunk(space, cut, image[cut:], base + cut, flags))["status"] == 0
        assert (await host.do(Operation.START, **good))["status"] == 0
        assert (await host.chunk(space, 0, image[:cut], base, flags))["status"] == 0
        moved = host.place(image[cut:])
        assert (await host.chunk(space, cut, image[cut:], moved, flags))["status"] == 0
        assert (await host.do(Operation.START, **good))["status"] == 5
        # So it does where others that do not come behind it.
        first = cut // 8 * 4
        assert (await host.chunk(space, 0, image[:first], base, flags))["status"] == 0
        moved = host.place(image[first:cut])
        assert (await host.chunk(space, first, image[first:cut], moved, flags))["status"] == 0
        assert (await host.chunk(space, cut, image[cut:], base + cut, flags))["status"] == 0
        assert (await host.do(Operation.START, **good))["status"] == 5
        assert (await host.chunk(space, 0, image, base, flags))["status"] == 0
        assert (await host.do(Operation.START, **good))["status"] == 0
    words = np.frombuffer(sections["code"], "<u4")
    for change in [*limits(config), *(None for _ in range(4 if bench.short() else 200))]:
        header = dict(host.header)
        if change is None:
            for key in rng.choice([k for k in HEADER.fields if k not in ("magic", "crc")], int(rng.integers(1, 3))):
                header[str(key)] = int(rng.integers(1 << min(HEADER.fields[str(key)].width, int(rng.integers(1, 33)))))
        else:
            header |= change
        changed = words.copy()
        changed[:64] = HEADER.pack(**header)
        changed[63] = zlib.crc32(changed[:63].tobytes())
        host.place(changed.tobytes(), 4096)
        await host.chunk(0, 0, changed.tobytes(), 4096, 0)
        done = await host.do(Operation.START, **good)
        assert change is None or done["status"] == 8, (change, done)
        for register in (reg.STATUS, reg.PROGRAM_ID, reg.ENC_SLOTS, reg.PRED_SLOTS):
            assert await host.read(register) == host.twin.read_register(register.offset), (register.name, change)


def limits(config: Any) -> list[dict[str, int]]:
    """Slots that are larger than a seat, and a bank of joint_enc that is."""
    found = [{f"{kind}_{part}_units": getattr(config, f"{kind}_{part}_units") + 1}
             for kind in ("enc", "pred") for part in ("a", "c")]  # fmt: skip
    return [*found, {"joint_enc_units": config.pred_c_units + 1, "enc_c_units": config.enc_c_units}]
