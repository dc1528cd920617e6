# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on the device: faults, halts, silence; what is said, what is lost, and how it goes on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from driver_cases import SOON, STEP, lines, seal, sent, small_driver, submit
from fake_device import Failing, FakeDevice
from small_program import TINY

from gharial.driver import Driver, GreedyEntry
from gharial.errors import CommandFailed, DeviceError, DeviceTimeout, GharialError
from gharial.isa import _registers as reg
from gharial.isa.commands import Operation
from gharial.isa.faults import Fault, Unit

HALTING = [fault for fault in Fault if fault.halts]


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice(TINY)


@pytest.fixture
def driver(device: FakeDevice) -> Iterator[Driver]:
    with small_driver(device) as driver:
        yield driver


# A command that fails

LOST = {"greedy": ((3, 4), (13, 14)), "encode": ((3, 4), ()), "decode": ((), (13,)), "copy": ((), (14,))}


@pytest.mark.parametrize("what", LOST)
@pytest.mark.parametrize(
    ("fault", "unit", "keeps"),
    [
        (Fault.BAD_COMMAND, Unit.HOST, True),
        (Fault.BAD_ENTRY, Unit.SEQUENCER, True),
        (Fault.BAD_SLOT, Unit.SEQUENCER, True),
        (Fault.HAZARD, Unit.SEQUENCER, True),
        (Fault.NO_PROGRAM, Unit.SEQUENCER, True),
        (Fault.ADDRESS, Unit.HOST, True),
        (Fault.ADDRESS, Unit.MATRIX, False),
        (99, Unit.MATRIX, False),
        (Fault.CHECKSUM, Unit.HOST, None),
    ],
)
def test_a_fault_fails_its_command_alone(
    driver: Driver, device: FakeDevice, what: str, fault: int, unit: Unit, keeps: bool | None
) -> None:
    """A checksum may be that of features, which are read when the command has begun; others have none."""
    device.slots = {(True, n): bytes(44) for n in range(16)}
    before, index = driver.reset("encoder", [0]), sent(driver)
    device.failing[index] = Failing(fault, unit, 1, 0x2A)
    ticket = submit(driver, what)
    after = driver.reset("encoder", [1])
    with pytest.raises(CommandFailed) as caught:
        ticket.result()
    error = caught.value
    name = Fault(fault).name if fault in list(Fault) else "fault 99"
    assert f"{what.upper()} failed with {name}" in lines(error)[0] and ";" in lines(error)[0]
    assert (error.code, error.detail, error.fault) == (fault, 0x2A, name)
    assert error.entry == 1
    assert ("at entry 1" in lines(error)[0]) == (what != "copy")
    kept = what in ("decode", "copy") if keeps is None else keeps
    assert (error.lost_encoder, error.lost_prediction) == (((), ()) if kept else LOST[what])
    assert (ticket.lost_encoder, ticket.lost_prediction) == (error.lost_encoder, error.lost_prediction)
    assert before.result() is None and after.result() is None


def test_a_damaged_descriptor_changes_nothing(driver: Driver, device: FakeDevice) -> None:
    """The device does not know whose it is: tag 0."""
    device.failing[sent(driver)] = Failing(Fault.CHECKSUM, Unit.HOST)

    def forget(index: int, words: np.ndarray) -> None:
        words[0] = 0
        seal(words)

    device.mangle = forget
    with pytest.raises(CommandFailed) as caught:
        submit(driver, "greedy").result()
    assert caught.value.lost_encoder == () and "cable" in str(caught.value)


def test_the_entry_is_that_of_the_batch(device: FakeDevice) -> None:
    """Of a batch sent in pieces the others are done all the same."""
    small = FakeDevice(TINY, 1024)
    with small_driver(small, ring_log2=1) as driver:
        small.failing[sent(driver) + 1] = Failing(Fault.BAD_SLOT, Unit.SEQUENCER, 1)
        ticket = driver.greedy([GreedyEntry(n, STEP, prediction=n) for n in range(16)])
        with pytest.raises(CommandFailed, match="at entry 3: ") as caught:
            ticket.result()
        assert caught.value.entry == 3 and small.ran[-1].entries[-1]["slot"] == 15


