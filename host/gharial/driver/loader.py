# SPDX-License-Identifier: Apache-2.0
"""Bringing a program onto a device, chunk by chunk, each with its CRC."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterator

from gharial.devices.base import Device
from gharial.driver.layout import MemoryPlan, staging_bytes
from gharial.driver.piece import Piece
from gharial.driver.ticket import Ticket
from gharial.errors import CommandFailed
from gharial.isa.commands import Flag, Operation
from gharial.isa.faults import Fault
from gharial.isa.header import ProgramSpace
from gharial.program import Program
from gharial.program.manifest import SPACES

STAGED = 1 << 20  # bytes of a chunk that goes through the staging memory, at most
WRITTEN = 1 << 20  # bytes of one write to the final place
CHECKED = 64 << 20  # bytes that one LOAD checks in place, at most: bounds how long a command takes
TRIES = 3
_WORD = 4

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""


class Loader:
    """Loads one program.

    Args:
        program: what to load.
        device: for writes to a final place.
        plan: where everything lies.
        run: sends a command, and gives its ticket; waits for room if there is none.
        wait: waits for a ticket's end, raises what went wrong.
        progress: told how far it is, or None.
        checked: whether the device reads what lies in place, and checks its CRC: where the link may corrupt data.
    """

    def __init__(
        self,
        program: Program,
        device: Device,
        plan: MemoryPlan,
        run: Callable[[Piece], Ticket[None]],
        wait: Callable[[Ticket[None]], None],
        progress: Progress | None,
        checked: bool,
    ) -> None:
        self.program, self.device, self.plan = program, device, plan
        self.run, self.wait, self.checked = run, wait, checked
        self.progress = progress or (lambda done, total: None)
        self.total = sum(len(program.section(space.name)) for space in SPACES)
        self.done = 0

    def load(self) -> None:
        """Load all spaces and start the program.

        Raises:
            CommandFailed: the device refuses a chunk again and again, or the program.
            DeviceError: link or device failed.
        """
        waiting: deque[tuple[Piece, Ticket[None]]] = deque()
        for piece in self._pieces():
            waiting.append((piece, self.run(piece)))
            # Two at a time: one is sent while the other is taken in.
            if len(waiting) > 1:
                self._finish(waiting)
        while waiting:
            self._finish(waiting)
        self.wait(self.run(self._start()))

    def _finish(self, waiting: deque[tuple[Piece, Ticket[None]]]) -> None:
        """See the oldest chunk through. After a bad one, those behind it are out of order: all go again."""
        for attempt in range(1, TRIES + 1):
            piece, ticket = waiting[0]
            try:
                self.wait(ticket)
            except CommandFailed as error:
                if error.code != Fault.CHECKSUM or attempt == TRIES:
                    raise
                pieces = [piece for piece, _ in waiting]
                self._settle(waiting)
                for again in pieces:
                    self._rewrite(again)
                    waiting.append((again, self.run(again)))
                continue
            waiting.popleft()
            self.done += piece.fields["bytes"]
            self.progress(self.done, self.total)
            return

    def _settle(self, waiting: deque[tuple[Piece, Ticket[None]]]) -> None:
        """Let everything end, however it does."""
        while waiting:
            _, ticket = waiting.popleft()
            try:
                self.wait(ticket)
            except CommandFailed:
                continue

    def _pieces(self) -> Iterator[Piece]:
        for number, space in enumerate(SPACES):
            data = memoryview(self.program.section(space.name))
            region = {"weights": self.plan.weights, "embedding": self.plan.embedding}.get(space.name)
            if region is None:
                room = (self.plan.staging.size // 2 - staging_bytes(0)) // _WORD * _WORD
                most = min(STAGED, max(room, _WORD))
            else:
                most = CHECKED
            for offset in range(0, len(data), most):
                chunk = data[offset : offset + most]
                piece = Piece(Operation.LOAD, {"space": number, "offset": offset, "bytes": len(chunk)})
                if region is None:
                    piece.payload = bytes(chunk)
                else:
                    address = region.address + offset
                    piece.fields |= {
                        "flags": Flag.IN_PLACE | (0 if self.checked else Flag.UNCHECKED),
                        "entry_lo": address & 0xFFFFFFFF,
                        "entry_hi": address >> 32,
                        "body_crc": zlib.crc32(chunk),
                    }
                    self._write(address, chunk)
                yield piece

    def _rewrite(self, piece: Piece) -> None:
        """Bring a chunk to its final place once more."""
        fields = piece.fields
        if "entry_lo" in fields:
            data = memoryview(self.program.section(SPACES[fields["space"]].name))
            chunk = data[fields["offset"] : fields["offset"] + fields["bytes"]]
            self._write(fields["entry_lo"] | fields["entry_hi"] << 32, chunk)

    def _write(self, address: int, chunk: memoryview) -> None:
        for at in range(0, len(chunk), WRITTEN):
            self.device.write_memory(address + at, chunk[at : at + WRITTEN])

    def _start(self) -> Piece:
        plan = self.plan
        fields: dict[str, int] = {}
        bases = {"feature": plan.weights, "entry": plan.embedding, "result": plan.state}
        for name, region in bases.items():
            if region is not None:
                fields |= {f"{name}_lo": region.address & 0xFFFFFFFF, f"{name}_hi": region.address >> 32}
        return Piece(Operation.START, fields)


assert [space.name for space in SPACES] == [space.name.lower() for space in ProgramSpace], "space numbers differ"
