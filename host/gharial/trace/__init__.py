# SPDX-License-Identifier: Apache-2.0
"""Traces: every integer that a run computed (docs/numerics.md, section 12), recorded, stored and compared."""

from gharial.trace.diff import Difference, Place, first_difference
from gharial.trace.file import read_trace, write_trace
from gharial.trace.keys import tensors
from gharial.trace.record import trace_recording

__all__ = [
    "Difference",
    "Place",
    "first_difference",
    "read_trace",
    "tensors",
    "trace_recording",
    "write_trace",
]
