# SPDX-License-Identifier: Apache-2.0
"""Any netlist by its ports, for tests: set inputs, let the clock rise, look at outputs."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from scripts.rtl import tools
from scripts.rtl.tools import ToolError

from sim.ecp5 import table
from sim.ecp5.build import FOLDER, HERE
from sim.runtime import alone


@cache
def _library() -> Any:
    with alone(FOLDER / "probe"):
        made = FOLDER / "probe" / "probe.so"
        command = [tools.cxx(), "-std=c++20", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-o", str(made)]
        command += [str(HERE / "probe.cpp"), str(HERE / "netlist.cpp")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise ToolError(done.stdout[-2000:])
        found = ctypes.CDLL(str(made))
    found.probe_open.restype = ctypes.c_void_p
    found.probe_open.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t]
    found.probe_get.restype = ctypes.c_uint64
    found.probe_get.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    found.probe_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64]
    for name in ("probe_close", "probe_edge"):
        getattr(found, name).argtypes = [ctypes.c_void_p]
    return found


class Probe:
    """A netlist of Yosys' write_json whose clock is `clk_i`.

    Args:
        netlist: the file; a table is written beside it.
        seed: of what memories hold at power-on.

    Raises:
        ToolError: it cannot be modelled.
    """

    def __init__(self, netlist: Path, seed: int = 1) -> None:
        place = netlist.with_suffix(".table")
        table.write(netlist, place)
        self._library = _library()
        why = ctypes.create_string_buffer(256)
        self._handle = self._library.probe_open(str(place).encode(), seed, why, len(why))
        if not self._handle:
            raise ToolError(why.value.decode())

    def set(self, port: str, value: int) -> None:
        """Give an input a value, 64 bits at most."""
        self._library.probe_set(self._handle, port.encode(), value)

    def get(self, port: str) -> int:
        """Value of an output, 64 bits at most."""
        return int(self._library.probe_get(self._handle, port.encode()))

    def edge(self) -> None:
        """Let the clock rise."""
        self._library.probe_edge(self._handle)

    def close(self) -> None:
        """Let go of it."""
        self._library.probe_close(self._handle)
