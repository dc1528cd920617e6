# SPDX-License-Identifier: Apache-2.0
"""Opening and closing: who answers, whether it fits, how a program gets there, and what is left behind."""

from __future__ import annotations

import numpy as np
import pytest
from fake_device import Failing, FakeDevice
from small_program import TINY, assemble

from gharial.driver import Driver, plan_memory
from gharial.driver.layout import ALIGN, entry_bytes, state_bytes
from gharial.errors import BadInput, BadRequest, CommandFailed, DeviceError, GharialError, LinkError
from gharial.isa import _registers as reg
from gharial.isa.commands import Flag, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault, Unit
from gharial.program import Program
from gharial.program.manifest import SPACES

MASK = 0xFFFFFFFF


def opened(device: FakeDevice, **options: object) -> Driver:
    return Driver(device, assemble(), timeout=60, **options)


def refused(device: FakeDevice, kind: type[GharialError]) -> str:
    with pytest.raises(kind) as caught:
        opened(device)
    assert device.closed, "a device must be let go of when it cannot be used"
    assert 1 <= len(str(caught.value).splitlines()) <= 3
    return str(caught.value)


@pytest.mark.parametrize("word", [0, MASK])
def test_a_dead_link(word: int) -> None:
    device = FakeDevice(TINY)
    device.registers = dict.fromkeys(reg.REGISTERS, word)
    text = refused(device, LinkError)
    assert "does not answer" in text and f"{word:#010x}" in text
    assert device.log == []


def test_something_else_answers() -> None:
    device = FakeDevice(TINY)
    device.registers[reg.ID] = 0x12345678
    assert "no Gharial: its identity reads 0x12345678" in refused(device, LinkError)
    assert device.log == [], "nothing must be written to a stranger's registers"


@pytest.mark.parametrize("version", [0x00010002, 0x00020000, 0x00000009])
def test_another_interface_version(version: int) -> None:
    device = FakeDevice(TINY)
    device.registers[reg.VERSION] = version
    text = refused(device, BadInput)
    assert f"found {version >> 16}.{version & 0xFFFF}, expected 1.1" in text and "bitstream" in text


def test_another_configuration() -> None:
    device = FakeDevice(config("ecp5-85f"))
    text = refused(device, BadInput)
    assert "ecp5-85f" in text and "tiny" in text and "--config ecp5-85f" in text


def test_the_memory_is_too_small() -> None:
    """In numbers, and before anything is written to it."""
    device = FakeDevice(TINY, 512)
    text = refused(device, BadInput)
    assert "found 512 bytes" in text and "512 commands" in text and "staging" in text
    assert not [entry for entry in device.log if entry[0] == "write"]


def test_the_device_is_quiet_before_and_after() -> None:
    """It may still be running for someone who is gone."""
    device = FakeDevice(TINY)
    device.regs[reg.CONTROL.offset] = 1
    device.head = device.tail = 5
    driver = opened(device)
    assert device.log[:2] == [("register", "CONTROL", 0), ("reset",)]
    device.log.clear()
    driver.close()
    driver.close()
    assert device.log == [("register", "CONTROL", 0), ("reset",)] and device.closed == 1
    with pytest.raises(GharialError, match="closed"):
        driver.poll()
    with pytest.raises(GharialError, match="closed"):
        driver.reset("encoder", [0])


def test_a_reset_that_does_nothing() -> None:
    device = FakeDevice(TINY)
    device.registers[reg.CPL_TAIL] = 3
    assert "soft reset left CPL_TAIL at 3" in refused(device, DeviceError)


def test_closing_a_dead_device() -> None:
    device = FakeDevice(TINY)
    driver = opened(device)
    device.reset_error = DeviceError("no answer")
    driver.close()
    assert device.closed == 1


def test_context_manager() -> None:
    device = FakeDevice(TINY)
    with pytest.raises(ZeroDivisionError), opened(device):
        raise ZeroDivisionError
    assert device.closed == 1


# Loading


