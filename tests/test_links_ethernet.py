# SPDX-License-Identifier: Apache-2.0
"""A board on the network: a real UDP socket, with LiteEth's Etherbone and the emulator at its other end."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from links import LONG, SOON, Board, board, connect, emulator, expected, expected_frames, frames
from sim.links.bridges import Bus, EtherServer
from small_program import TINY, assemble
from small_run import transcript

import gharial
from gharial.devices.litex.etherbone import MOST, EtherboneBridge, answer, reading, writing
from gharial.driver import Driver
from gharial.errors import BadInput, DeviceError, GharialError, LinkError
from gharial.isa import _registers as reg
from gharial.isa.configs import config
from gharial.model import open_model


@pytest.fixture
def here() -> Iterator[Board]:
    with board(EtherServer) as found:
        yield found


@pytest.fixture
def driver(here: Board) -> Iterator[Driver]:
    with Driver(here.link, assemble(), timeout=LONG) as driver:
        yield driver


def test_packets_byte_by_byte() -> None:
    """As LiteX's own host tool makes them: header, record, base and words, return address and addresses."""
    head = "4e6f1044" + "00000000"
    assert reading(0x30000010, 2, 7).hex() == head + "000f0002" + "00000007" + "30000010" + "30000014"
    words = bytes.fromhex("0102030405060708")
    assert writing(0x40000010, words).hex() == head + "000f0200" + "40000010" + "0102030405060708"
    assert answer(bytes.fromhex(head + "000f0200" + "00000007" + "0102030405060708")) == (7, words)
    assert answer(bytes.fromhex("4e6f1244" + "00000000")) == (0, b"")
    for bad in ("", "4e6f1044", "4e6e1044" + "00000000", head, head + "000f0200" + "00000007" + "01020304"):
        assert answer(bytes.fromhex(bad)) is None


def test_everything_that_a_device_can_be_asked(here: Board) -> None:
    here.unhurried()
    assert transcript(lambda _: here.link, assemble()) == expected()
    assert here.link.bridge.retries == 0 and here.bus.errors == 0
    assert not here.server.stuck, "a record was larger than the bridge's buffer"


def test_no_record_is_larger_than_the_bridges_buffer(here: Board, seed: int) -> None:
    here.unhurried()
    chosen = random.Random(seed)
    copy = bytearray(TINY.window_bytes)
    for _ in range(30):
        count = chosen.choice([0, 1, 4, 4 * MOST, 4 * MOST + 1, 4 * MOST + 4, 500])
        at = chosen.randrange(len(copy) - count + 1)
        data = chosen.randbytes(count)
        here.link.write_memory(at, data)
        copy[at : at + count] = data
        at = chosen.randrange(len(copy) - count + 1)
        assert here.link.read_memory(at, count) == copy[at : at + count]
    assert here.device.read_memory(0, len(copy)) == copy
    assert not here.server.stuck


def test_a_recording_by_its_device_name() -> None:
    program = open_model(None, config("ecp5-85f"))
    server = EtherServer(Bus(emulator.open_emulator(program.config)))
    server.start()
    audio = Path(str(gharial.__file__)).parent / "data" / "recordings" / "u084.flac"
    with gharial.load(device=f"litex:eth:{server.HOST}:{server.port}") as there, gharial.load() as plain:
        assert there.device.config.name == "ecp5-85f"
        assert there.transcribe(audio).text == plain.transcribe(audio).text != ""
    server.stop()


# A network that loses, doubles and delays


@pytest.mark.parametrize("way", ["to_board", "to_host"])
@pytest.mark.parametrize("what", ["lost", "doubled", "late"])
def test_packets_that_do_not_arrive_as_sent(here: Board, driver: Driver, seed: int, way: str, what: str) -> None:
    """Whichever it is: the streams come out as on the emulator, after errors that say what they are if need be."""
    chosen = random.Random(seed)
    server = here.server
    start = server.received if way == "to_board" else server.answered
    frames(driver)
    total = (server.received if way == "to_board" else server.answered) - start
    harmless = what != "late" or way == "to_host"
    for _ in range(4):
        first = server.received if way == "to_board" else server.answered
        hit = first + chosen.randrange(total)
        held: list[bytes] = []

        def fault(number: int, data: bytes, hit: int = hit, held: list[bytes] = held) -> list[bytes]:
            if number != hit:
                return [data, held.pop()] if held else [data]  # behind the one that was sent after it
            if what == "late":
                held.append(data)
            return [data, data] if what == "doubled" else []

        setattr(server, way, fault)
        errors = tried(driver)
        assert not (errors and harmless), errors
    assert here.link.bridge.retries or what == "doubled"


