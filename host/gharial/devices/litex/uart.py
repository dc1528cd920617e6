# SPDX-License-Identifier: Apache-2.0
"""LiteX's UARTBone over a serial port: bursts of words, no checksum, no acknowledgement (docs/links.md).

Source: the state machine of LiteX's `Stream2Wishbone`. It takes no byte while it answers, so a read is the last thing
sent before its answer; what was written before has then been carried out. It drops a command that is not
complete after 100 ms.
"""

from __future__ import annotations

import errno
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from gharial.devices.litex.bridge import WORD, Bridge, swapped
from gharial.devices.remote import reached
from gharial.errors import BadInput, LinkError

WRITE, READ = 1, 2
HEAD = 6  # bytes of a command before its data
MOST_WORDS = 255
BRIDGE_S = 0.1
"""After so long without the rest of a command the bridge forgets it."""
TRIES = 3
UNCONFIRMED = 1 << 14
"""Bytes that are written without a read that shows that they have arrived, at most."""

_QUEUED = 2048  # bytes: what the system's buffer holds has room for the longest command then
_BITS = 10  # of a byte on the wire
_QUIET = 1.5 * BRIDGE_S
_NOISE = 20 * BRIDGE_S  # a line that is not quiet by then will not become so


@dataclass(frozen=True)
class _Sent:
    """A write that no answer has confirmed yet; `bell` is the value of one that must not be repeated blindly."""

    address: int
    data: bytes
    bell: int | None = None


