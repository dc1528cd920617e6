# SPDX-License-Identifier: Apache-2.0
"""LiteEth's Etherbone over UDP: one record a packet, each write read back, one answer waited for (docs/links.md).

Source: LiteEth's `frontend/etherbone.py`, which does not do all of CERN's specification: 32-bit addresses and data, one
record a packet, no flags but probe and answer. It sends to the UDP port that it listens at. A record must fit its
buffer, or the bridge stands still. Up to its version 2024.12 a record that writes and reads makes it lose its way, so
none does both.
"""

from __future__ import annotations

import errno
import socket
import struct
import time

from gharial.devices.litex.bridge import WORD, Bridge, swapped
from gharial.devices.remote import reached
from gharial.errors import BadInput, LinkError

PORT = 1234
BUFFER = 16
"""Words of a record's body that LiteX's bridge has room for."""
MOST = BUFFER - 1
"""Words that a packet writes or reads: their base, or the return address, is before them."""
TRIES = 5

_MAGIC = 0x4E6F
_VERSION = 1 << 4
_PROBE, _PROBED = 1, 2
_SIZES = 0x44
_ENABLED = 0x0F
_PACKET = struct.Struct(">HBB4x")
_RECORD = struct.Struct(">BBBB")
_HEAD = _PACKET.pack(_MAGIC, _VERSION, _SIZES)
_REFUSED_S = 0.05
_BIGGEST = 2048


