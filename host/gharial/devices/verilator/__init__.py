# SPDX-License-Identifier: Apache-2.0
"""The RTL, compiled by Verilator and driven in this process like any other device."""

from gharial.devices.verilator.device import VerilatorDevice, open_verilator

__all__ = ["VerilatorDevice", "open_verilator"]