# A device that halts


@pytest.mark.parametrize("said", [True, False], ids=["with a completion", "without one"])
@pytest.mark.parametrize("fault", HALTING)
def test_a_halt(driver: Driver, device: FakeDevice, fault: Fault, said: bool) -> None:
    device.steps = 1
    good = driver.reset("encoder", [0])
    bad = submit(driver, "greedy")
    behind = driver.reset("encoder", [7])
    device.failing_next[Operation.GREEDY] = Failing(fault, Unit.MEMORY, 0 if said else 0xDEAD, 0x99)
    assert good.result() is None
    with pytest.raises(CommandFailed) as caught:
        bad.result()
    assert f"GREEDY failed with {fault.name}" in lines(caught.value)[0] and caught.value.unit == "memory"
    assert (caught.value.lost_encoder, caught.value.lost_prediction) == ((3, 4), (13, 14))
    with pytest.raises(DeviceError, match=f"halted with {fault.name}"):
        behind.result()
    with pytest.raises(DeviceError, match="halted"):
        driver.reset("encoder", [1])

    loads = sum(command.operation == Operation.LOAD for command in device.ran)
    recovery = driver.recover()
    assert (recovery.lost_encoder, recovery.lost_prediction) == ((3, 4), (13, 14))
    assert not recovery.reloaded
    assert sum(command.operation == Operation.LOAD for command in device.ran) == loads
    assert driver.reset("encoder", [1]).result() is None
    assert driver.recover().lost_encoder == (), "what was lost is told once"


def test_a_halt_with_nothing_behind(driver: Driver, device: FakeDevice) -> None:
    device.failing_next[Operation.GREEDY] = Failing(Fault.BUS_READ, Unit.MEMORY)
    with pytest.raises(CommandFailed):
        submit(driver, "greedy").result()
    with pytest.raises(DeviceError, match="halted with BUS_READ"):
        driver.reset("encoder", [1])
    assert driver.recover().lost_encoder == (3, 4)


def test_a_program_that_is_gone_is_loaded_again(driver: Driver, device: FakeDevice) -> None:
    device.held = sent(driver)
    ticket = submit(driver, "encode")

    def lose() -> None:
        device.header, device.images, device.held = {}, {}, None

    device.resets_to = lose
    recovery = driver.recover()
    assert recovery.reloaded and recovery.failed == 1
    assert recovery.lost_encoder == tuple(range(16)) and recovery.lost_prediction == tuple(range(64))
    with pytest.raises(DeviceError, match="given up in a recovery"):
        ticket.result()
    assert driver.reset("encoder", [0]).result() is None


# A device that does not get done


@pytest.mark.parametrize(
    ("counter", "unit", "words"),
    [
        ("active", "matrix unit", "still multiplies"),
        ("weights", "memory", "waits for weights"),
        ("dependency", "sequencer", "results of an earlier one"),
        ("backpressure", "vector unit", "holds the others back"),
        ("loading", "memory", "are being loaded"),
        ("idle", "sequencer", "idles although a command is outstanding"),
    ],
)
def test_a_stuck_command(driver: Driver, device: FakeDevice, counter: str, unit: str, words: str) -> None:
    device.held, device.fetched = sent(driver), 1
    device.ticks = {"cycles": 100, counter: 80, "idle" if counter != "idle" else "active": 20}
    ticket = submit(driver, "greedy")
    with pytest.raises(DeviceTimeout) as caught:
        ticket.result(SOON)
    assert caught.value.unit == unit and words in str(caught.value) and "80 % of 100 clocks" in str(caught.value)
    assert "waited 0.05 s" in str(caught.value) and not ticket.done
    lines(caught.value)
    device.held = None
    assert len(ticket.result()) == 2, "it was only late"


