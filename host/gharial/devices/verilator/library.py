# SPDX-License-Identifier: Apache-2.0
"""The functions of the compiled simulation, and what their return codes mean."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_double, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from gharial.errors import DeviceError, LinkError

REFUSED, SILENT, FAILED = -1, -2, -3
_ERROR_BYTES = 1024
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "open": (c_void_p, [c_uint32, c_char_p, c_size_t]),
    "close": (None, [c_void_p]),
    "error": (c_char_p, [c_void_p]),
    "read_register": (c_int, [c_void_p, c_uint32, c_void_p]),
    "write_register": (c_int, [c_void_p, c_uint32, c_uint32]),
    "read_memory": (c_int, [c_void_p, c_uint64, c_void_p, c_size_t]),
    "write_memory": (c_int, [c_void_p, c_uint64, c_char_p, c_size_t, c_uint, c_uint]),
    "wait": (c_int, [c_void_p, c_uint32, c_double, c_uint64]),
    "advance": (c_int, [c_void_p, c_uint64]),
    "cycles": (c_uint64, [c_void_p]),
    "bytes_moved": (c_uint64, [c_void_p]),
    "linear_read": (c_uint64, [c_void_p, c_uint64]),
    "break_memory": (None, [c_void_p, c_uint64]),
    "interrupt": (c_int, [c_void_p]),
    "begin_trace": (None, [c_void_p]),
    "end_trace": (c_size_t, [c_void_p]),
    "copy_trace": (None, [c_void_p, c_void_p]),
    "trace_error": (c_char_p, [c_void_p]),
    "tables": (None, [c_void_p, c_void_p]),
    "begin_profile": (None, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_size_t]),
    "profile": (c_char_p, [c_void_p, c_void_p]),
    "copy_profile": (None, [c_void_p, c_void_p, c_void_p]),
}


@cache
def _functions(path: Path) -> Any:
    found = ctypes.CDLL(str(path))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(found, f"gharial_{name}")
        function.restype, function.argtypes = result, arguments
    return found


class Simulation:
    """A machine in simulation: `call` of the shim's functions, which docs and sources are in the folder shim.

    Args:
        path: the library.
        seed: of the values that registers and memories have at power-on.

    Raises:
        DeviceError: the library cannot be loaded, or the machine does not come out of reset.
    """

    def __init__(self, path: Path, seed: int) -> None:
        try:
            self._functions = _functions(path)
        except OSError as error:
            raise DeviceError(f"the RTL simulation cannot be loaded: {error}") from None
        why = ctypes.create_string_buffer(_ERROR_BYTES)
        self._handle = self._functions.gharial_open(seed, why, _ERROR_BYTES)
        if not self._handle:
            raise DeviceError(f"the RTL simulation stopped in reset: {why.value.decode(errors='replace')}")

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function by its name without the prefix; negative results become errors.

        Raises:
            LinkError: no answer on the bus.
            DeviceError: an error response on the bus, or the RTL stopped the simulation.
        """
        result = getattr(self._functions, f"gharial_{name}")(self._handle, *arguments)
        if not isinstance(result, int) or result >= 0:
            return result
        said = self._functions.gharial_error(self._handle).decode(errors="replace")
        if result == REFUSED:
            raise DeviceError("the bus answers with an error", unit="link", detail=int(said))
        if result == SILENT:
            raise LinkError("the bus does not answer", unit="link")
        raise DeviceError(f"the RTL stopped the simulation: {said}")

    def close(self) -> None:
        """Let go of the machine; it must not be called again."""
        self._functions.gharial_close(self._handle)
        self._handle = None
