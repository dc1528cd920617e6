# SPDX-License-Identifier: Apache-2.0
"""The driver: what can be asked of a device that runs a program (docs/driver.md)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from types import TracebackType

import numpy as np

from gharial.devices.base import Device
from gharial.driver.entries import Bytes, DecodeBatch, DecodeEntry, EncodeBatch, EncodeEntry, GreedyEntry
from gharial.driver.layout import ALIGN
from gharial.driver.loader import Progress
from gharial.driver.piece import Limits
from gharial.driver.pieces import Builder
from gharial.driver.results import DecodeForm, DecodeResult, GreedyResult, join_decode
from gharial.driver.session import KINDS, WATCHDOG, Session
from gharial.driver.slots import SlotImage, SlotPool
from gharial.driver.ticket import Ticket
from gharial.errors import BadRequest
from gharial.isa.commands import UNIT_TEMPERATURE, Mode, Operation
from gharial.program import Program
from gharial.program.inspect import slot_count

UNRELIABLE = frozenset({"litex"})
"""Kinds of devices behind a link without checksums of its own (a UART, Etherbone over UDP)."""


class Driver(Session):
    """One program on one device.

    The device belongs to the driver from the call on, even if that fails: it is closed with it. All methods may be
    called from any thread; one lock lets one at a time to the device, and a wait lets others in between.

    Args:
        device: opened, by gharial.devices.
        program: what to run; verified when it was read or compiled.
        encoder_slots, prediction_slots: use at most so many; None uses all that the device has.
        timeout: seconds that any wait may take where the call names no other limit.
        checked: entries and features carry CRCs, what is loaded in place is checked there, results and saved state are
            read twice; None does so on kinds of devices whose link may corrupt data.
        watchdog: device clocks a command may take; 0 for no limit.
        interrupts: completions raise the device's interrupt; None where the device waits for it.
        ring_log2: entries of each ring, log2; None chooses by the size of the device memory.
        progress: told (bytes done, bytes in all) while the program is loaded.

    Raises:
        BadInput: device and program do not belong together, or the program does not fit the device memory.
        BadRequest: more slots than the device has.
        LinkError: no Gharial answers.
        DeviceError: device or link failed.
    """

    def __init__(
        self,
        device: Device,
        program: Program,
        *,
        encoder_slots: int | None = None,
        prediction_slots: int | None = None,
        timeout: float = 10.0,
        checked: bool | None = None,
        watchdog: int = WATCHDOG,
        interrupts: bool | None = None,
        ring_log2: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        checked = device.kind in UNRELIABLE if checked is None else checked
        interrupts = device.interrupts if interrupts is None else interrupts
        super().__init__(device, program, timeout, checked, watchdog, interrupts, ring_log2, progress)
        try:
            limits = {"encoder": encoder_slots, "prediction": prediction_slots}
            pools = {kind: SlotPool(kind, self._usable(kind, limits[kind])) for kind in KINDS}
        except BaseException:
            self.close()
            raise
        self.encoder_slots, self.prediction_slots = pools["encoder"], pools["prediction"]
        self._unwiped: dict[str, set[int]] = {kind: set() for kind in KINDS}
        self._layout_id = zlib.crc32(program.section("code"))
        self._builder = Builder(
            program,
            Limits(
                entries=program.config.max_entries,
                preferred=self.plan.staging.size // 2 // ALIGN * ALIGN,
                most=self.plan.staging.size,
                encoder=self.encoder_slots.count,
                prediction=self.prediction_slots.count,
                checked=checked,
            ),
        )

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _usable(self, kind: str, limit: int | None) -> int:
        there = slot_count(self.program.header, self.program.config, kind)
        if limit is None:
            return there
        if not 1 <= limit <= there:
            raise BadRequest(f"{kind} slots out of range: found {limit}, expected 1..{there}")
        return limit

    # Commands

    def encode(self, entries: Sequence[EncodeEntry] | EncodeBatch) -> Ticket[None]:
        """Run one encoder step for each entry; the output is kept in the entry's bank of its slot.

        Raises (this and all other commands):
            BadRequest: an entry out of range or in another's way; nothing was sent.
            DeviceTimeout: there was no room for the commands in time; some may have been sent.
            DeviceError: device or link failed, or the device is halted.
        """
        return self._submit(self._builder.encode(self._encode_batch(entries)), lambda: None)

    def greedy(
        self,
        entries: Sequence[GreedyEntry] | EncodeBatch,
        *,
        max_symbols: int | None = None,
        temperature: int = UNIT_TEMPERATURE,
    ) -> Ticket[list[GreedyResult]]:
        """Run one encoder step and greedy decoding for each entry.

        Args:
            entries: one a stream.
            max_symbols: most tokens a step, 1..255; None takes the program's.
            temperature: inverse temperature of the log-sum-exp, Q2.14.

        Returns:
            A ticket for one result an entry, in their order.
        """
        batch = self._encode_batch(entries)
        most = int(self.program.manifest["decoding"]["max_symbols"]) if max_symbols is None else max_symbols
        found: dict[int, list[GreedyResult]] = {}
        pieces = self._builder.greedy(batch, most, temperature, found.__setitem__)
        return self._submit(pieces, lambda: [result for first in sorted(found) for result in found[first]])

    def decode(
        self,
        entries: Sequence[DecodeEntry] | DecodeBatch,
        *,
        k: int = 1,
        mode: Mode = Mode.TOP_K,
        named: Sequence[int] = (),
        temperature: int = UNIT_TEMPERATURE,
    ) -> Ticket[DecodeResult]:
        """Run prediction steps and joint evaluations.

        Args:
            entries: one a hypothesis; see DecodeEntry.
            k: classes listed of each, 1..33 (fuzzy: at most an eighth of all classes).
            mode: top-k, fuzzy top-k, or all logits.
            named: at most four classes whose logits are wanted in any case.
            temperature: inverse temperature of the log-sum-exp, Q2.14.
        """
        batch = entries if isinstance(entries, DecodeBatch) else DecodeBatch.of(entries)
        parts: list[DecodeResult] = []
        pieces = self._builder.decode(batch, k, mode, named, temperature, parts.append)
        return self._submit(pieces, lambda: join_decode(parts))

    def decode_form(
        self,
        *,
        k: int = 1,
        mode: Mode = Mode.TOP_K,
        named: Sequence[int] = (),
        temperature: int = UNIT_TEMPERATURE,
    ) -> DecodeForm:
        """What `decode_bytes` asks of the device each time; arguments and errors as for `decode`."""
        return self._builder.decode_form(k, mode, named, temperature)

    def decode_bytes(self, form: DecodeForm, entries: Bytes) -> Ticket[bytes]:
        """`decode` for who writes entries and reads results as the ISA has them (docs/isa.md, section 5).

        Args:
            form: by `decode_form`; of its `most` entries, or fewer, one command is made.
            entries: uint8 (n, 16).

        Returns:
            A ticket for the n results, `form.stride` bytes each. Those of entries without a joint mean nothing.
        """
        parts: list[bytes] = []
        pieces = self._builder.decode_bytes(form, entries, parts.append)
        return self._submit(pieces, lambda: b"".join(parts))

    def _encode_batch(self, entries: Sequence[EncodeEntry] | EncodeBatch) -> EncodeBatch:
        if isinstance(entries, EncodeBatch):
            return entries
        return EncodeBatch.of(entries, self._builder.stack, self._builder.count)

    def reset(self, kind: str, slots: Iterable[int]) -> Ticket[None]:
        """Make slots live and all zero; kind is "encoder" or "prediction"."""
        return self._slot_command(Operation.RESET, kind, slots)

    def free(self, kind: str, slots: Iterable[int]) -> Ticket[None]:
        """Make slots free, their state zero; their numbers stay with their owner (see `release`)."""
        return self._slot_command(Operation.FREE, kind, slots)

    def copy(self, kind: str, pairs: Iterable[tuple[int, int]]) -> Ticket[None]:
        """Copy states from the first slot of each pair to the second."""
        table = np.array(list(pairs), np.int64).reshape(-1, 2)
        return self._submit(self._builder.slots(Operation.COPY, _kind(kind), table[:, 0], table[:, 1]), lambda: None)

    def save(self, kind: str, slots: Iterable[int]) -> Ticket[list[SlotImage]]:
        """Read the states of live slots."""
        found: dict[int, list[bytes]] = {}
        pieces = self._builder.save(_kind(kind), _slots(slots), found.__setitem__)
        ids = self.program.program_id, self._layout_id
        return self._submit(
            pieces, lambda: [SlotImage(kind, *ids, data) for first in sorted(found) for data in found[first]]
        )

    def restore(self, slots: Iterable[int], images: Sequence[SlotImage]) -> Ticket[None]:
        """Put saved states into slots of their kind, which become live.

        Raises:
            BadRequest: an image of another program, of another kind than the others, or not one a slot.
        """
        numbers = _slots(slots)
        if len(numbers) != len(images) or not images:
            raise BadRequest(f"{len(numbers)} slots for {len(images)} images")
        kind = images[0].kind
        size = self._builder.slot_bytes[kind]
        for image in images:
            if image.kind != kind:
                raise BadRequest("images of encoder and of prediction slots in one call")
            if (image.program_id, image.layout_id) != (self.program.program_id, self._layout_id):
                raise BadRequest(
                    f"the state belongs to program {image.program_id:#010x} (code {image.layout_id:#010x}), "
                    f"this is {self.program.program_id:#010x} (code {self._layout_id:#010x})"
                )
            if len(image.data) != size:
                raise BadRequest(f"a state of {len(image.data)} bytes, expected {size}")
        return self._submit(self._builder.restore(kind, numbers, [image.data for image in images]), lambda: None)

    def _slot_command(self, operation: Operation, kind: str, slots: Iterable[int]) -> Ticket[None]:
        return self._submit(self._builder.slots(operation, _kind(kind), _slots(slots)), lambda: None)

    # Slot numbers

    def allocate(self, kind: str, count: int = 1) -> tuple[int, ...]:
        """Numbers of slots that nobody else has; they are free until a reset, a start or a restore.

        Raises:
            GharialError: fewer are left.
            DeviceError: a slot has yet to be wiped, and the device cannot do it; none is taken.
        """
        pool = self._pool(kind)
        with self._lock:
            slots = pool.allocate(count)
            left = self._unwiped[kind].intersection(slots)
        if left:
            try:
                self.free(kind, sorted(left))
            except BaseException:
                with self._lock:
                    pool.release(slots)
                raise
            with self._lock:
                self._unwiped[kind] -= left
        return slots

    def release(self, kind: str, slots: Iterable[int]) -> Ticket[None]:
        """Give slot numbers back. Their state is wiped first, so that nobody finds it later.

        Raises:
            BadRequest: a slot that was not allocated.
            GharialError: the wipe cannot be sent (the device failed, the driver is closed). The numbers are given back
                all the same; they are wiped when they are next allocated.
        """
        numbers, pool = tuple(slots), self._pool(kind)
        with self._lock:
            pool.check(numbers)
        try:
            # Sent before the numbers can be anyone else's: commands take effect in order.
            return self.free(kind, numbers)
        except BaseException:
            self._unwiped[kind].update(numbers)
            raise
        finally:
            with self._lock:
                pool.release(numbers)

    def _pool(self, kind: str) -> SlotPool:
        return self.encoder_slots if _kind(kind) == "encoder" else self.prediction_slots


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise BadRequest(f"kind of slot: found {kind}, expected {' or '.join(KINDS)}")
    return kind


def _slots(slots: Iterable[int]) -> np.ndarray:
    return np.array(list(slots), np.int64)