def test_counters_wrap(driver: Driver, device: FakeDevice) -> None:
    device.counted |= {"cycles": (1 << 64) - 5, "weights": (1 << 64) - 1}
    device.ticks = {"cycles": 10, "weights": 10}
    before = driver.counters()
    spent = driver.counters().since(before)
    assert (spent.cycles, spent.weights, spent.active) == (10, 10, 0)


@pytest.mark.parametrize("fetched", [0, 1])
def test_recovery_after_a_timeout(driver: Driver, device: FakeDevice, fetched: int) -> None:
    """Lost is what the device had begun; a command that was never fetched has changed nothing."""
    device.held, device.fetched = sent(driver), fetched
    first, second = submit(driver, "greedy"), driver.reset("encoder", [7])
    with pytest.raises(DeviceTimeout) as caught:
        first.result(SOON)
    assert caught.value.unit == ("clock" if fetched else "host interface")
    device.held = None
    recovery = driver.recover()
    assert recovery.failed == 2
    assert recovery.lost_encoder == ((3, 4) if fetched else ())
    assert recovery.lost_prediction == ((13, 14) if fetched else ())
    for ticket in (first, second):
        with pytest.raises(DeviceError, match="given up"):
            ticket.result()
    assert len(submit(driver, "greedy").result()) == 2


def test_what_ended_meanwhile_is_not_lost(driver: Driver, device: FakeDevice) -> None:
    device.held = sent(driver)
    ticket = submit(driver, "greedy")
    with pytest.raises(DeviceTimeout):
        ticket.result(0)
    device.held = None
    device.run()
    assert driver.recover() == type(driver.recover())((), (), 0, False)
    assert len(ticket.result()) == 2


def test_not_fetched(driver: Driver, device: FakeDevice) -> None:
    device.held = sent(driver)
    device.registers[reg.STATUS] = 0b1001
    with pytest.raises(DeviceTimeout, match="1 commands were never fetched") as caught:
        submit(driver, "encode").result(SOON)
    assert caught.value.unit == "host interface"


def test_not_enabled(driver: Driver, device: FakeDevice) -> None:
    """Someone else reset it."""
    device.held = sent(driver)
    ticket = submit(driver, "encode")
    device.regs[reg.CONTROL.offset] = 0
    with pytest.raises(DeviceTimeout, match="not enabled: someone else"):
        ticket.result(SOON)


def test_no_room(device: FakeDevice) -> None:
    with small_driver(device, ring_log2=1, timeout=SOON) as driver:
        device.held = sent(driver)
        driver.reset("encoder", [0])
        driver.reset("encoder", [1])
        with pytest.raises(DeviceTimeout, match="room for a command"):
            driver.reset("encoder", [2])
        with pytest.raises(DeviceTimeout, match="all commands"):
            driver.wait_all()


def test_closing_ends_what_is_in_flight(driver: Driver, device: FakeDevice) -> None:
    device.held = sent(driver)
    ticket = submit(driver, "encode")
    driver.close()
    with pytest.raises(GharialError, match="the driver was closed"):
        ticket.result()


def test_a_slot_is_wiped_before_it_is_someone_elses(driver: Driver, device: FakeDevice) -> None:
    """It was given back while the device could not do it."""
    (slot,) = driver.allocate("encoder")
    device.slots = {(False, slot): b"secret"}
    device.failing_next[Operation.GREEDY] = Failing(Fault.WATCHDOG, Unit.SEQUENCER)
    with pytest.raises(CommandFailed):
        submit(driver, "greedy").result()
    with pytest.raises(DeviceError, match="halted"):
        driver.release("encoder", [slot])
    assert driver.encoder_slots.free == 16
    with pytest.raises(DeviceError, match="halted"):
        driver.allocate("encoder")
    assert driver.encoder_slots.free == 16
    driver.recover()
    assert driver.allocate("encoder") == (slot,)
    driver.wait_all()
    assert device.slots == {}
