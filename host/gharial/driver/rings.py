# SPDX-License-Identifier: Apache-2.0
"""The command and completion rings as the host sees them: commands in, completions out, nothing lost or mixed up."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gharial.devices.base import Device
from gharial.driver.faults import explain, fault_name, keeps_state, unit_name
from gharial.driver.layout import ENTRY_BYTES, MemoryPlan, Region, aligned
from gharial.driver.piece import Piece
from gharial.driver.registers import MASK, Registers, bits
from gharial.driver.staging import Staging
from gharial.driver.ticket import Ticket
from gharial.errors import CommandFailed, DeviceError, LinkError
from gharial.isa import _registers as reg
from gharial.isa.commands import COMPLETION, DESCRIPTOR, Flag, Operation, greedy_result_bytes
from gharial.isa.faults import Fault

READS = 3  # of something that does not hold together, before the link is blamed


@dataclass
class Posted:
    """A command in flight.

    Attributes:
        piece: what was sent.
        ticket: whose it is.
        index: of the command, free-running.
        tag: of the command.
        result: address of its results.
        near: whether they lie in the plan's region `near`.
    """

    piece: Piece
    ticket: Ticket[Any]
    index: int
    tag: int
    result: int
    near: bool = False


class Rings:
    """Both rings and the staging memory of a device.

    Not for use from several threads at once: the driver holds its lock.

    Args:
        device: the device.
        registers: its registers.
        plan: where everything lies.
        watchdog: clocks that a command may take, 0 for no limit.
        interrupts: whether completions raise the interrupt.
        checked: whether what no CRC covers is read back, or read twice.
    """

    def __init__(
        self, device: Device, registers: Registers, plan: MemoryPlan, watchdog: int, interrupts: bool, checked: bool
    ) -> None:
        self.device, self.registers, self.plan = device, registers, plan
        self.watchdog, self.interrupts, self.checked = watchdog, interrupts, checked
        self.size = 1 << plan.ring_log2
        self.staging = Staging(plan.staging)
        self.in_flight: deque[Posted] = deque()
        self.link_retries = 0
        self._sent = self._taken = 0
        self._tag = 0

    def set_up(self) -> None:
        """Give the device the rings, and let it run. It was reset before, so that all indices are zero."""
        self.staging.clear()
        self.in_flight.clear()
        self._sent = self._taken = 0
        plan, registers = self.plan, self.registers
        if self.device.frugal:
            # Completions are known by themselves: those of someone who is gone must not be taken for ours.
            self._write(plan.completions.address, bytes(plan.completions.size), True)
        registers.write64(reg.CMD_BASE_LO, reg.CMD_BASE_HI, plan.commands.address)
        registers.write(reg.CMD_LOG2, plan.ring_log2)
        registers.write64(reg.CPL_BASE_LO, reg.CPL_BASE_HI, plan.completions.address)
        registers.write(reg.CPL_LOG2, plan.ring_log2)
        registers.write(reg.CPL_HEAD, 0)
        registers.write(reg.WATCHDOG, self.watchdog)
        registers.write(reg.IRQ_ENABLE, bits(reg.IRQ_ENABLE, completion=int(self.interrupts), halt=1))
        registers.write(reg.IRQ_STATUS, bits(reg.IRQ_STATUS, completion=1, halt=1))
        registers.write(reg.CONTROL, bits(reg.CONTROL, enable=1))
        if registers.read(reg.CMD_BASE_LO) != plan.commands.address & MASK:
            raise LinkError("a register does not keep what is written to it", unit="link", detail="CMD_BASE_LO")

    def post(self, piece: Piece, ticket: Ticket[Any]) -> bool:
        """Send a command; False if there is no room now.

        Raises:
            DeviceError: the link failed; the command was not sent.
        """
        if len(self.in_flight) >= self.size:
            return False
        near = self._near(piece)
        address = self.staging.claim(piece.staging - (piece.result_bytes if near is not None else 0))
        if address is None:
            return False
        payload_at = address + aligned(len(piece.entries))
        result_at = payload_at if piece.restores else payload_at + aligned(len(piece.payload))
        result_at = result_at if near is None else near.address
        content = piece.entries + bytes(payload_at - address - len(piece.entries)) + piece.payload
        self._tag = self._tag % MASK + 1  # never 0: that is the tag of a descriptor that did not arrive whole
        try:
            if content:
                self._write(address, content, self.checked and piece.restores)
            descriptor = self._descriptor(piece, address, payload_at, result_at)
            slot = self.plan.commands.address + self._sent % self.size * DESCRIPTOR.bytes
            self.device.write_memory(slot, descriptor)
        except DeviceError:
            self.staging.drop_newest()
            raise
        self.in_flight.append(Posted(piece, ticket, self._sent, self._tag, result_at, near is not None))
        self._sent = (self._sent + 1) & MASK
        ticket.command_sent(self._sent)
        self.device.ring_doorbell(self._sent)
        return True

    def _near(self, piece: Piece) -> Region | None:
        """Room for its results beside the completions: for one command at a time."""
        near = self.plan.near
        if near is None or not 0 < piece.result_bytes <= near.size or any(posted.near for posted in self.in_flight):
            return None
        return near

    def _write(self, address: int, content: bytes, verify: bool) -> None:
        """Write, and where no CRC of the device's would notice, read back."""
        for _ in range(READS):
            self.device.write_memory(address, content)
            if not verify or self.device.read_memory(address, len(content)) == content:
                return
            self.link_retries += 1
        raise LinkError("the memory does not keep what is written to it", unit="link", detail=address)

    def _descriptor(self, piece: Piece, entries: int, payload: int, result: int) -> bytes:
        fields = dict(piece.fields)
        fields["flags"] = fields.get("flags", 0) | (Flag.INTERRUPT if self.interrupts else 0)
        fields |= {"operation": piece.operation, "tag": self._tag}
        if piece.operation == Operation.LOAD:
            if not fields["flags"] & Flag.IN_PLACE:
                fields |= _address("entry", payload)
                fields["body_crc"] = zlib.crc32(piece.payload)
        elif piece.entries:
            fields["entries"] = len(piece.entries) // ENTRY_BYTES
            fields |= _address("entry", entries) | _address("result", result) | _address("feature", payload)
            if fields["flags"] & Flag.CHECKED:
                fields["body_crc"] = zlib.crc32(piece.entries)
        words = DESCRIPTOR.pack(**fields)
        words[-1] = zlib.crc32(words[:-1].tobytes())
        return words.tobytes()

    def poll(self) -> list[Ticket[Any]]:
        """Take what has been completed; the tickets of it, in order of the commands.

        Raises:
            LinkError: indices or completions make no sense.
            DeviceError: the link failed.
        """
        tickets: list[Ticket[Any]] = []
        try:
            for posted, completion, result in self._completed():
                error = self._finish(posted, completion, result)
                self.in_flight.popleft()
                self.staging.free_oldest()
                self._taken = (self._taken + 1) & MASK
                cycles = completion["cycles_lo"] | completion["cycles_hi"] << 32
                posted.ticket.command_done(error, cycles, completion["predictions"], completion["joints"])
                tickets.append(posted.ticket)
        finally:
            if tickets:
                self.registers.write(reg.CPL_HEAD, self._taken)
        return tickets

    def _completed(self) -> Iterator[tuple[Posted, dict[str, int], bytes | None]]:
        """What has been completed, in order: with its completion, and its result if that was read along.

        The caller takes each from `in_flight`.
        """
        if self.device.frugal:
            while self.in_flight:
                posted = self.in_flight[0]
                found = self._look(posted)
                if found is None:
                    return
                yield posted, *found
        elif self.in_flight:
            for _ in range(self._fresh()):
                posted = self.in_flight[0]
                yield posted, self._completion(posted), None

    def _fresh(self) -> int:
        """Completions that the device has written and that have not been taken."""
        fresh = (self.registers.read(reg.CPL_TAIL) - self._taken) & MASK
        if fresh > len(self.in_flight):
            self.registers.check_alive()
            raise LinkError(
                f"the device completed {fresh} commands of {len(self.in_flight)} in flight: it was reset by someone "
                "else, or the link is bad; recover",
                unit="link",
            )
        return fresh

    def _look(self, posted: Posted) -> tuple[dict[str, int], bytes | None] | None:
        """Completion of the oldest command, and its result if that lies near, in one read; None if it is not done.

        A completion proves itself by CRC, index and tag. Where there is another in its place it is not done; where
        there is none (as at first, or while it is being written, or where the link damaged it) the register decides.
        """
        address = self._completion_at(posted)
        skip = posted.result - address
        data = self.device.read_memory(address, skip + posted.piece.result_bytes if posted.near else COMPLETION.bytes)
        found, why = _judge(posted, data[: COMPLETION.bytes])
        if not why:
            return found, data[skip:] if posted.near else None
        if _sealed(data[: COMPLETION.bytes]) and found["index"] == (posted.index - self.size) & MASK:
            return None
        if not self._fresh():
            return None
        self.link_retries += 1
        return self._completion(posted), None

    def _completion_at(self, posted: Posted) -> int:
        return self.plan.completions.address + posted.index % self.size * COMPLETION.bytes

    def _completion(self, posted: Posted) -> dict[str, int]:
        why = ""
        for attempt in range(READS):
            self.link_retries += attempt > 0
            found, why = _judge(posted, self.device.read_memory(self._completion_at(posted), COMPLETION.bytes))
            if not why:
                return found
        self.registers.check_alive()
        raise LinkError(f"a completion cannot be used: {why}; recover", unit="link", detail=posted.index)

    def _finish(self, posted: Posted, completion: dict[str, int], data: bytes | None) -> DeviceError | None:
        """Hand the results on (`data`, if they were read already); what went wrong, or None."""
        piece = posted.piece
        status = completion["status"]
        if status:
            tag, unit = completion["tag"], completion["unit"]
            lost = not keeps_state(piece.operation, status, unit, tag)
            return failure(posted, status, unit, completion["detail"], completion["entry"], lost)
        if piece.take is None:
            return None
        why = ""
        for attempt in range(READS):
            self.link_retries += attempt > 0
            if data is None or attempt:
                data = self.device.read_memory(posted.result, piece.result_bytes)
            again = self._written(piece, completion)
            # Results carry no CRC.
            if self.checked and data[:again] != self.device.read_memory(posted.result, again):
                why = "it reads differently each time"
                continue
            try:
                piece.take(data)
                return None
            except ValueError as error:
                why = str(error)
        return LinkError(f"a result cannot be used: {why}", unit="link", detail=posted.index)

    def _written(self, piece: Piece, completion: dict[str, int]) -> int:
        """Bytes of the results that mean anything: of one greedy step, its head and its tokens."""
        if piece.operation != Operation.GREEDY or len(piece.entries) > ENTRY_BYTES:
            return piece.result_bytes
        return min(piece.result_bytes, greedy_result_bytes(completion["joints"]))

    @property
    def sent(self) -> int:
        """Commands sent so far, free-running: the doorbell's value."""
        return self._sent

    @property
    def next_wanted(self) -> int:
        """Completion index at which the oldest command in flight is done."""
        return (self._taken + 1) & MASK

    def begun(self) -> list[Posted]:
        """Commands in flight that the device has fetched; all of them where it does not say."""
        head = self.registers.read(reg.CMD_HEAD)
        fetched = (head - self._taken) & MASK
        return list(self.in_flight)[: fetched if fetched <= len(self.in_flight) else None]


