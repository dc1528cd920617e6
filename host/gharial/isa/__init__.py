# SPDX-License-Identifier: Apache-2.0
"""The machine's interface as tables: instructions, commands, faults, registers, configurations (docs/isa.md)."""
