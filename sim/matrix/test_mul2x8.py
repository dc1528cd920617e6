# SPDX-License-Identifier: Apache-2.0
"""mul2x8 gives both products of every pair of weights and every activation."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge, Timer


@cocotb.test()
async def every_case(dut: Any) -> None:
    """All of them are gone through by the bench's top module; here its counts are read."""
    dut.rst_i.value = 1
    await Timer(30, unit="ns")
    dut.rst_i.value = 0
    await RisingEdge(dut.done_o)
    assert int(dut.checked_o.value) == 255 * 256 * 256
    first = int(dut.first_wrong_o.value)
    wrong = int(dut.wrong_o.value)
    assert wrong == 0, f"{wrong} wrong, the first at w1, w0, x = {first.to_bytes(3)!r}"
