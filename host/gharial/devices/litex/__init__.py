# SPDX-License-Identifier: Apache-2.0
"""Boards behind LiteX's bridges: a UART or Ethernet (docs/links.md)."""

from gharial.devices.litex.device import LitexDevice, open_bridge, open_litex

__all__ = ["LitexDevice", "open_bridge", "open_litex"]