def test_the_program_arrives_whole() -> None:
    device, seen = FakeDevice(TINY), []
    program = assemble()
    with Driver(device, program, progress=lambda done, total: seen.append((done, total))):
        for number, space in enumerate(SPACES):
            assert bytes(device.images[number]) == program.sections[space.name], space.name
        total = sum(len(program.sections[space.name]) for space in SPACES)
        assert seen[-1] == (total, total) and [done for done, _ in seen] == sorted({done for done, _ in seen})
        assert device.ran[-1].operation == Operation.START
        assert not device.ran[0].fields["flags"] & Flag.IN_PLACE


def test_chunks_fit_the_window() -> None:
    """A window so small that every space comes in pieces."""
    device = FakeDevice(TINY, 4096)
    with opened(device, ring_log2=1) as driver:
        program = assemble()
        for number, space in enumerate(SPACES):
            assert bytes(device.images[number]) == program.sections[space.name]
        loads = [c.fields["bytes"] for c in device.ran if c.operation == Operation.LOAD]
        assert max(loads) <= driver.plan.staging.size // 2 and len(loads) > 6


@pytest.mark.parametrize("times", [1, 2])
def test_a_chunk_that_arrives_damaged_is_sent_again(times: int) -> None:
    device = FakeDevice(TINY, 4096)
    failed = []

    class Bad(dict):
        def pop(self, key: object, default: object = None) -> object:
            if key == Operation.LOAD and len(device.ran) == 3 and len(failed) < times:
                failed.append(key)
                return Failing(Fault.CHECKSUM, Unit.HOST)
            return default

    device.failing_next = Bad()
    with opened(device, ring_log2=1):
        program = assemble()
        assert len(failed) == times
        for number, space in enumerate(SPACES):
            assert bytes(device.images[number]) == program.sections[space.name]


def test_a_chunk_that_never_arrives_whole() -> None:
    device = FakeDevice(TINY)

    class Bad(dict):
        def pop(self, key: object, default: object = None) -> object:
            return Failing(Fault.CHECKSUM, Unit.HOST) if key == Operation.LOAD else default

    device.failing_next = Bad()
    text = refused(device, CommandFailed)
    assert "LOAD failed with CHECKSUM" in text and "cable" in text


def test_a_program_that_the_device_refuses() -> None:
    device = FakeDevice(TINY)
    device.failing_next[Operation.START] = Failing(Fault.BAD_PROGRAM, Unit.HOST, detail=14)
    text = refused(device, CommandFailed)
    assert "START failed with BAD_PROGRAM" in text and "detail 0xe" in text and "compile it again" in text


def test_a_device_that_counts_slots_differently() -> None:
    device = FakeDevice(TINY)
    device.registers[reg.PRED_SLOTS] = 3
    assert "the device has 3 prediction slots, expected 64" in refused(device, DeviceError)
    device = FakeDevice(TINY)
    device.registers[reg.PROGRAM_ID] = 3
    assert "runs program 0x00000003" in refused(device, DeviceError)


def test_options_reach_the_device() -> None:
    device = FakeDevice(TINY)
    with opened(device, watchdog=12345, interrupts=True, ring_log2=2) as driver:
        assert device.regs[reg.WATCHDOG.offset] == 12345
        assert device.regs[reg.IRQ_ENABLE.offset] == 3
        assert device.regs[reg.CMD_LOG2.offset] == device.regs[reg.CPL_LOG2.offset] == 2
        driver.reset("encoder", [0]).result()
        assert device.ran[-1].fields["flags"] & Flag.INTERRUPT
    with opened(FakeDevice(TINY), encoder_slots=3, prediction_slots=5) as driver:
        assert (driver.encoder_slots.count, driver.prediction_slots.count) == (3, 5)
    for slots in (0, 17):
        device = FakeDevice(TINY)
        with pytest.raises(BadRequest, match=f"found {slots}, expected 1..16"):
            opened(device, encoder_slots=slots)
        assert device.closed