def tried(driver: Driver) -> list[str]:
    """A stream, after whatever it takes to get there: the errors on the way."""
    errors: list[str] = []
    for _ in range(3):
        try:
            assert frames(driver) == expected_frames()
        except GharialError as error:
            assert isinstance(error, DeviceError), error
            errors.append(str(error))
            driver.recover()
        else:
            return errors
    raise AssertionError(errors)


def rings(number: int, data: bytes) -> bool:
    """Whether a packet rings the doorbell."""
    del number
    place = 0x30000000 + reg.CMD_TAIL.offset
    return data[10] == 1 and struct.unpack_from(">I", data, 12)[0] == place


@pytest.mark.parametrize("arrived", [True, False])
def test_a_doorbell_is_not_rung_twice(here: Board, driver: Driver, arrived: bool) -> None:
    """Where its answer is lost a read tells that it arrived; where it is lost itself the read tells that it did not."""
    frames(driver)
    here.bus.log.clear()
    losing, packets = [1], []

    def to_board(number: int, data: bytes) -> list[bytes]:
        packets.append(rings(number, data))
        return [] if not arrived and packets[-1] and losing and losing.pop() else [data]

    def to_host(number: int, data: bytes) -> list[bytes]:
        """The answer to the read that is behind the doorbell."""
        del number
        return [] if arrived and packets[-2:-1] == [True] and losing and losing.pop() else [data]

    here.server.to_board, here.server.to_host = to_board, to_host
    driver.reset("encoder", [0]).result()
    assert here.link.bridge.retries >= 1 and not losing
    assert len(here.bells()) == 1


def test_a_late_doorbell_halts_and_is_recovered_from(here: Board, driver: Driver) -> None:
    """The network holds one back until the next has been rung: the index goes backwards."""
    held: list[bytes] = []

    def to_board(number: int, data: bytes) -> list[bytes]:
        if rings(number, data) and not held:
            held.append(data)
            return [data]
        if rings(number, data) and held[0]:
            old, held[0] = held[0], b""
            return [data, old]
        return [data]

    here.server.to_board = to_board
    with pytest.raises(DeviceError, match="RING_OVERRUN"):
        frames(driver)
    here.server.to_board = lambda number, data: [data]
    driver.recover()
    assert frames(driver) == expected_frames()


def test_a_bridge_that_stops_answering(here: Board, driver: Driver) -> None:
    here.server.mute, here.link.bridge.answer_s = True, 0.02
    with pytest.raises(LinkError, match="no answer from 127") as caught:
        frames(driver)
    assert len(str(caught.value).splitlines()) <= 3
    with pytest.raises(LinkError, match="no answer"):
        driver.recover()
    here.server.mute, here.link.bridge.answer_s = False, SOON
    assert not driver.recover().reloaded
    assert frames(driver) == expected_frames()


def test_packets_of_others_are_not_taken_for_answers(here: Board, driver: Driver) -> None:
    """Garbage, answers to packets that nobody waits for, too few words."""

    def to_host(number: int, data: bytes) -> list[bytes]:
        del number
        other = data[:12] + bytes(4) + data[16:]
        short = data[:10] + bytes([data[10] - 1]) + data[11:-4]
        return [b"", b"x" * 40, other, short, data]

    here.unhurried()
    here.server.to_host = to_host
    assert frames(driver) == expected_frames()
    assert here.link.bridge.ignored and not here.link.bridge.retries


def test_nobody_there() -> None:
    server = EtherServer(Bus(emulator.open_emulator(TINY)))
    server.mute = True
    server.start()
    with pytest.raises(LinkError, match=r"no answer from .* 5 tries"):
        EtherboneBridge(server.HOST, server.port, SOON / 8)
    server.mute = False
    link = connect(server)
    with pytest.raises(LinkError, match="another program has the board"):
        EtherboneBridge(server.HOST, server.port, SOON)
    server.stop()
    with pytest.raises(LinkError, match="no answer"):  # refused at once, and asked again: it may be starting
        link.read_register(0)
    link.close()
    with pytest.raises(BadInput, match="cannot be resolved"):
        EtherboneBridge("no-such-board.invalid")
