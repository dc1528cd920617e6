# SPDX-License-Identifier: Apache-2.0
"""Where everything lies in the device memory, in numbers, before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from gharial.errors import BadInput
from gharial.isa.commands import COMPLETION, DECODE_ENTRY, DESCRIPTOR, Mode, decode_result_bytes, greedy_result_bytes
from gharial.program import Program
from gharial.program.inspect import slot_bytes, slot_count

ALIGN = 64  # of rings, bases and everything the driver places (docs/isa.md, section 5)
BURST = 4096  # weights start at a page, so that no burst of theirs crosses one needlessly
STAGING_MOST = 64 << 20
ENTRY_BYTES = DECODE_ENTRY.bytes  # all kinds of entries are of one size
MAX_RING_LOG2 = 16
_SMALL_WINDOW = 32 << 10
_NEAR_MOST = 256  # bytes of a result that is worth reading along with its completion


@dataclass(frozen=True)
class Region:
    """Bytes address .. address + size - 1 of the device memory."""

    name: str
    address: int
    size: int

    @property
    def end(self) -> int:
        """The first byte behind."""
        return self.address + self.size


@dataclass(frozen=True)
class MemoryPlan:
    """Regions of the device memory.

    Attributes:
        commands, completions: the rings.
        staging: entry lists, features, results and program chunks of the commands in flight.
        weights, embedding, state: where the configuration keeps these in device memory, else None.
        near: room for the results of one command right behind the completions, so that one read gets both; None where
            reads cost little, or results are large.
        ring_log2: entries of each ring, log2.
        memory_bytes: bytes that the device has.
    """

    commands: Region
    completions: Region
    staging: Region
    weights: Region | None
    embedding: Region | None
    state: Region | None
    ring_log2: int
    memory_bytes: int
    near: Region | None = None

    @property
    def regions(self) -> list[Region]:
        """All regions there are, by address."""
        found = [self.commands, self.completions, self.near, self.staging, self.weights, self.embedding, self.state]
        return sorted((region for region in found if region is not None), key=lambda region: region.address)

    def __str__(self) -> str:
        lines = [f"{r.name:12s} {r.address:#012x} {r.size:12d} bytes" for r in self.regions]
        return "\n".join([*lines, f"{'device memory':25s} {self.memory_bytes:12d} bytes"])


def aligned(size: int, to: int = ALIGN) -> int:
    """The size rounded up."""
    return -(-size // to) * to


def entry_bytes(program: Program) -> dict[str, int]:
    """Staging bytes that one entry of each kind of command needs: entry, features or image, result."""
    header = program.header
    features = header["vectors"] * header["feature_bytes"]
    greedy = greedy_result_bytes(program.manifest["decoding"]["max_symbols"])
    return {
        "encode": ENTRY_BYTES + features,
        "greedy": ENTRY_BYTES + features + greedy,
        "decode": ENTRY_BYTES + decode_result_bytes(Mode.TOP_K, 1, header["classes"]),
        "encoder slot": ENTRY_BYTES + slot_bytes(header, program.config, "encoder"),
        "prediction slot": ENTRY_BYTES + slot_bytes(header, program.config, "prediction"),
    }


def state_bytes(program: Program) -> int:
    """Bytes of all slots where they lie in device memory."""
    header, config = program.header, program.config
    return sum(
        slot_count(header, config, kind) * aligned(slot_bytes(header, config, kind))
        for kind in ("encoder", "prediction")
    )


def plan_memory(program: Program, memory_bytes: int, ring_log2: int | None = None, frugal: bool = False) -> MemoryPlan:
    """Lay the device memory out.

    Args:
        program: the program that will run.
        memory_bytes: bytes that the device has.
        ring_log2: entries of each ring, log2 (0..16); None chooses by the memory's size.
        frugal: as of the device.

    Raises:
        BadInput: it does not fit; the message says what needs how much.
    """
    if ring_log2 is None:
        ring_log2 = 3 if memory_bytes < _SMALL_WINDOW else 4 if not program.config.in_memory else 8
    if not 0 <= ring_log2 <= MAX_RING_LOG2:
        raise BadInput("ring size out of range", "ring_log2", ring_log2, f"0..{MAX_RING_LOG2}")
    at = 0
    placed: list[Region] = []

    def place(name: str, size: int, to: int = ALIGN) -> Region:
        nonlocal at
        at = aligned(at, to)
        placed.append(Region(name, at, size))
        at += size
        return placed[-1]

    commands = place("commands", DESCRIPTOR.bytes << ring_log2)
    completions = place("completions", COMPLETION.bytes << ring_log2)
    weights = embedding = state = near = None
    result = greedy_result_bytes(program.manifest["decoding"]["max_symbols"])
    if frugal and result <= _NEAR_MOST:
        near = place("near", result)
    if program.config.in_memory:
        weights = place("weights", len(program.section("weights")), BURST)
        embedding = place("embedding", len(program.section("embedding")), BURST)
        state = place("state", state_bytes(program), BURST)
    at = aligned(at)
    kind, least = max(entry_bytes(program).items(), key=lambda item: item[1])
    least = staging_bytes(least)
    if at + least > memory_bytes:
        parts = [f"{region.size} {region.name}" for region in placed]
        raise BadInput(
            "the program does not fit the device memory",
            program.where,
            f"{memory_bytes} bytes",
            f"{at + least}: {', '.join(parts)}, {least} staging (one {kind})",
            "compile a smaller model, or use a device with more memory",
        )
    room = (memory_bytes - at) // ALIGN * ALIGN
    staging = Region("staging", at, min(room, max(STAGING_MOST, aligned(least))))
    return MemoryPlan(commands, completions, staging, weights, embedding, state, ring_log2, memory_bytes, near)


def staging_bytes(content: int) -> int:
    """Staging bytes of a command whose entries, payload and results take `content` bytes: each starts aligned."""
    return content + 3 * ALIGN
