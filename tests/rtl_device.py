# SPDX-License-Identifier: Apache-2.0
"""The RTL in simulation, for tests that were written for devices that compute while they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from gharial.devices.verilator import VerilatorDevice, open_verilator
from gharial.devices.verilator.build import library, problem
from gharial.isa import _registers as reg
from gharial.isa.configs import Config

LONG = 60.0  # seconds: the machine that runs the tests may be busy
MOST = 1_000_000  # clocks that a test's commands take at most
SETTLED = 500  # clocks within which a doorbell or a completion shows in all registers


class PromptDevice(VerilatorDevice):
    """Lets the clock run where a host of the emulator would not wait, as on a board time goes by anyway."""

    def write_register(self, offset: int, value: int) -> None:
        super().write_register(offset, value)
        if offset in (reg.CONTROL.offset, reg.CMD_TAIL.offset, reg.CPL_HEAD.offset):
            self.advance(SETTLED)

    def wait(self, completions: int, timeout: float) -> bool:
        done = self.wait_clocks(completions, LONG, MOST)
        self.advance(SETTLED)
        return done


def needed() -> None:
    """Skip the test where the RTL cannot be compiled."""
    why = problem()
    if why is not None:
        pytest.skip(f"the RTL cannot be simulated: {why}")


def open_rtl(config: Config) -> VerilatorDevice:
    """The RTL of a configuration, or skip the test where it cannot be compiled."""
    needed()
    return open_verilator(config)


def open_prompt(config: Config, memory_bytes: int | None = None, kernel: str | None = None) -> PromptDevice:
    """Takes the place of `open_emulator` and `EmulatorDevice`; skips configurations that the RTL does not have."""
    needed()
    if config.in_memory:
        pytest.skip("the RTL has no configurations with memory yet")
    return PromptDevice(config, library(config))


def on_the_rtl(module: ModuleType, differences: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """A fixture that makes the tests of a module, imported by the one that has the fixture, run on the RTL.

    Args:
        module: tests of the emulator.
        differences: tests that are known to fail, and why; one that no longer fails is an error.
    """

    @pytest.fixture(autouse=True)
    def swapped(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
        for name in ("open_emulator", "EmulatorDevice"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, open_prompt)
        why = (differences or {}).get(request.function.__name__)
        if why is not None:
            request.node.add_marker(pytest.mark.xfail(reason=why, strict=True))

    return swapped