class UartBridge(Bridge):
    """UARTBone at a serial port.

    What was written since the last answer is remembered: after a lost byte the line is left alone until the bridge
    has forgotten the broken command, and all of it is sent again, in order. An answer does not prove that all before it
    has arrived: where this process stood still for 100 ms in the middle of a command, the bridge forgot it and may have
    found its way by the next. So what came with the last doorbell is remembered until that is known to be rung.

    Args:
        path: the port.
        baud: bits a second.
        answer_s: seconds, beyond the time that the bytes take, in which an answer must come.

    Raises:
        BadInput: pyserial is not installed, or the rate is out of range.
        LinkError: the port is missing, busy, or may not be used.
    """

    def __init__(self, path: str, baud: int, answer_s: float = 1.0) -> None:
        self.path, self.baud = path, baud
        self.where = f"{path} at {baud} baud"
        self.answer_s = answer_s
        # Half of the bridge's time for the bytes, the rest for everything else.
        self.most = max(1, min(MOST_WORDS, (int(BRIDGE_S / 2 * baud / _BITS) - HEAD) // WORD))
        self._pending: list[_Sent] = []
        self._rung: list[_Sent] = []
        self._unconfirmed = 0
        self._port: Any = None
        self._serial = _pyserial()
        self._opened()

    def read(self, address: int, count: int) -> bytes:
        """What is at the address: a round trip for each burst."""
        found = bytearray()
        for at in range(address, address + count, self.most * WORD):
            found += self._burst(at, min(self.most, (address + count - at) // WORD))
        return swapped(found)

    def write(self, address: int, data: bytes, kept: bool = True) -> None:
        """Send words; nothing is waited for."""
        del kept  # what has not arrived shows at the next answer
        self._post(_Sent(address, swapped(data)))
        if self._unconfirmed > UNCONFIRMED:
            self.read(address, WORD)

    def ring(self, address: int, value: int) -> None:
        """Send the index; nothing is waited for."""
        self._post(_Sent(address, value.to_bytes(WORD, "big"), value))

    def confirm(self) -> None:
        """Read whether the last doorbell was rung; if not, send it and what came before it again."""
        bells = [sent for sent in self._rung if sent.bell is not None]
        if bells and not self._reached(bells[-1]):
            self._pending = self._rung + self._pending
            if self._resume():
                self._reached(bells[-1])
        self._rung = []

    def _reached(self, sent: _Sent) -> bool:
        assert sent.bell is not None
        return reached(int.from_bytes(self.read(sent.address, WORD), "little"), sent.bell)

    def forget(self) -> None:
        """Nothing that was sent is to be sent again."""
        self._pending, self._rung, self._unconfirmed = [], [], 0

    def close(self) -> None:
        """Close the port."""
        port, self._port = self._port, None
        self.forget()
        if port is not None:
            with suppress(OSError):
                port.close()

    def _answered(self) -> None:
        """An answer came: what was sent before it was carried out, as far as it arrived."""
        if any(sent.bell is not None for sent in self._pending):
            self._rung = self._pending
        self._pending, self._unconfirmed = [], 0

    def _post(self, sent: _Sent) -> None:
        self._pending.append(sent)
        self._unconfirmed += len(sent.data)
        self._carry(sent)

    def _carry(self, sent: _Sent) -> None:
        """Send the commands of a write."""
        step = self.most * WORD
        for at in range(0, len(sent.data), step):
            part = sent.data[at : at + step]
            self._send(bytes((WRITE, len(part) // WORD)) + _place(sent.address + at) + part)

    def _burst(self, address: int, words: int) -> bytes:
        """A read that is tried again; with what was not confirmed before it."""
        for attempt in range(TRIES):
            if (attempt or self._stray()) and not self._resume():
                continue
            answer = self._ask(address, words)
            if answer is not None:
                self._answered()
                return answer
        self.forget()
        raise LinkError(
            f"no answer from {self.where} in {TRIES} tries of {self._limit(words):.1f} s; check power, cable and baud "
            "rate (PORT@BAUD), and that the board runs a Gharial image with a UART bridge",
            unit="link",
        )

    def _ask(self, address: int, words: int) -> bytes | None:
        self._send(bytes((READ, words)) + _place(address))
        port = self._opened()
        try:
            port.timeout = self._limit(words)
            answer: bytes = port.read(words * WORD)
        except OSError as error:
            self._lost(error)
        return answer if len(answer) == words * WORD else None

    def _limit(self, words: int) -> float:
        """Seconds in which an answer must be here: all that was sent before it may still be on its way."""
        return self.answer_s + (HEAD + words * WORD + 2 * self._unconfirmed) * _BITS / self.baud

    def _stray(self) -> bool:
        """Whether bytes came that nobody asked for: the bridge took something else for a read."""
        try:
            return bool(self._opened().in_waiting)
        except OSError as error:
            self._lost(error)

    def _resume(self) -> bool:
        """Let the bridge come to rest, and send again what may not have arrived; False if it does not answer."""
        self.retries += 1
        port = self._opened()
        patient = max(1.0, self.answer_s)
        deadline = time.monotonic() + _NOISE * patient
        try:
            port.timeout = _QUIET * patient
            while port.read(1):
                port.reset_input_buffer()
                if time.monotonic() > deadline:
                    return False
        except OSError as error:
            self._lost(error)
        for sent in self._pending:
            if sent.bell is not None:
                found = self._ask(sent.address, 1)
                if found is None:
                    return False
                if reached(int.from_bytes(found, "big"), sent.bell):
                    continue
            self._carry(sent)
        return True

    def _send(self, data: bytes) -> None:
        """Send a command, whole: where the system's buffer has no room for it, once that has some."""
        port = self._opened()
        try:
            until = time.monotonic() + self.answer_s
            while port.out_waiting > _QUEUED and time.monotonic() < until:
                time.sleep(len(data) * _BITS / self.baud)
            port.write_timeout = self.answer_s + 2 * len(data) * _BITS / self.baud
            port.write(data)
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> NoReturn:
        self.close()
        raise LinkError(
            f"{self.path} has failed ({error.strerror or error}); plug the board in again, then recover", unit="link"
        ) from error

    def _opened(self) -> Any:
        if self._port is None:
            self._port = _open(self._serial, self.path, self.baud)
        return self._port


def _place(address: int) -> bytes:
    return (address // WORD).to_bytes(4, "big")


def _pyserial() -> Any:
    try:
        import serial
    except ImportError:
        raise BadInput(
            "serial ports need pyserial, which is not installed", remedy="pip install pyserial, or gharial[links]"
        ) from None
    return serial


def _open(serial: Any, path: str, baud: int) -> Any:
    """The port, for this process alone; its control lines are left alone, as boards have reset buttons on them."""
    port = serial.Serial()
    port.port, port.baudrate, port.exclusive = path, baud, True
    port.dtr = port.rts = False
    try:
        port.open()
        port.reset_input_buffer()
    except (OSError, ValueError) as error:
        with suppress(OSError):
            port.close()
        raise LinkError(_reason(path, baud, error), unit="link") from error
    with suppress(OSError, AttributeError, NotImplementedError, ValueError):
        port.set_low_latency_mode(True)  # of USB adapters that gather bytes for 16 ms
    return port


def _reason(path: str, baud: int, error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"{path}: no such port; plug the board in, and see which there are: gharial devices"
    if number in (errno.EACCES, errno.EPERM):
        return f"{path}: no permission; install the udev rule (gharial flash --udev), or join the port's group"
    if number in (errno.EBUSY, errno.EAGAIN):
        return f"{path}: in use by another program; end it first"
    if number in (errno.ENOTTY, errno.EINVAL, errno.EISDIR) or "configure port" in str(error):
        return f"{path}: no serial port, or none that runs at {baud} baud"
    return f"{path}: cannot be opened: {error}"
