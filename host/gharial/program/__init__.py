# SPDX-License-Identifier: Apache-2.0
"""Compiled programs: the file, its verifier, and what there is to see in one (docs/program.md)."""

from gharial.program.code import disassemble
from gharial.program.inspect import describe, format_description
from gharial.program.program import Program
from gharial.program.verify import verify

__all__ = ["Program", "describe", "disassemble", "format_description", "verify"]
