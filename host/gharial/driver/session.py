# SPDX-License-Identifier: Apache-2.0
"""A device with a program on it: opening, sending and waiting, faults and recovery. What is sent is the driver's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from gharial.devices.base import Device
from gharial.driver.faults import explain, fault_name, unit_name
from gharial.driver.layout import plan_memory
from gharial.driver.loader import Loader, Progress
from gharial.driver.piece import Piece
from gharial.driver.registers import MASK, Counters, Registers
from gharial.driver.rings import Posted, Rings, failure
from gharial.driver.stall import diagnose
from gharial.driver.ticket import Ticket
from gharial.errors import CommandFailed, DeviceError, DeviceTimeout, GharialError
from gharial.isa import _registers as reg
from gharial.isa.faults import Fault
from gharial.program import Program
from gharial.program.inspect import slot_count
from gharial.program.spaces import check_limits

T = TypeVar("T")

WATCHDOG = MASK  # clocks: 14 s at 300 MHz
KINDS = ("encoder", "prediction")
_SLICE = 0.02  # seconds for which a wait holds the lock


@dataclass(frozen=True)
class Recovery:
    """What `recover` found.

    Attributes:
        lost_encoder, lost_prediction: slots that hold nothing any more, or may not. All other slots kept their state.
        failed: commands that were in flight and will not be done; their tickets say so.
        reloaded: whether the program was gone and had to be loaded again: then every slot is lost.
    """

    lost_encoder: tuple[int, ...]
    lost_prediction: tuple[int, ...]
    failed: int
    reloaded: bool


class Session:
    """A device that runs one program; `Driver` says with what arguments and errors it is opened."""

    def __init__(
        self,
        device: Device,
        program: Program,
        timeout: float,
        checked: bool,
        watchdog: int,
        interrupts: bool,
        ring_log2: int | None,
        progress: Progress | None,
    ) -> None:
        self.device = device
        self.program = program
        self.timeout = timeout
        self._progress = progress
        self._checked = checked
        self._lock = threading.RLock()
        self._closed = False
        self._stopped: DeviceError | None = None  # why nothing can be sent before a recovery
        self._lost: dict[str, set[int]] = {kind: set() for kind in KINDS}
        self._registers = Registers(device)
        self._rings: Rings | None = None
        try:
            self._registers.check_alive()
        except BaseException:
            self._closed = True
            device.close()  # not stopped first: what answers may be something else
            raise
        try:
            self._registers.quiesce()
            self._registers.check_identity(program.config)
            check_limits(program)
            self.plan = plan_memory(program, self._registers.memory_bytes, ring_log2, device.frugal)
            self._rings = Rings(device, self._registers, self.plan, watchdog, interrupts, checked)
            self._rings.set_up()
            self._load()
        except BaseException:
            self.close()
            raise

    def _load(self) -> None:
        def run(piece: Piece) -> Ticket[None]:
            return self._submit([piece], lambda: None)

        Loader(self.program, self.device, self.plan, run, self.wait, self._progress, self._checked).load()
        found = self._registers.read(reg.PROGRAM_ID)
        if found != self.program.program_id:
            what = f"the device runs program {found:#010x} after {self.program.program_id:#010x} was started"
            raise DeviceError(what, unit="host interface")
        for kind, register in (("encoder", reg.ENC_SLOTS), ("prediction", reg.PRED_SLOTS)):
            there = self._registers.read(register)
            expected = slot_count(self.program.header, self.program.config, kind)
            if there != expected:
                raise DeviceError(f"the device has {there} {kind} slots, expected {expected}", unit="state store")

    def close(self) -> None:
        """Stop the device and let go of it; tickets that are not done fail. Closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._rings is not None:
                for posted in self._rings.in_flight:
                    posted.ticket.give_up(GharialError("not done: the driver was closed"))
                self._rings.in_flight.clear()
            # A device that no longer answers cannot be stopped; it must still be let go of.
            with suppress(DeviceError):
                self._registers.quiesce()
            self.device.close()

    # Progress

    def poll(self) -> list[Ticket[Any]]:
        """Take what the device has completed, without waiting; the tickets that are done by it.

        Raises:
            DeviceError: device or link failed.
        """
        with self._lock:
            rings = self._open_rings()
            ended = rings.poll()
            if self._stopped is None and (rings.in_flight or _halting(ended)) and self._registers.status().halted:
                ended += rings.poll()  # what was completed before it halted is there by now
                ended += self._note_halt(rings)
            for ticket in _halting(ended):
                self._lost["encoder"].update(ticket.lost_encoder)
                self._lost["prediction"].update(ticket.lost_prediction)
            return list(dict.fromkeys(ticket for ticket in ended if ticket.done))

    def wait(self, ticket: Ticket[T], timeout: float | None = None) -> T:
        """Wait for a ticket's end, and give its result.

        Args:
            ticket: of this driver.
            timeout: most seconds to wait; None takes the driver's limit.

        Raises:
            as `Ticket.result`.
        """
        self._until(lambda: ticket.done, lambda: ticket.last, timeout, "a command")
        return ticket.outcome()

    def wait_all(self, timeout: float | None = None) -> None:
        """Wait until nothing is in flight; errors stay with their tickets.

        Raises:
            DeviceTimeout: it took longer.
            DeviceError: device or link failed.
        """
        rings = self._open_rings()
        self._until(lambda: not rings.in_flight, lambda: rings.sent, timeout, "all commands")

    def counters(self) -> Counters:
        """The device's counters now."""
        with self._lock:
            self._open_rings()
            return self._registers.counters()

    @property
    def in_flight(self) -> int:
        """Commands that were sent and are not done."""
        return len(self._rings.in_flight) if self._rings is not None else 0

    @property
    def stopped(self) -> DeviceError | None:
        """Why nothing can be sent before a recovery, as far as was seen; None if it can."""
        return self._stopped

    @property
    def link_retries(self) -> int:
        """How often something had to be read or written again because it did not hold together."""
        return self._rings.link_retries if self._rings is not None else 0

    def _submit(self, pieces: list[Piece], assemble: Callable[[], T]) -> Ticket[T]:
        rings = self._open_rings()
        ticket: Ticket[T] = Ticket(self, len(pieces), assemble)
        for piece in pieces:

            def posted(piece: Piece = piece) -> bool:
                self._open_rings()
                if self._stopped is not None:
                    raise self._stopped
                if ticket.error is not None and ticket.done:
                    raise ticket.error  # given up in a recovery; the rest must not follow on its own
                return rings.post(piece, ticket)

            self._until(posted, lambda: rings.next_wanted, None, "room for a command")
        return ticket

    def _until(self, ready: Callable[[], bool], wanted: Callable[[], int], timeout: float | None, what: str) -> None:
        """Poll until something holds. The lock is let go of again and again, so that other threads get on."""
        limit = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        while True:
            with self._lock:
                if ready():
                    return
                self.poll()
                if ready():
                    return
                left = deadline - time.monotonic()
                if left <= 0:
                    stall = diagnose(self._registers, self.device, wanted())
                    what = f"waited {limit:g} s for {what}: {stall.reason}; wait longer, or recover"
                    raise DeviceTimeout(what, unit=stall.unit)
                self.device.wait(wanted(), min(left, _SLICE))
            time.sleep(0)  # a lock goes to whoever asks first: let others ask

    # Failure

    def _open_rings(self) -> Rings:
        if self._closed or self._rings is None:
            raise GharialError("the driver is closed")
        return self._rings

    def _note_halt(self, rings: Rings) -> list[Ticket[Any]]:
        """The device halted: everything in flight fails, what it had begun is lost."""
        status = self._registers.status()
        detail, tag = self._registers.read(reg.FAULT_DETAIL), self._registers.read(reg.FAULT_TAG)
        meaning, remedy = explain(status.fault)
        self._stopped = DeviceError(
            f"the device halted with {fault_name(status.fault)}: {meaning}; {remedy}",
            status.fault,
            unit_name(status.unit),
            detail,
        )
        self._note_lost(rings.begun())
        tickets = []
        for posted in rings.in_flight:
            at_fault = posted.tag == tag
            error = failure(posted, status.fault, status.unit, detail, 0, lost=True) if at_fault else self._stopped
            posted.ticket.give_up(error)
            tickets.append(posted.ticket)
        rings.in_flight.clear()
        return tickets

    def _note_lost(self, commands: list[Posted]) -> None:
        for posted in commands:
            self._lost["encoder"].update(posted.piece.encoder)
            self._lost["prediction"].update(posted.piece.prediction)

    def recover(self) -> Recovery:
        """Bring the device back after a halt, a timeout or a bad link, without loading the program again.

        Commands in flight are given up; their tickets fail. Slots that they were writing are lost.

        Raises:
            DeviceError: device or link still fail; it may be tried again.
        """
        with self._lock:
            rings = self._open_rings()
            with suppress(DeviceError):
                self._registers.write(reg.CONTROL, 0)  # nothing more is fetched
                self.poll()
            self._stopped = self._stopped or DeviceError("a recovery was begun and failed: recover again")
            posted = list(rings.in_flight)
            try:
                begun = rings.begun()
            except DeviceError:
                begun = posted
            self._registers.check_alive()
            self._registers.quiesce()
            self._registers.check_identity(self.program.config)
            self._note_lost(begun)
            for command in posted:
                command.ticket.give_up(DeviceError("not done: given up in a recovery"))
            rings.set_up()
            reloaded = not self._holds_program()
            stopped, self._stopped = self._stopped, None
            if reloaded:
                for kind in KINDS:
                    self._lost[kind].update(range(slot_count(self.program.header, self.program.config, kind)))
                try:
                    self._load()
                except BaseException:
                    self._stopped = stopped
                    raise
            lost = {kind: tuple(sorted(slots)) for kind, slots in self._lost.items()}
            self._lost = {kind: set() for kind in KINDS}
            return Recovery(lost["encoder"], lost["prediction"], len(posted), reloaded)

    def _holds_program(self) -> bool:
        same = self._registers.read(reg.PROGRAM_ID) == self.program.program_id
        return same and self._registers.status().program


def _halting(tickets: list[Ticket[Any]]) -> list[Ticket[Any]]:
    """Those that failed with a fault that stops the device."""
    halting = [fault for fault in Fault if fault.halts]
    return [t for t in tickets if isinstance(t.error, CommandFailed) and t.error.code in halting]
