# SPDX-License-Identifier: Apache-2.0
"""LiteEth's Etherbone over UDP: one record a packet, one packet outstanding, each answered (docs/links.md).

Source: LiteEth's `frontend/etherbone.py`, which does not do all of CERN's specification: 32-bit addresses and data, one
record a packet, no flags but probe and answer. It sends to the UDP port that it listens at. A record must fit its
buffer, or the bridge stands still.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Sequence

from gharial.devices.litex.bridge import WORD, Bridge, swapped
from gharial.devices.remote import reached
from gharial.errors import BadInput, LinkError

PORT = 1234
BUFFER = 16
"""Words of a record's body that LiteX's bridge has room for."""
MOST_READ = BUFFER - 1  # behind the return address
MOST_WRITTEN = BUFFER - 3  # behind their base, before a return address and the address of one read
TRIES = 5

_MAGIC = 0x4E6F
_VERSION = 1 << 4
_PROBE, _PROBED = 1, 2
_SIZES = 0x44
_ENABLED = 0x0F
_PACKET = struct.Struct(">HBB4x")
_RECORD = struct.Struct(">BBBB")
_REFUSED_S = 0.05
_BIGGEST = 2048


class EtherboneBridge(Bridge):
    """Etherbone at an address.

    Every packet asks for at least one word, whose return address is the packet's number: so that each is answered, and
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
        step = MOST_READ * WORD
        for at in range(address, address + count, step):
            found += self._exchange(b"", 0, range(at, min(at + step, address + count), WORD))
        return swapped(found)

    def write(self, address: int, data: bytes) -> None:
        """Put words there, a packet for every 13; each has been carried out when the next is sent."""
        body = swapped(data)
        step = MOST_WRITTEN * WORD
        for at in range(0, len(body), step):
            part = body[at : at + step]
            self._exchange(part, address + at, (address + at,))

    def ring(self, address: int, value: int) -> None:
        """Write the index. Where no answer comes, a read tells whether it arrived."""
        word = value.to_bytes(WORD, "big")
        for _ in range(TRIES):
            if self._once(word, address, (address,)) is not None:
                return
            self.retries += 1
            if reached(int.from_bytes(self._exchange(b"", 0, (address,)), "big"), value):
                return
        raise self._silent()

    def close(self) -> None:
        """Close the socket."""
        found, self._socket = self._socket, None
        if found is not None:
            found.close()

    def _exchange(self, words: bytes, base: int, reads: Sequence[int]) -> bytes:
        """Send a packet until it is answered: only for what may be done twice."""
        numbers: set[int] = set()
        for attempt in range(TRIES):
            self.retries += attempt > 0
            answer = self._once(words, base, reads, numbers)
            if answer is not None:
                return answer
        raise self._silent()

    def _once(self, words: bytes, base: int, reads: Sequence[int], numbers: set[int] | None = None) -> bytes | None:
        """Send a packet and wait for its answer, or for one to an earlier packet of the same content (`numbers`)."""
        numbers = set() if numbers is None else numbers
        self._number = self._number % 0xFFFFFFFF + 1
        numbers.add(self._number)
        return self._converse(packet(words, base, reads, self._number), numbers, len(reads))

    def _converse(self, data: bytes, numbers: set[int], count: int) -> bytes | None:
        """The answer to one of `numbers`, of `count` words; None where none came in time."""
        link = self._opened()
        deadline = time.monotonic() + self.answer_s
        try:
            link.send(data)
            while (left := deadline - time.monotonic()) > 0:
                link.settimeout(left)
                found = answer(link.recv(_BIGGEST))
                if found is not None and found[0] in numbers and len(found[1]) == count * WORD:
                    return found[1]
                self.ignored += 1
        except TimeoutError:
            return None
        except ConnectionRefusedError:
            time.sleep(_REFUSED_S)  # nobody listens there now; that may be a bridge that starts
            return None
        except OSError as error:
            self.close()
            raise LinkError(f"{self.where}: {error.strerror or error}; check cable and address", unit="link") from error
        return None

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


def packet(words: bytes, base: int, reads: Sequence[int], number: int) -> bytes:
    """A packet with one record: words (big-endian) to `base` on, then words from each address of `reads`."""
    body = _PACKET.pack(_MAGIC, _VERSION, _SIZES) + _RECORD.pack(0, _ENABLED, len(words) // WORD, len(reads))
    if words:
        body += struct.pack(">I", base) + words
    return body + struct.pack(f">{1 + len(reads)}I", number, *reads)


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
