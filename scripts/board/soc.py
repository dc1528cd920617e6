# SPDX-License-Identifier: Apache-2.0
"""What a board's image holds around the accelerator, in LiteX: clock, reset, bridges, bus (docs/bitstream.md).

`write` makes Verilog and pin constraints of it, in which the accelerator is a module yet to be found.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import ClassVar

from litex.build.lattice import LatticeECP5Platform
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import axi
from litex_boards.platforms import lambdaconcept_ecpix5, radiona_ulx3s
from migen import ClockDomain, ClockSignal, If, Instance, ResetSignal, Signal
from migen.genlib.cdc import MultiReg

from scripts.board.boards import ADDRESSES, Board

TOP = "gharial_board"
"""Name of the module that `write` makes, and of its files."""
BUS_CLOCKS = 1024
"""An access that nobody has answered by then is answered with an error."""
_RESET_CLOCKS = 1 << 16
"""Clocks of the oscillator that the PLL is held for after configuration."""
_HELD_CLOCKS = 31
"""Clocks that the accelerator is reset for after the rest of the system clock's domain."""
ETHERBONE_WORDS = 16
"""Words that Etherbone has room for of a packet."""
_CHANNELS = {"aw": ("addr",), "w": ("data", "strb"), "b": ("resp",), "ar": ("addr",), "r": ("data", "resp")}
_PLACES = {"ctrl": 0, "identifier_mem": 1}
"""LiteX's register groups whose addresses the host knows: 2 KB apart."""


class Clocks(LiteXModule):
    """The PLL that makes the system clock, and its reset: until the PLL has locked, and by the board's button."""

    def __init__(self, oscillator: Signal, pressed: Signal, board: Board):
        self.rst = Signal()  # asked for by LiteX's control register
        self.cd_sys = ClockDomain()
        self.cd_start = ClockDomain(reset_less=True)
        held = Signal(max=_RESET_CLOCKS, reset=_RESET_CLOCKS - 1)
        self.comb += self.cd_start.clk.eq(oscillator)
        # What asks for a reset starts the count anew, and only a register resets the PLL: all else would be a path from
        # the system clock to its own asynchronous reset, across the whole device.
        button, reset = Signal(), Signal(reset=1)
        asked, seen, before = (
            Signal(reset_less=True),
            Signal(),
            Signal(),
        )  # toggles; not itself reset by what it asks for
        self.sync += If(self.rst, asked.eq(~asked))
        self.specials += [MultiReg(pressed, button, "start"), MultiReg(asked, seen, "start")]
        self.sync.start += [
            before.eq(seen),
            If(button | (seen != before), held.eq(_RESET_CLOCKS - 1)).Elif(held != 0, held.eq(held - 1)),
            reset.eq(held != 0),
        ]
        self.pll = pll = ECP5PLL()
        self.comb += pll.reset.eq(reset)
        pll.register_clkin(oscillator, board.oscillator_mhz * 1e6)
        pll.create_clkout(self.cd_sys, board.clock_mhz * 1e6, margin=0)


class Accelerator(LiteXModule):
    """The accelerator with its device memory: two AXI4-Lite slaves, `registers` and `memory`.

    Args:
        register_bits, memory_bits: address bits of each slave's own; those above are its place on the bus.
    """

    def __init__(self, register_bits: int, memory_bits: int):
        self.registers = axi.AXILiteInterface(data_width=32, address_width=32)
        self.memory = axi.AXILiteInterface(data_width=32, address_width=32)
        self.halted = Signal()
        # A register of its own: the one that is set asynchronously lies by the PLL, far from what the reset reaches.
        held, reset = Signal(max=_HELD_CLOCKS + 1, reset=_HELD_CLOCKS), Signal(reset=1)
        self.sync += [If(held != 0, held.eq(held - 1)), reset.eq(held != 0)]
        ports = {"i_clk_i": ClockSignal("sys"), "i_rst_i": reset, "o_halted_o": self.halted}
        ports |= _slave("s_axil_csr", self.registers, register_bits)
        ports |= _slave("s_axil_mem", self.memory, memory_bits)
        self.specials += Instance("gharial_onchip", **ports)


def _slave(prefix: str, bus: axi.AXILiteInterface, address_bits: int) -> dict[str, object]:
    """Connections of an AXI4-Lite slave of the accelerator; narrow addresses are filled up with zeros."""
    ports: dict[str, object] = {f"i_{prefix}_awprot": 0, f"i_{prefix}_arprot": 0}
    for channel, signals in _CHANNELS.items():
        to_slave, to_master = ("o", "i") if channel in ("b", "r") else ("i", "o")
        side = getattr(bus, channel)
        for name in signals:
            signal = getattr(side, name)
            ports[f"{to_slave}_{prefix}_{channel}{name}"] = signal[:address_bits] if name == "addr" else signal
        ports[f"{to_slave}_{prefix}_{channel}valid"] = side.valid
        ports[f"{to_master}_{prefix}_{channel}ready"] = side.ready
    return ports


