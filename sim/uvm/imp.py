# SPDX-License-Identifier: Apache-2.0
"""The end of an analysis port that calls a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyuvm import uvm_analysis_export, uvm_component


class Imp(uvm_analysis_export):
    """Hands what is written to `function`, at once. A component may have several."""

    def __init__(self, name: str, parent: uvm_component, function: Callable[[Any], None]) -> None:
        super().__init__(name, parent)
        self._function = function

    def write(self, datum: Any) -> None:
        """One transaction."""
        self._function(datum)
