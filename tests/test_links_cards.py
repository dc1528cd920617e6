# SPDX-License-Identifier: Apache-2.0
"""Cards behind XDMA's character devices, Zynq overlays behind UIO's: files, pipes and maps that behave as theirs."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from links import emulator, expected, expected_frames, frames
from sim.links.cards import ERESTARTSYS, Kernel
from small_program import TINY, assemble
from small_run import transcript

from gharial.devices.base import Device
from gharial.devices.pynq import open_pynq
from gharial.devices.xdma import XdmaDevice, open_xdma
from gharial.devices.xdma import device as xdma
from gharial.driver import Driver
from gharial.errors import DeviceError, DeviceTimeout, LinkError
from gharial.isa import _registers as reg

LONG = 30.0


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    card = emulator.open_emulator(TINY)
    found = Kernel(tmp_path, card)
    monkeypatch.setattr(xdma, "os", found.module)
    yield found
    found.close()


def opened(kernel: Kernel) -> XdmaDevice:
    return open_xdma(0, TINY, kernel.folder)


@pytest.fixture
def driver(kernel: Kernel) -> Iterator[Driver]:
    with Driver(opened(kernel), assemble(), timeout=LONG) as driver:
        yield driver


def test_everything_that_a_card_can_be_asked(kernel: Kernel) -> None:
    assert transcript(lambda _: opened(kernel), assemble()) == expected()
    assert kernel.interrupts, "completions raise the interrupt where there is one"
    assert kernel.open_nodes() == []


def test_a_card_without_interrupts(kernel: Kernel) -> None:
    (kernel.folder / "xdma0_events_0").unlink()
    device = opened(kernel)
    assert not device.interrupts
    with Driver(device, assemble(), timeout=LONG) as driver:
        assert frames(driver) == expected_frames()
    assert kernel.interrupts == 0


def test_bytes_and_their_alignment(kernel: Kernel, seed: int) -> None:
    """Any place and length, in transfers that end short; the driver's alignment rule refuses none."""
    chosen = random.Random(seed)
    device = opened(kernel)
    copy = bytearray(TINY.window_bytes)
    for _ in range(60):
        kernel.most = chosen.choice([1, 7, 64, 4096, 1 << 30])
        count = chosen.choice([0, 1, 3, 64, 65, 300, 5000 if kernel.most > 7 else 20])
        at = chosen.randrange(len(copy) - count + 1)
        data = chosen.randbytes(count)
        device.write_memory(at, data)
        copy[at : at + count] = data
        at = chosen.randrange(len(copy) - count + 1)
        assert device.read_memory(at, count) == copy[at : at + count]
    assert kernel.device.read_memory(0, len(copy)) == copy
    with pytest.raises(DeviceError, match="outside the device memory"):
        device.read_memory(len(copy) - 3, 4)
    device.close()
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        device.read_register(0)


def test_transfers_larger_than_the_buffer(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(xdma, "CHUNK", 1000)
    device = opened(kernel)
    data = random.Random(seed).randbytes(9999)
    device.write_memory(5, data)
    assert device.read_memory(5, len(data)) == data
    assert max(count for _, _, count in kernel.transfers) == 1000
    device.close()


@pytest.mark.parametrize("number", [errno.EIO, errno.EAGAIN, errno.EBUSY, ERESTARTSYS, 0])
def test_transfers_that_fail_once_are_done_again(kernel: Kernel, driver: Driver, number: int) -> None:
    kernel.failing = [number]
    assert frames(driver) == expected_frames()
    assert not kernel.failing


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EIO, "see dmesg"),
        (errno.EBUSY, "load the driver again"),
        (ERESTARTSYS, "within the driver's limit"),
        (errno.EINVAL, "refuses the transfer"),
        (errno.ENODEV, "the card has gone"),
        (0, "without a byte moved"),
    ],
)
def test_transfers_that_fail_again_and_again(kernel: Kernel, driver: Driver, number: int, words: str) -> None:
    frames(driver)
    kernel.failing = [number] * 3
    with pytest.raises(LinkError, match=words) as caught:
        frames(driver)
    assert len(str(caught.value).splitlines()) <= 3
    kernel.failing = []
    assert not driver.recover().reloaded
    assert frames(driver) == expected_frames()


def test_a_card_that_leaves_the_bus(kernel: Kernel, driver: Driver) -> None:
    """Registers read as all ones then: said as such, and good again when it is back."""
    frames(driver)
    kernel.gone = True
    with pytest.raises(LinkError):
        frames(driver)
    with pytest.raises(LinkError, match="left the bus"):
        driver.recover()
    with pytest.raises(LinkError, match="left the bus"):
        opened(kernel).read_register(reg.STATUS.offset)
    kernel.gone = False
    driver.recover()
    assert frames(driver) == expected_frames()


def test_a_register_may_be_all_ones(kernel: Kernel) -> None:
    device = opened(kernel)
    device.write_register(reg.WATCHDOG.offset, 0xFFFFFFFF)
    assert device.read_register(reg.WATCHDOG.offset) == 0xFFFFFFFF
    device.close()


def test_an_interrupt_that_is_lost(kernel: Kernel, driver: Driver) -> None:
    """The wait looks at the index now and then all the same."""
    kernel.lost = 1000
    assert frames(driver) == expected_frames()


