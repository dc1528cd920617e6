# SPDX-License-Identifier: Apache-2.0
"""The way into the simulation, on a stand-in for the top that stalls, refuses and misbehaves when told to.

VerilatorDevice ── ctypes ── shim: AXI4-Lite masters, clock ── tests/link_probe/gharial_onchip.sv
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from rtl_device import LONG, needed

from gharial.devices.verilator import VerilatorDevice
from gharial.devices.verilator.build import effort, library
from gharial.errors import BadInput, DeviceError, LinkError
from gharial.isa import _registers as reg
from gharial.isa.configs import config

TINY = config("tiny")
KNOBS = reg.IDLE_LO.offset  # what the stand-in takes its orders by
HALT, ASSERTION, DEAF, INTERRUPT = 1 << 8, 1 << 9, 1 << 10, 1 << 12
REFUSED = TINY.window_bytes - 64  # the memory answers with an error from here on


@pytest.fixture(scope="module")
def probe() -> Path:
    needed()
    return library(TINY, ROOT / "tests" / "link_probe" / "gharial_onchip.sv")


@pytest.fixture
def device(probe: Path) -> Iterator[VerilatorDevice]:
    device = VerilatorDevice(TINY, probe)
    yield device
    device.close()


def test_memory_keeps_what_is_written(device: VerilatorDevice, seed: int) -> None:
    """Pieces of any length from any byte, over a slave that takes addresses and data when it pleases."""
    random = np.random.default_rng(seed)
    shadow = bytearray(random.integers(0, 256, REFUSED).astype(np.uint8).tobytes())
    device.write_memory(0, shadow)
    for _ in range(200):
        at = int(random.integers(0, REFUSED))
        data = random.integers(0, 256, int(random.integers(0, min(40, REFUSED - at) + 1))).astype(np.uint8).tobytes()
        device.write_memory(at, data)
        shadow[at : at + len(data)] = data
        at = int(random.integers(0, REFUSED))
        count = int(random.integers(0, min(70, REFUSED - at) + 1))
        assert device.read_memory(at, count) == shadow[at : at + count]
    assert device.read_memory(0, REFUSED) == bytes(shadow)


def test_words_follow_one_another_without_a_pause(device: VerilatorDevice) -> None:
    """The stand-in stalls a channel in one clock of eight or so; single transfers would take three clocks a word."""
    for transfer in (lambda: device.write_memory(0, bytes(4096)), lambda: device.read_memory(0, 4096)):
        before = device.cycles
        transfer()
        assert device.cycles - before < 2048


def test_registers(device: VerilatorDevice) -> None:
    for value in (0, 1, 0xDEADBEEF, 0xFFFFFFFF):
        device.write_register(reg.WATCHDOG.offset, value)
        device.write_register(reg.CMD_LOG2.offset, ~value)
        assert device.read_register(reg.WATCHDOG.offset) == value
        assert device.read_register(reg.CMD_LOG2.offset) == ~value & 0xFFFFFFFF
    device.ring_doorbell(77)
    assert device.read_register(reg.CMD_TAIL.offset) == 77
    for offset in (0x68, 2, 0x100, -4):
        with pytest.raises(DeviceError, match="no register"):
            device.read_register(offset)
        with pytest.raises(DeviceError, match="no register"):
            device.write_register(offset, 1)


@pytest.mark.parametrize(("at", "count"), [(-4, 8), (TINY.window_bytes - 3, 4), (1 << 40, 1), (0, -1)])
def test_memory_has_an_end(device: VerilatorDevice, at: int, count: int) -> None:
    with pytest.raises(DeviceError, match="outside the device memory"):
        device.read_memory(at, count)
    if count > 0:
        with pytest.raises(DeviceError, match="outside the device memory"):
            device.write_memory(at, bytes(count))


def test_error_responses(device: VerilatorDevice) -> None:
    """The first word that was refused is named, and the link still works."""
    start = REFUSED - 40
    for transfer in (lambda: device.read_memory(start, 64), lambda: device.write_memory(start, bytes(64))):
        with pytest.raises(DeviceError, match="answers with an error") as caught:
            transfer()
        assert (caught.value.unit, caught.value.detail) == ("link", REFUSED)
    device.write_memory(0, b"good")
    assert device.read_memory(0, 4) == b"good"


def test_a_slave_that_does_not_answer(device: VerilatorDevice) -> None:
    device.write_register(KNOBS, DEAF)
    for call in (
        lambda: device.read_register(0),
        lambda: device.write_register(KNOBS, 0),
        lambda: device.read_memory(0, 8),
        lambda: device.write_memory(0, bytes(8)),
        device.reset,
    ):
        with pytest.raises(LinkError, match="does not answer"):
            call()


def test_waiting(device: VerilatorDevice) -> None:
    """Until the index is reached and not a clock longer; indices wrap; a halt ends it."""
    assert device.wait(0, 0)
    assert not device.wait(1, 0)
    before = device.cycles
    assert not device.wait_clocks(1, LONG, 1000)
    assert device.cycles == before + 1000
    assert not device.wait(1, 0.01)
    assert device.cycles > before + 1000
    device.write_register(KNOBS, 200)
    before = device.cycles
    assert device.wait(150, LONG)
    assert device.cycles - before < 150
    assert device.wait(200, LONG) and not device.wait_clocks(201, LONG, 500)
    assert device.wait(0xFFFFFFFF, 0) and device.wait(0x80000000 + 201, 0)
    device.write_register(KNOBS, 200 | HALT)
    assert device.wait(201, 0)
    device.write_register(KNOBS, 200 | INTERRUPT)
    assert device.interrupt and not device.wait(201, 0)


def test_a_wait_lets_others_in(device: VerilatorDevice) -> None:
    other = threading.Timer(0.1, device.write_register, (KNOBS, 3))
    other.start()
    assert device.wait(3, LONG)
    other.join()


def test_a_reset_that_does_not_end(device: VerilatorDevice) -> None:
    device.write_register(reg.CMD_HEAD.offset, 1)
    with pytest.raises(DeviceError, match="soft reset not done"):
        device.reset()
    device.write_register(reg.CMD_HEAD.offset, 0)
    device.write_register(reg.CPL_TAIL.offset, 0)
    device.write_register(reg.STATUS.offset, 0)
    device.reset()


def test_an_assertion_that_does_not_hold(device: VerilatorDevice, capfd: pytest.CaptureFixture[str]) -> None:
    """It ends that simulation and nothing else; what it says is kept from standard output."""
    with pytest.raises(DeviceError, match=r"stopped the simulation.*a_asked_for"):
        device.write_register(KNOBS, ASSERTION)
    with pytest.raises(DeviceError, match=r"stopped the simulation.*a_asked_for"):
        device.read_memory(0, 4)
    printed = capfd.readouterr()
    assert "a_asked_for" in printed.err and printed.out == ""


def test_devices_are_apart(probe: Path) -> None:
    """Two of one library; memories begin with other numbers for another seed, the same for the same."""
    devices = [VerilatorDevice(TINY, probe, seed) for seed in (1, 2, 1)]
    first, second, third = (device.read_memory(0, 256) for device in devices)
    assert first == third != second
    devices[0].write_memory(0, bytes(256))
    assert devices[2].read_memory(0, 256) == third
    devices[0].close()
    assert devices[2].read_memory(0, 256) == third


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_are_closed_in_any_order(order: tuple[int, int]) -> None:
    """Each works on when the other has gone. In a process of its own: what went wrong once never came to an end."""
    needed()
    code = f"""if True:
        from gharial.devices.verilator import open_verilator
        from gharial.isa.configs import config
        devices = [open_verilator(config("tiny")) for _ in range(2)]
        for at in {order}:
            devices[at].advance(10)
            devices[at].close()
    """
    library(TINY)  # may take minutes, if nobody has built it
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LONG)


def test_closing(device: VerilatorDevice) -> None:
    device.close()
    device.close()
    calls: list[Callable[[], object]] = [
        lambda: device.read_register(0),
        lambda: device.write_register(0, 0),
        lambda: device.read_memory(0, 4),
        lambda: device.read_memory(0, 0),
        lambda: device.write_memory(0, b"1"),
        lambda: device.ring_doorbell(1),
        lambda: device.wait(0, 0),
        lambda: device.cycles,
        lambda: device.advance(1),
        lambda: device.start_trace([], []),
        device.stop_trace,
        device.reset,
    ]
    for call in calls:
        with pytest.raises(DeviceError, match="closed"):
            call()


def test_nothing_to_trace(device: VerilatorDevice) -> None:
    assert device.stop_trace() == {}
    device.start_trace([], [])
    assert device.stop_trace() == {}


def test_what_does_not_compile_says_so(tmp_path: Path) -> None:
    needed()
    broken = tmp_path / "broken" / "gharial_onchip.sv"
    broken.parent.mkdir()
    broken.write_text("module gharial_onchip (input logic clk_i); assign nothing = ; endmodule\n")
    with pytest.raises(DeviceError, match=r"did not compile.*verilator") as caught:
        library(TINY, broken)
    assert "syntax error" in str(caught.value)
    assert Path(str(caught.value.detail)).is_file()


def test_built_with_another_effort(probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the other one, by parameter or environment, and as good."""
    now, other = ("full", "quick") if effort() == "full" else ("quick", "full")
    monkeypatch.setenv("GHARIAL_RTL_BUILD", other)
    made = library(TINY, ROOT / "tests" / "link_probe" / "gharial_onchip.sv")
    assert effort() == other and effort(now) == now
    assert made.parent != probe.parent and probe.is_file()
    device = VerilatorDevice(TINY, made)
    device.write_memory(4, b"beside")
    assert device.read_memory(4, 6) == b"beside"
    device.close()
    monkeypatch.setenv("GHARIAL_RTL_BUILD", "fast")
    with pytest.raises(BadInput, match="GHARIAL_RTL_BUILD"):
        effort()
    monkeypatch.delenv("GHARIAL_RTL_BUILD")
    assert effort() == "full"
