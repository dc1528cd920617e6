# SPDX-License-Identifier: Apache-2.0
"""A device that fails under recognition: who is hit says so, everybody else goes on, nothing is lost for good."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recordings import FILES, LONG, SHORT, facts, pushed, samples

from gharial.decoding import DecoderOptions
from gharial.devices.emulator import EmulatorDevice
from gharial.errors import DeviceError, GharialError
from gharial.isa.faults import Fault
from gharial.recognise import Recogniser, load


@pytest.fixture(params=["greedy", "beam"])
def recogniser(request: pytest.FixtureRequest) -> Iterator[Recogniser]:
    with load(decoder=request.param, options=None if request.param == "greedy" else DecoderOptions(width=2)) as opened:
        yield opened


def emulator(recogniser: Recogniser) -> EmulatorDevice:
    assert isinstance(recogniser.device, EmulatorDevice)
    return recogniser.device


def break_it(recogniser: Recogniser, how: str) -> None:
    device = emulator(recogniser)
    if how == "watchdog":
        device.inject_watchdog()
    else:
        device.inject_bus_error(Fault.BUS_READ if how == "read" else Fault.BUS_WRITE)


@pytest.mark.parametrize("how", ["read", "write", "watchdog"])
def test_a_stream_that_is_hit_says_so_and_others_go_on(recogniser: Recogniser, how: str) -> None:
    whole = facts(recogniser.transcribe(LONG).tokens)
    other = recogniser.stream()
    other.push(samples(LONG)[:40000])
    hit = recogniser.stream()
    hit.feed(samples(SHORT))
    break_it(recogniser, how)
    recogniser.run()
    with pytest.raises(DeviceError):
        hit.take()
    with pytest.raises(DeviceError):
        hit.finish()
    # It had nothing on the device, so its state is as it was.
    other.push(samples(LONG)[40000:])
    assert facts(other.finish().tokens) == whole
    assert recogniser.free_streams == 8


def test_a_recording_that_is_hit_is_one_outcome_among_others(recogniser: Recogniser) -> None:
    good = [facts(recogniser.transcribe(path).tokens) for path in FILES[:3]]
    outcomes = []
    for index, outcome in enumerate(recogniser.transcribe_many(FILES[:3], streams=1)):
        outcomes.append(outcome)
        if index == 0:
            break_it(recogniser, "read")
    assert isinstance(outcomes[1], DeviceError)
    assert [facts(outcomes[i].tokens) for i in (0, 2)] == [good[0], good[2]]
    assert recogniser.free_streams == 8


def test_who_joins_after_the_fault_is_not_hit(recogniser: Recogniser) -> None:
    """The first one's next steps, whose slot is lost, must not drag a newcomer's commands down with them."""
    whole = facts(recogniser.transcribe(SHORT).tokens)
    with recogniser.stream() as hit, recogniser.stream() as newcomer:
        hit.feed(samples(LONG))
        break_it(recogniser, "read")
        recogniser.engine.submit()
        newcomer.feed(samples(SHORT))
        recogniser.run()
        assert facts(newcomer.finish().tokens) == whole
        with pytest.raises(DeviceError):
            hit.take()


def test_a_device_that_hangs_does_not_hang_the_host(recogniser: Recogniser) -> None:
    recogniser.driver.timeout = 0.2
    emulator(recogniser).stall()
    with pytest.raises(DeviceError):
        recogniser.transcribe(SHORT)
    assert recogniser.transcribe(SHORT).text == "on no"  # the driver has reset it


def test_a_device_that_is_gone_is_an_error_and_no_hang(recogniser: Recogniser) -> None:
    emulator(recogniser).close()
    for outcome in recogniser.transcribe_many(FILES[:2]):
        assert isinstance(outcome, DeviceError)


def test_a_closed_recogniser_says_so() -> None:
    recogniser = load()
    stream = recogniser.stream()
    stream.feed(samples(SHORT))
    recogniser.close()
    recogniser.close()
    with pytest.raises(GharialError, match="closed"):
        stream.finish()


def test_closing_with_streams_open_is_quiet() -> None:
    with load() as recogniser:
        stream = recogniser.stream()
        stream.push(samples(SHORT))
    stream.close()
    assert stream.text == "on no"


def test_after_a_fault_everything_is_as_before(recogniser: Recogniser) -> None:
    before = pushed(recogniser, samples(LONG))
    for how in ("read", "watchdog", "write"):
        break_it(recogniser, how)
        with pytest.raises(DeviceError):
            recogniser.transcribe(SHORT)
        assert pushed(recogniser, samples(LONG)) == before
