# SPDX-License-Identifier: Apache-2.0
"""Zynq boards whose overlay is mapped through Linux' UIO (docs/links.md)."""

from gharial.devices.pynq.device import PynqDevice, open_pynq

__all__ = ["PynqDevice", "open_pynq"]
