# SPDX-License-Identifier: Apache-2.0
"""Registers and rings of the emulator: indices that wrap, back-pressure, overrun, interrupts, soft reset, closing."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from emulator_host import Host
from emulator_program import network

from gharial.devices.emulator import EmulatorDevice, open_emulator
from gharial.errors import BadInput, DeviceError
from gharial.isa import _registers as reg
from gharial.isa.commands import Flag, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit

BUSY, HALTED = 2, 4


@pytest.fixture
def host() -> Host:
    return Host(open_emulator(config("tiny")))


def status(host: Host) -> tuple[int, int, int]:
    """Low bits, fault and unit of STATUS."""
    word = host.read(reg.STATUS)
    return word & 7, word >> 8 & 0xFF, word >> 16 & 0xFF


def nops(host: Host, count: int, **fields: int) -> None:
    for _ in range(count):
        host.post(host.descriptor(Operation.NOP, **fields))


def test_identity(host: Host) -> None:
    cfg = host.config
    assert [host.read(r) for r in (reg.ID, reg.VERSION, reg.CONFIG_ID, reg.DEVICE, reg.MEM_SIZE_LO, reg.MEM_SIZE_HI)] \
        == [0x4748524C, 0x00010001, cfg.config_id, 1, cfg.window_bytes, 0]  # fmt: skip
    assert (host.device.name, host.device.kind) == ("emulator:tiny", "emulator")


def test_registers_keep_what_they_should(host: Host) -> None:
    for register in reg.REGISTERS:
        before = host.read(register)
        if register.access == "ro":
            host.write(register, ~before)
            assert host.read(register) == before, register.name
    for register in (reg.CMD_BASE_LO, reg.CMD_BASE_HI, reg.WATCHDOG, reg.IRQ_ENABLE):
        host.write(register, 0x12345678)
        assert host.read(register) == 0x12345678
    host.write(reg.COUNTER_SNAPSHOT, 1)
    assert all(host.read(r) == 0 for r in reg.REGISTERS if reg.CYCLES_LO.offset <= r.offset <= reg.IDLE_HI.offset)
    for offset in (0x68, 2, 0x1000):
        with pytest.raises(DeviceError):
            host.device.read_register(offset)
        with pytest.raises(DeviceError):
            host.device.write_register(offset, 1)


def test_memory_has_an_end(host: Host) -> None:
    size = host.config.window_bytes
    host.device.write_memory(size - 4, b"abcd")
    assert host.device.read_memory(size - 4, 4) == b"abcd"
    assert host.device.read_memory(size, 0) == b""
    for address, count in ((size, 1), (size - 3, 4), (-4, 4), (1 << 64, 1)):
        with pytest.raises(DeviceError):
            host.device.read_memory(address, count)
        with pytest.raises(DeviceError):
            host.device.write_memory(address, bytes(count))


def test_sizes_of_memory() -> None:
    assert open_emulator(config("u50")).read_register(reg.MEM_SIZE_LO.offset) == 1 << 30
    assert open_emulator(config("u50"), 1 << 26).read_register(reg.MEM_SIZE_LO.offset) == 1 << 26
    for wrong in (0, -64, 100):
        with pytest.raises(BadInput):
            open_emulator(config("tiny"), wrong)


def test_nothing_runs_before_enable(host: Host) -> None:
    host.write(reg.CONTROL, 0)
    nops(host, 2)
    host.ring()
    assert (host.read(reg.CMD_HEAD), host.read(reg.CPL_TAIL), status(host)[0]) == (0, 0, 0)
    assert not host.device.wait(1, 0)
    host.write(reg.CONTROL, 1)
    assert host.device.wait(2, 0)
    assert not host.device.wait(3, 0.01)
    assert [host.take()["index"] for _ in range(2)] == [0, 1]


def test_indices_wrap(host: Host) -> None:
    """Past 2^32 the entry is still the index modulo the size."""
    host.device._host._head = host.device._host._completed = host.tail = host.taken = 0xFFFFFFFD
    host.device._host._words[reg.CPL_HEAD.offset] = host.device._host._words[reg.CMD_TAIL.offset] = 0xFFFFFFFD
    for _ in range(3):
        nops(host, 2)
        host.ring()
        for _ in range(2):
            index = host.taken
            assert host.take()["index"] == index
    assert (host.tail, host.read(reg.CMD_HEAD), host.read(reg.CPL_TAIL)) == (3, 3, 3)
    assert host.device.wait(0xFFFFFFFF, 0)  # long ago
    assert not host.device.wait(4, 0)


def test_rings_of_every_size(host: Host) -> None:
    for log2 in (0, 1, 5):
        host.device.reset()
        host.log2 = log2
        host.setup()
        for _ in range(2):
            nops(host, 1 << log2)
            host.ring()
            for _ in range(1 << log2):
                host.take()


def test_a_full_completion_ring_holds_back(host: Host) -> None:
    """Nothing is lost, and no command behind is touched, until the host takes completions."""
    host.write(reg.CPL_LOG2, 1)
    nops(host, 4)
    host.ring()
    assert (host.read(reg.CMD_HEAD), host.read(reg.CPL_TAIL)) == (2, 2)
    assert status(host)[0] & BUSY
    assert not host.device.wait(3, 0)
    host.write(reg.CPL_HEAD, 1)
    assert (host.read(reg.CMD_HEAD), host.read(reg.CPL_TAIL)) == (3, 3)
    host.write(reg.CPL_HEAD, 3)
    assert host.read(reg.CPL_TAIL) == 4
    assert status(host)[0] == 1


def test_completions_taken_by_another_thread(host: Host) -> None:
    """`wait` sees what another thread lets happen."""
    host.write(reg.CPL_LOG2, 0)
    nops(host, 2)
    host.ring()
    taker = threading.Timer(0.02, host.write, (reg.CPL_HEAD, 1))
    taker.start()
    assert host.device.wait(2, 60)
    taker.join()


@pytest.mark.parametrize("ahead", [5, 0x80000000, 0xFFFFFFFF])
def test_ring_overrun(host: Host, ahead: int) -> None:
    host.device.ring_doorbell(ahead)
    assert status(host) == (HALTED, Fault.RING_OVERRUN, Unit.HOST)
    assert (host.read(reg.FAULT_DETAIL), host.read(reg.FAULT_TAG)) == (ahead, 0)
    assert (host.read(reg.CMD_HEAD), host.read(reg.CPL_TAIL)) == (0, 0)
    assert host.device.wait(1, 0)  # halted: there is nothing to wait for
    host.device.reset()
    assert status(host) == (0, 0, 0)
    host.setup()
    host.done(Operation.NOP)


def test_a_ring_outside_the_memory(host: Host) -> None:
    host.write(reg.CMD_BASE_LO, 1 << 20)
    host.device.ring_doorbell(1)
    assert status(host) == (HALTED, Fault.BUS_READ, Unit.MEMORY)
    host.device.reset()
    host.setup()
    host.write(reg.CPL_BASE_HI, 1)
    nops(host, 1)
    host.ring()
    assert status(host) == (HALTED, Fault.BUS_WRITE, Unit.MEMORY)
    assert host.read(reg.CPL_TAIL) == 0


def test_interrupts(host: Host) -> None:
    host.done(Operation.NOP)
    assert host.read(reg.IRQ_STATUS) == 0
    host.done(Operation.NOP, flags=Flag.INTERRUPT)
    assert host.read(reg.IRQ_STATUS) == 1
    host.write(reg.IRQ_STATUS, 2)
    assert host.read(reg.IRQ_STATUS) == 1
    host.device.ring_doorbell(99)
    assert host.read(reg.IRQ_STATUS) == 3
    host.write(reg.IRQ_STATUS, 1)
    assert host.read(reg.IRQ_STATUS) == 2


def test_soft_reset_keeps_program_slots_and_memory(host: Host, seed: int) -> None:
    images, _ = network(host.config, np.random.default_rng(seed))
    host.load(images)
    step = {"slot": 3, "features": np.ones((2, images.header["feature_bytes"]), int)}
    assert host.encode([step | {"reset": 1}])["status"] == Fault.NONE
    before = host.saved(3)
    memory = host.device.read_memory(host.feature_address, 1024)
    host.device.ring_doorbell(host.tail + 77)
    assert status(host)[0] & HALTED
    host.write(reg.CONTROL, 2)
    registers = (reg.CMD_HEAD, reg.CMD_TAIL, reg.CPL_HEAD, reg.CPL_TAIL, reg.CONTROL, reg.FAULT_DETAIL, reg.IRQ_STATUS)
    assert [host.read(r) for r in registers] == [0] * len(registers)
    assert host.read(reg.STATUS) == 8  # a program is current; not enabled
    assert host.read(reg.PROGRAM_ID) == images.header["program_id"]
    assert host.device.read_memory(host.feature_address, 1024) == memory
    host.setup()
    for part, again in zip(before, host.saved(3), strict=True):
        np.testing.assert_array_equal(part, again)
    assert host.encode([step])["status"] == Fault.NONE


def test_a_stall_ends_with_reset(host: Host) -> None:
    host.device.stall()
    nops(host, 1)
    host.ring()
    assert not host.device.wait(1, 0.01)
    assert status(host) == (1 | BUSY, 0, 0)
    host.device.reset()
    host.setup()
    host.done(Operation.NOP)


def test_closing() -> None:
    device = open_emulator(config("tiny"))
    host = Host(device)
    images, _ = network(host.config, np.random.default_rng(0))
    host.load(images)
    device.close()
    device.close()
    for call in (lambda: device.read_register(0), lambda: device.write_register(0, 0), lambda: device.read_memory(0, 1),
                 lambda: device.write_memory(0, b"1"), lambda: device.ring_doorbell(1), lambda: device.wait(1, 0),
                 device.reset, device.stop_trace):  # fmt: skip
        with pytest.raises(DeviceError):
            call()


def test_an_unknown_kernel() -> None:
    with pytest.raises(ValueError, match="kernel"):
        EmulatorDevice(config("tiny"), 1 << 15, "abacus")