def test_an_interrupt_ends_a_wait(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken off the file, and cleared in the device, so that the next one is seen."""
    device, looked = opened(kernel), []
    with Driver(device, assemble(), timeout=LONG) as driver:
        card = kernel.device
        real = card.read_register

        def late(offset: int) -> int:
            """The index is late by some looks."""
            if offset == reg.CPL_TAIL.offset and len(looked) < 3:
                looked.append(offset)
                return (real(offset) - 1) & 0xFFFFFFFF
            return real(offset)

        driver.reset("encoder", [0]).result()
        monkeypatch.setattr(card, "read_register", late)
        before = real(reg.CPL_TAIL.offset)
        assert real(reg.IRQ_STATUS.offset) & 1
        assert device.wait(before, LONG)
        assert not real(reg.IRQ_STATUS.offset) & 1 and len(looked) == 3


def test_a_wait_ends_with_its_limit(kernel: Kernel, driver: Driver) -> None:
    card = kernel.device
    assert isinstance(card, emulator.EmulatorDevice)
    card.stall()
    ticket = driver.reset("encoder", [0])
    with pytest.raises(DeviceTimeout):
        ticket.result(0.1)
    driver.recover()
    assert frames(driver) == expected_frames()


@pytest.mark.parametrize("node", ["user", "h2c_0", "c2h_0"])
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOENT, "no such card"),
        (errno.EACCES, "udev rule"),
        (errno.EBUSY, "another program"),
        (errno.EIO, "Input"),
    ],
)
def test_a_card_that_cannot_be_opened(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, node: str, number: int, words: str
) -> None:
    module, real = kernel.module, kernel.module.open

    def refusing(path: str, flags: int) -> int:
        if path.endswith(node):
            raise OSError(number, os.strerror(number))
        return int(real(path, flags))

    module.open = refusing
    monkeypatch.setattr(xdma, "os", module)
    with pytest.raises(LinkError, match=words):
        opened(kernel)
    assert kernel.open_nodes() == []


def test_no_card_at_all(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="xdma3_user: no such card"):
        open_xdma(3, TINY, tmp_path)


# An overlay


def overlay(root: Path, registers: str = "0x1000", memory: str | None = None) -> None:
    """A UIO device: one file whose pages are both regions, and what /sys says of it."""
    maps = root / "sys" / "class" / "uio" / "uio2" / "maps"
    for number, size in enumerate((registers, memory or hex(TINY.window_bytes))):
        (maps / f"map{number}").mkdir(parents=True)
        (maps / f"map{number}" / "size").write_text(size + "\n")
    (root / "dev").mkdir()
    (root / "dev" / "uio2").write_bytes(bytes(4096 + TINY.window_bytes))


def test_an_overlay_is_mapped(tmp_path: Path, seed: int) -> None:
    """Registers at page 0, memory from page 1 on: what the host writes is in the file."""
    overlay(tmp_path)
    device = open_pynq(2, TINY, tmp_path)
    device.write_register(reg.WATCHDOG.offset, 0x12345678)
    assert device.read_register(reg.WATCHDOG.offset) == 0x12345678
    chosen = random.Random(seed)
    copy = bytearray(TINY.window_bytes)
    for _ in range(100):
        count = chosen.choice([0, 1, 4, 15, 16, 17, 1000])
        at = chosen.randrange(len(copy) - count + 1)
        data = chosen.randbytes(count)
        device.write_memory(at, data)
        copy[at : at + count] = data
        at = chosen.randrange(len(copy) - count + 1)
        assert device.read_memory(at, count) == copy[at : at + count]
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        device.read_register(0)
    whole = (tmp_path / "dev" / "uio2").read_bytes()
    assert whole[4096:] == copy and whole[reg.WATCHDOG.offset :][:4] == bytes.fromhex("78563412")
    assert not any(whole[0x100:4096])


class Words:
    """An emulator's registers, as words of a map."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __getitem__(self, index: int) -> int:
        return self.device.read_register(4 * index)

    def __setitem__(self, index: int, value: int) -> None:
        self.device.write_register(4 * index, value)


def test_everything_that_an_overlay_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlay(tmp_path)
    card = emulator.open_emulator(TINY)
    device = open_pynq(2, TINY, tmp_path)
    monkeypatch.setattr(device, "_registers", Words(card))
    monkeypatch.setattr(device, "_memory", np.frombuffer(card._memory.view, np.uint8))
    assert transcript(lambda _: device, assemble()) == expected()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda root: (root / "dev" / "uio2").unlink(), "no such device"),
        (
            lambda root: (root / "sys" / "class" / "uio" / "uio2" / "maps" / "map1" / "size").unlink(),
            "cannot be mapped",
        ),
        (lambda root: (root / "sys/class/uio/uio2/maps/map1/size").write_text("0x100"), "region 1 has 256 bytes"),
        (lambda root: (root / "sys/class/uio/uio2/maps/map0/size").write_text("junk"), "cannot be mapped"),
    ],
)
def test_overlays_that_cannot_be_used(tmp_path: Path, change: Callable[[Path], None], words: str) -> None:
    overlay(tmp_path)
    change(tmp_path)
    with pytest.raises(LinkError, match=words):
        open_pynq(2, TINY, tmp_path)
