# SPDX-License-Identifier: Apache-2.0
"""LiteX's bridges as the other side of a link: UARTBone at a pseudo-terminal, Etherbone at a UDP socket.

Behind them is the bus of a board's image (docs/bitstream.md), whose accelerator is the emulator. They keep to what
LiteX's gateware does, its weaknesses included: UARTBone hears nothing while it answers, forgets a command that is not
complete after 100 ms (an answer takes less at the rates in use) and acknowledges nothing; Etherbone stands still after
a record that its buffer cannot hold.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
import tty
from collections.abc import Callable

from gharial.devices.base import Device
from gharial.devices.litex.device import BusMap
from gharial.errors import DeviceError
from gharial.isa import _registers as reg

FORGET_S = 0.1
NOBODY = 0xFFFFFFFF
_SLICE = 0.02
_SIZES = {r.offset for r in reg.REGISTERS}


class Bus:
    """A board's bus: words at byte addresses.

    Attributes:
        errors: accesses that nobody answered.
        log: (address, value) of every write.
        identifier: of the image, a character a word from 0x800 on.
    """

    def __init__(self, device: Device, places: BusMap | None = None, identifier: str = "") -> None:
        self.device = device
        self.identifier = identifier.encode()
        self.places = places or BusMap()
        self.errors = 0
        self.log: list[tuple[int, int]] = []

    def _where(self, address: int) -> tuple[str, int]:
        for name, size in (("registers", 0x100), ("memory", self.device.config.window_bytes)):
            offset = address - getattr(self.places, name)
            if 0 <= offset < size:
                return name, offset
        return "", 0

    def read(self, address: int) -> int:
        """The word there; all ones where nobody answers."""
        name, offset = self._where(address)
        if name == "memory":
            return int.from_bytes(self.device.read_memory(offset, 4), "little")
        if name == "registers":
            return self.device.read_register(offset) if offset in _SIZES else 0
        if 0x800 <= address < 0x1000:
            at = (address - 0x800) // 4
            return self.identifier[at] if at < len(self.identifier) else 0
        self.errors += 1
        return NOBODY

    def write(self, address: int, value: int) -> None:
        """Set the word there; nothing happens where nobody answers."""
        self.log.append((address, value))
        name, offset = self._where(address)
        if name == "memory":
            self.device.write_memory(offset, value.to_bytes(4, "little"))
        elif name == "registers":
            if offset in _SIZES:
                self.device.write_register(offset, value)
        else:
            self.errors += 1


class Server:
    """A thread that serves until it is stopped."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and raise what went wrong meanwhile."""
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self.failure is not None and not isinstance(self.failure, DeviceError):
            raise self.failure

    def _run(self) -> None:
        try:
            self.serve()
        except BaseException as error:
            self.failure = error

    def serve(self) -> None:
        """Serve until it is stopped."""
        raise NotImplementedError


Fault = Callable[[int, int], int | None]
"""Given number and value of a byte: what becomes of it, None for nothing."""