@pytest.mark.parametrize(
    ("kind", "asked", "checked"), [("fake", None, 0), ("fake", True, 2), ("litex", None, 2), ("litex", False, 0)]
)
def test_checksums_where_the_link_needs_them(kind: str, asked: bool | None, checked: int) -> None:
    device = FakeDevice(TINY)
    device.kind = kind
    with opened(device, checked=asked) as driver:
        driver.reset("encoder", [0]).result()
        assert device.ran[-1].fields["flags"] & Flag.CHECKED == checked


# Where everything lies


def in_memory(name: str) -> Program:
    """The small program, taken for one of a configuration with its weights in device memory."""
    program = assemble()
    manifest = program.manifest | {"config": {"name": name, "id": config(name).config_id}}
    return Program(manifest, program.sections)


@pytest.mark.parametrize("name", ["tiny", "kv260", "u50", "u55c"])
@pytest.mark.parametrize("ring_log2", [None, 0, 5])
def test_the_plan(name: str, ring_log2: int | None) -> None:
    program = in_memory(name)
    plan = plan_memory(program, config(name).window_bytes, ring_log2)
    regions = plan.regions
    assert (len(regions) == 6) == config(name).in_memory
    for region, following in zip(regions, [*regions[1:], None], strict=True):
        assert region.size > 0 and region.address % ALIGN == 0
        assert region.end <= (following.address if following is not None else plan.memory_bytes)
    assert plan.commands.size == 64 << plan.ring_log2 and plan.completions.size == 32 << plan.ring_log2
    assert all(region.name in str(plan) for region in regions)
    if plan.state is not None and plan.weights is not None:
        assert plan.state.size == state_bytes(program)
        assert plan.weights.size == len(program.sections["weights"])


def test_the_plan_in_numbers() -> None:
    program = in_memory("kv260")
    header = program.header
    slots = 4096 * 384 + 49152 * 192  # 2 * 32 + 10 * 32 = 384 bytes, and 32 + 5 * 32 = 192
    assert (header["enc_a_units"], header["enc_c_units"]) == (2, 10)
    assert state_bytes(program) == slots
    with pytest.raises(BadInput) as caught:
        plan_memory(program, slots)
    assert f"{slots} state" in str(caught.value) and "832 weights" in str(caught.value)
    enough = int(str(caught.value).split("expected ")[1].split(":")[0])
    plan_memory(program, enough)
    with pytest.raises(BadInput):
        plan_memory(program, enough - 1)
    with pytest.raises(BadInput, match="ring size out of range"):
        plan_memory(program, 1 << 30, 17)


def test_what_an_entry_needs() -> None:
    assert entry_bytes(assemble()) == {
        "encode": 16 + 8,
        "greedy": 16 + 8 + 8 + 8 * 5,
        "decode": 16 + 16 + 4,
        "encoder slot": 16 + 8 + 80,
        "prediction slot": 16 + 4 + 40,
    }


def test_weights_in_device_memory() -> None:
    """They are written to their final place; LOAD only checks them there, and START is told where."""
    from compiled import program as compiled

    program = compiled(5, "kv260")
    device = FakeDevice(config("kv260"), 64 << 20)
    with Driver(device, program) as driver:
        plan = driver.plan
        for region, name in ((plan.weights, "weights"), (plan.embedding, "embedding")):
            assert region is not None
            data = program.sections[name]
            assert bytes(device.memory[region.address : region.address + len(data)]) == data
        loads = [c.fields for c in device.ran if c.operation == Operation.LOAD]
        assert {f["space"] for f in loads if f["flags"] & Flag.IN_PLACE} == {1, 5}
        start = device.ran[-1].fields
        assert plan.weights is not None and plan.embedding is not None and plan.state is not None
        assert start["feature_lo"] == plan.weights.address and start["entry_lo"] == plan.embedding.address
        assert start["result_lo"] == plan.state.address
        writes = [entry for entry in device.log if entry[0] == "write"]
        assert max(int(np.int64(entry[2])) for entry in writes) <= 1 << 20
