# SPDX-License-Identifier: Apache-2.0
"""PCIe cards behind Xilinx's XDMA driver (docs/links.md)."""

from gharial.devices.xdma.device import XdmaDevice, open_xdma

__all__ = ["XdmaDevice", "open_xdma"]
