# SPDX-License-Identifier: Apache-2.0
"""The machine on the CPU: runs compiled programs instruction by instruction, bit for bit as the docs say."""

from gharial.devices.emulator.device import EmulatorDevice, open_emulator

__all__ = ["EmulatorDevice", "open_emulator"]