class UartServer(Server):
    """UARTBone at a pseudo-terminal.

    Attributes:
        path: of the port that a host opens.
        received, sent: bytes from and to the host.
        reads: read commands that were answered: round trips.
        overrun: bytes that came while it answered, and were lost.
        to_board, to_host: faults of the wire.
        mute: takes everything and answers nothing.
        forget_s: seconds after which a command that is not complete is forgotten. A board counts them by its own
            clock, this one by that of a machine that may be busy.
    """

    def __init__(self, bus: Bus) -> None:
        super().__init__()
        self.bus = bus
        self.forget_s = FORGET_S
        self.received = self.sent = self.reads = self.overrun = self.forgotten = 0
        self.to_board: Fault | None = None
        self.to_host: Fault | None = None
        self.mute = False
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self._command = bytearray()
        self._since = 0.0

    def serve(self) -> None:
        """Take what the host sends, and answer it."""
        while not self._stop.is_set():
            if self._command and time.monotonic() - self._since > self.forget_s:
                self._command.clear()
                self.forgotten += 1
            if select.select([self._master], [], [], _SLICE)[0]:
                try:
                    data = os.read(self._master, 4096)
                except OSError:
                    return
                for index, value in enumerate(data):
                    if self._take(value):
                        # The answer takes longer than any byte: whatever was sent by now finds nobody listening.
                        rest = len(data) - index - 1
                        self.received += rest
                        self.overrun += rest
                        break

    def _take(self, value: int) -> bool:
        """One byte from the host; whether an answer followed."""
        number, self.received = self.received, self.received + 1
        seen = value if self.to_board is None else self.to_board(number, value)
        if seen is None or self.mute:
            return False
        if not self._command:
            self._since = time.monotonic()
        self._command.append(seen)
        command = self._command
        if len(command) < 6:
            return False
        code, words, address = command[0], command[1] or 256, int.from_bytes(command[2:6], "big")
        if code not in (1, 2, 3, 4):
            command.clear()
            return False
        step = code < 3
        if code in (2, 4):
            command.clear()
            self.reads += 1
            self._answer(b"".join(self._word(address + step * n).to_bytes(4, "big") for n in range(words)))
            return True
        # Each word is written as soon as it is there: a command that breaks off has written some.
        body = len(command) - 6
        if body and body % 4 == 0:
            place = address + step * (body // 4 - 1)
            self.bus.write(place * 4, int.from_bytes(command[-4:], "big"))
        if body == 4 * words:
            command.clear()
        return False

    def _word(self, place: int) -> int:
        return self.bus.read(place * 4 & 0xFFFFFFFF)

    def _answer(self, data: bytes) -> None:
        out = bytearray()
        for value in data:
            number, self.sent = self.sent, self.sent + 1
            seen = value if self.to_host is None else self.to_host(number, value)
            if seen is not None:
                out.append(seen)
        os.write(self._master, out)

    def vanish(self) -> None:
        """The port is pulled out."""
        self._stop.set()
        self._thread.join(30)
        self._close()

    def _close(self) -> None:
        for number in (self._master, self._slave):
            if number >= 0:
                os.close(number)
        self._master = self._slave = -1

    def stop(self) -> None:
        """End."""
        super().stop()
        self._close()


Path = Callable[[int, bytes], list[bytes]]
"""Given number and content of a packet: what arrives in its place."""


class EtherServer(Server):
    """Etherbone at a UDP socket of 127.0.0.2; answers go to the sender's address and the port it listens at itself.

    Attributes:
        port: UDP port.
        received: packets from the host.
        to_board, to_host: faults of the network.
        mute: takes everything and answers nothing.
        stuck: stands still, since a record was larger than its buffer, or wrote and read.
    """

    HOST = "127.0.0.2"
    BUFFER = 16

    def __init__(self, bus: Bus) -> None:
        super().__init__()
        self.bus = bus
        self.received = self.answered = 0
        self.to_board: Path = lambda number, data: [data]
        self.to_host: Path = lambda number, data: [data]
        self.mute = self.stuck = False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((self.HOST, 0))
        self._socket.settimeout(_SLICE)
        self.port = int(self._socket.getsockname()[1])

    def serve(self) -> None:
        """Take packets, and answer them."""
        while not self._stop.is_set():
            try:
                data, sender = self._socket.recvfrom(4096)
            except TimeoutError:
                continue
            number, self.received = self.received, self.received + 1
            for packet in self.to_board(number, data):
                self._packet(packet, (sender[0], self.port))

    def _packet(self, data: bytes, back: tuple[str, int]) -> None:
        magic, flags, sizes = struct.unpack_from(">HBB", data)
        if magic != 0x4E6F or self.mute or self.stuck:
            return
        if flags & 1:
            self._send(struct.pack(">HBB4x", magic, 0x12, sizes) + data[8:], back)
            return
        _, enabled, writes, reads = struct.unpack_from(">4B", data, 8)
        body = [word for (word,) in struct.iter_unpack(">I", data[12:])]
        assert enabled == 0x0F and sizes == 0x44
        if len(body) > self.BUFFER or (writes and reads):  # LiteEth 2024.12 loses its way in the latter, too
            self.stuck = True
            return
        if writes:
            base, words = body[0], body[1:]
            assert len(words) == writes
            for index, word in enumerate(words):
                self.bus.write(base + 4 * index, word)
        if reads:
            back_to, places = body[0], body[1:]
            assert len(places) == reads
            found = [self.bus.read(place) for place in places]
            head = struct.pack(">HBB4x4B", magic, 0x10, 0x44, 0, 0x0F, reads, 0)
            self._send(head + struct.pack(f">{1 + reads}I", back_to, *found), back)

    def _send(self, data: bytes, back: tuple[str, int]) -> None:
        number, self.answered = self.answered, self.answered + 1
        for packet in self.to_host(number, data):
            self._socket.sendto(packet, back)

    def stop(self) -> None:
        """End."""
        super().stop()
        self._socket.close()
