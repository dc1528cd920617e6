# SPDX-License-Identifier: Apache-2.0
"""The AXI4-Lite port under the names that cocotbext-axi looks for."""

from __future__ import annotations

from typing import Any

from cocotbext.axi import AxiLiteBus, AxiLiteReadBus, AxiLiteWriteBus
from cocotbext.axi.axil_channels import AxiLiteARBus, AxiLiteAWBus, AxiLiteBBus, AxiLiteRBus, AxiLiteWBus

DRIVEN = {"awaddr", "awprot", "awvalid", "wdata", "wstrb", "wvalid", "bready", "araddr", "arprot", "arvalid", "rready"}


def _suffixed(kind: Any) -> Any:
    """The bus of a channel whose inputs end in _i and outputs in _o."""

    def names(signals: Any) -> dict[str, str]:
        return {name: name + ("_i" if name in DRIVEN else "_o") for name in signals}

    return type(
        kind.__name__,
        (kind,),
        {"_signals": names(kind._signals), "_optional_signals": names(kind._optional_signals)},
    )


def csr_bus(dut: Any) -> AxiLiteBus:
    """Port csr_* of the design."""
    aw, w, b, ar, r = (
        _suffixed(kind).from_prefix(dut, "csr")
        for kind in (AxiLiteAWBus, AxiLiteWBus, AxiLiteBBus, AxiLiteARBus, AxiLiteRBus)
    )
    return AxiLiteBus(AxiLiteWriteBus(aw, w, b), AxiLiteReadBus(ar, r))