def failure(posted: Posted, fault: int, unit: int, detail: int, entry: int, lost: bool) -> CommandFailed:
    """The error of a command that failed."""
    piece = posted.piece
    meaning, remedy = explain(fault)
    count = len(piece.entries) // ENTRY_BYTES
    place = f" at entry {piece.first + entry}" if count > 1 or piece.first else ""
    return CommandFailed(
        f"{piece.operation.name} failed with {fault_name(fault)}{place}: {meaning}; {remedy}",
        fault,
        unit_name(unit),
        detail,
        fault=fault_name(fault),
        entry=piece.first + entry if count else None,
        lost_encoder=piece.encoder if lost else (),
        lost_prediction=piece.prediction if lost else (),
    )


def _sealed(data: bytes) -> bool:
    """Whether it is a completion that arrived whole."""
    return zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "little")


def _judge(posted: Posted, data: bytes) -> tuple[dict[str, int], str]:
    """A completion's fields, and why it is not that of the command ('' if it is)."""
    found = COMPLETION.unpack(np.frombuffer(data, "<u4"))
    if not _sealed(data):
        return found, "its CRC does not match"
    if found["index"] != posted.index:
        return found, f"it is of command {found['index']}, expected {posted.index}"
    if found["tag"] != posted.tag and (found["tag"], found["status"]) != (0, Fault.CHECKSUM):
        return found, f"its tag is {found['tag']}, expected {posted.tag}"
    return found, ""


def _address(name: str, value: int) -> dict[str, int]:
    return {f"{name}_lo": value & MASK, f"{name}_hi": value >> 32}