class EtherboneBridge(Bridge):
    """Etherbone at an address.

    A write is not acknowledged: what was written is read back. The return address of a read is the packet's number, so
    answers that are late, doubled or out of order are told from the one that is waited for.

    Args:
        host: name or IPv4 address.
        port: UDP port.
        answer_s: seconds in which an answer must come before the packet is sent again.

    Raises:
        BadInput: the name cannot be resolved.
        LinkError: nothing answers, or the port is taken.
    """

    def __init__(self, host: str, port: int = PORT, answer_s: float = 0.25) -> None:
        self.host, self.port, self.answer_s = host, port, answer_s
        self.where = f"{host}, UDP port {port}"
        self.ignored = 0
        self._number = 0
        self._socket: socket.socket | None = None
        self._opened()
        try:
            self._probe()
        except BaseException:
            self.close()
            raise

    def read(self, address: int, count: int) -> bytes:
        """What is at the address, a packet for every 15 words."""
        found = bytearray()
        step = MOST * WORD
        for at in range(address, address + count, step):
            found += self._ask(at, min(step, address + count - at))
        return swapped(found)

    def write(self, address: int, data: bytes, kept: bool = True) -> None:
        """Put words there, a packet for every 15, and one to read them back."""
        body = swapped(data)
        for at in range(0, len(body), MOST * WORD):
            self._set(address + at, body[at : at + MOST * WORD], kept)

    def _set(self, address: int, words: bytes, kept: bool) -> None:
        for attempt in range(TRIES):
            self.retries += attempt > 0 and kept
            self._send(writing(address, words))
            found = self._ask(address, len(words))
            if found == words or (attempt and not kept):  # what cannot be read back is written twice
                return
        raise LinkError(f"{self.where}: what is written does not stay", unit="link", detail=address)

    def ring(self, address: int, value: int) -> None:
        """Write the index; again only where it reads as if it had not arrived."""
        for attempt in range(TRIES):
            self.retries += attempt > 0
            self._send(writing(address, value.to_bytes(WORD, "big")))
            if reached(int.from_bytes(self._ask(address, WORD), "big"), value):
                return
        raise LinkError(f"{self.where}: the doorbell does not take its index", unit="link", detail=value)

    def confirm(self) -> None:
        """Everything was read back when it was written."""

    def forget(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Close the socket."""
        found, self._socket = self._socket, None
        if found is not None:
            found.close()

    def _ask(self, address: int, count: int) -> bytes:
        """Read until an answer comes; one to an earlier packet of the same question is as good."""
        numbers: set[int] = set()
        for attempt in range(TRIES):
            self.retries += attempt > 0
            self._number = self._number % 0xFFFFFFFF + 1
            numbers.add(self._number)
            answer = self._converse(reading(address, count // WORD, self._number), numbers, count)
            if answer is not None:
                return answer
        raise self._silent()

    def _send(self, data: bytes) -> None:
        """Send a packet that is not answered."""
        try:
            self._opened().send(data)
        except ConnectionRefusedError:
            time.sleep(_REFUSED_S)  # said of an earlier packet
        except OSError as error:
            raise self._broken(error) from error

    def _converse(self, data: bytes, numbers: set[int], count: int) -> bytes | None:
        """The answer to one of `numbers`, of `count` bytes; None where none came in time."""
        link = self._opened()
        deadline = time.monotonic() + self.answer_s
        try:
            link.send(data)
            while (left := deadline - time.monotonic()) > 0:
                link.settimeout(left)
                found = answer(link.recv(_BIGGEST))
                if found is not None and found[0] in numbers and len(found[1]) == count:
                    return found[1]
                self.ignored += 1
        except TimeoutError:
            return None
        except ConnectionRefusedError:
            time.sleep(_REFUSED_S)  # nobody listens there now; that may be a bridge that starts
            return None
        except OSError as error:
            raise self._broken(error) from error
        return None

    def _broken(self, error: OSError) -> LinkError:
        self.close()
        return LinkError(f"{self.where}: {error.strerror or error}; check cable and address", unit="link")

    def _probe(self) -> None:
        """Ask whether Etherbone is spoken there; that reads and writes nothing."""
        for _ in range(TRIES):
            if self._converse(_PACKET.pack(_MAGIC, _VERSION | _PROBE, _SIZES) + bytes(WORD), {0}, 0) is not None:
                return
        raise self._silent()

    def _silent(self) -> LinkError:
        return LinkError(
            f"no answer from {self.where} in {TRIES} tries of {self.answer_s:g} s; check power, cable and address, and "
            "that the board runs a Gharial image with an Ethernet bridge",
            unit="link",
        )

    def _opened(self) -> socket.socket:
        if self._socket is None:
            self._socket = _socket(self.host, self.port)
        return self._socket


def writing(address: int, words: bytes) -> bytes:
    """A packet that puts words (big-endian) at the address."""
    return _HEAD + _RECORD.pack(0, _ENABLED, len(words) // WORD, 0) + address.to_bytes(WORD, "big") + words


def reading(address: int, count: int, number: int) -> bytes:
    """A packet that asks for `count` words from the address on, to be answered under that number."""
    places = range(address, address + count * WORD, WORD)
    return _HEAD + _RECORD.pack(0, _ENABLED, 0, count) + struct.pack(f">{1 + count}I", number, *places)


def answer(data: bytes) -> tuple[int, bytes] | None:
    """Number and words (big-endian) of an answer, (0, nothing) of one to a probe; None for any other packet."""
    if len(data) < _PACKET.size:
        return None
    magic, version, _ = _PACKET.unpack_from(data)
    if magic != _MAGIC or version >> 4 != _VERSION >> 4:
        return None
    if version & _PROBED:
        return 0, b""
    if len(data) < _PACKET.size + _RECORD.size + WORD:
        return None
    _, _, count, reads = _RECORD.unpack_from(data, _PACKET.size)
    at = _PACKET.size + _RECORD.size
    words = data[at + WORD : at + WORD + count * WORD]
    if reads or len(words) != count * WORD:
        return None
    return int.from_bytes(data[at : at + WORD], "big"), words


def _socket(host: str, port: int) -> socket.socket:
    """A socket that hears that address alone, at the port that LiteEth answers to: the one it listens at itself."""
    try:
        there = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_DGRAM)[0][4]
    except (OSError, UnicodeError) as error:
        what = "the board's address cannot be resolved"
        raise BadInput(what, host, error, "a name, or an address as 192.168.1.50") from None
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
            route.connect(there)
            here = route.getsockname()[0]
        if here != there[0]:  # else it is this machine, whose port is the bridge's own
            link.bind((here, port))
        link.connect(there)
    except OSError as error:
        link.close()
        if error.errno == errno.EADDRINUSE:
            what = f"UDP port {port} of this machine is in use: another program has the board; end it first"
        else:
            what = f"{host}: {error.strerror or error}; check the address and this machine's network"
        raise LinkError(what, unit="link") from error
    return link