class Soc(SoCMini):
    """All of an image.

    Args:
        board: which it is for.
        bridge_hz: what the UART bridge takes the clock's rate for, if not its true one.
    """

    mem_map: ClassVar[dict[str, int]] = {"csr": ADDRESSES.csr}
    csr_map: ClassVar[dict[str, int]] = {**SoCMini.csr_map, **_PLACES}

    def __init__(self, board: Board, bridge_hz: int | None = None):
        platform, oscillator, pressed, led = _on_board(board)
        super().__init__(
            platform,
            int(board.clock_mhz * 1e6),
            ident=board.identifier,
            ident_version=False,  # that would be the time of day
            bus_standard="wishbone",
            bus_timeout=BUS_CLOCKS,
        )
        self.crg = Clocks(oscillator, pressed, board)
        self.add_uartbone(baudrate=board.uart_baud, clk_freq=bridge_hz)
        if board.ethernet is not None:
            self._add_ethernet(board)
        sizes = {"registers": ADDRESSES.registers_size, "memory": board.memory_bytes}
        self.accelerator = accelerator = Accelerator(*(size.bit_length() - 1 for size in sizes.values()))
        for name, size in sizes.items():
            region = SoCRegion(origin=getattr(ADDRESSES, name), size=size, cached=False)
            self.bus.add_slave(name, getattr(accelerator, name), region)
        self.comb += led.eq(accelerator.halted)

    def _add_ethernet(self, board: Board) -> None:
        """Etherbone, its packets taken apart at the system clock, four bytes at a time.

        LiteEth would do that a byte at a time at the PHY's 125 MHz as well, which an ECP5 does not reach there
        (docs/bitstream.md). What comes and what goes share no register in LiteEth's cores, from one of the PHY's queues
        to the other: a queue between Etherbone and UDP divides that way, which LiteEth makes where clocks differ.
        """
        from liteeth.core import LiteEthUDPIPCore
        from liteeth.frontend.etherbone import LiteEthEtherbone

        wanted = board.ethernet
        assert wanted is not None
        self.ethphy = self._phy()
        self.ethcore = core = LiteEthUDPIPCore(
            self.ethphy,
            int(wanted.mac.replace(":", ""), 16),
            wanted.ip,
            self.clk_freq,
            dw=32,
            with_sys_datapath=True,
        )
        self.cd_etherbone = ClockDomain()
        self.comb += [self.cd_etherbone.clk.eq(ClockSignal("sys")), self.cd_etherbone.rst.eq(ResetSignal("sys"))]
        self.etherbone = LiteEthEtherbone(core.udp, wanted.udp_port, buffer_depth=ETHERBONE_WORDS, cd="etherbone")
        self.bus.add_master(name="etherbone", master=self.etherbone.wishbone.bus)

    def _phy(self) -> LiteXModule:
        """The board's gigabit PHY."""
        from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII

        pads = (self.platform.request(name) for name in ("eth_clocks", "eth"))
        return LiteEthPHYRGMII(*pads, rx_delay=0)


def _on_board(board: Board) -> tuple[LatticeECP5Platform, Signal, Signal, Signal]:
    """Platform; oscillator; whether the reset button is pressed; the lamp that tells of a halt."""
    if board.loader == "ulx3s":
        platform = radiona_ulx3s.Platform(device="LFE5U-85F", toolchain="trellis")
        oscillator, pressed, led = (
            platform.request("clk25"),
            platform.request("user_btn", 1),
            platform.request("user_led", 0),
        )
    else:
        platform = lambdaconcept_ecpix5.Platform(device="85F", toolchain="trellis")
        oscillator, pressed, led = (
            platform.request("clk100"),
            ~platform.request("rst_n"),
            platform.request("rgb_led", 0).r,
        )
    if platform.device != board.part:
        raise ValueError(f"{board.key}: part {board.part} in boards.yaml, {platform.device} on LiteX's board")
    return platform, oscillator, pressed, led


def write(board: Board, folder: Path, bridge_hz: int | None = None) -> None:
    """Write TOP.v, TOP.lpf and the memory files that TOP.v reads into the folder; arguments as for Soc.

    The same board gives the same files: LiteX's comments are blanked, in which it tells the time of day and draws the
    tree of modules, leaves in the order of their addresses in memory.
    """
    logging.disable(logging.INFO)  # LiteX tells all of its modules otherwise
    soc = Soc(board, bridge_hz)
    soc.finalize()
    soc.build(build_dir=str(folder), build_name=TOP, run=False)
    verilog = folder / f"{TOP}.v"
    comments = re.compile(r"^//[^\n]*|^/\*.*?\*/", re.MULTILINE | re.DOTALL)
    verilog.write_text(comments.sub(lambda found: "\n" * found[0].count("\n"), verilog.read_text()))
