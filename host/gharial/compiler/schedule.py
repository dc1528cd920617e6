# SPDX-License-Identifier: Apache-2.0
"""In which order the parts of a section run, and where their sums lie.

Recurrent parts need only the old state, so they can run while a layer below is still finishing. The order starts from
the plain one, layer by layer (first layer x first, all others h first), and pulls a later part forward where the next
one would have to wait, as far as the sums that this keeps alive fit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Value = tuple[str, int]  # (layer, feature vector of the step): an h or output that a post-operation makes

# Clocks from a part's last tile to its results being readable; only the order depends on it, never the results.
LATENCY = 64


@dataclass(frozen=True)
class Op:
    """One part over some feature vectors of a step: one MATVEC.

    Attributes:
        layer: the product's name.
        part: index of the part in the layer.
        vectors: feature vectors of the step, consecutive.
        first, last: of these, whose sums start, and whose are finished here.
        reads: values that must be there.
        cost: clocks for one entry, row groups x column tiles x vectors.
        region: which sums it works on; ops of one region keep their order.
        groups: sum groups of that region.
    """

    layer: str
    part: int
    vectors: tuple[int, ...]
    first: frozenset[int]
    last: frozenset[int]
    reads: tuple[Value, ...]
    cost: int
    region: str
    groups: int

    @property
    def writes(self) -> tuple[Value, ...]:
        """Values that are there when it is done."""
        return tuple((self.layer, v) for v in self.vectors if v in self.last)

    @property
    def keeps_sums(self) -> bool:
        """Whether it reads or leaves sums, so that its region needs room."""
        return any(v not in self.first or v not in self.last for v in self.vectors)


@dataclass
class SumRoom:
    """First-fit allocation of sum groups to regions."""

    capacity: int
    base: int = 0
    held: dict[str, tuple[int, int]] = field(default_factory=dict)
    peak: int = 0

    def claim(self, region: str, groups: int) -> bool:
        """Give the region its groups; False if there is no room."""
        if region in self.held:
            return True
        at = self.base
        for start, size in sorted(self.held.values()):
            if at + groups <= start:
                break
            at = start + size
        if at + groups > self.base + self.capacity:
            return False
        self.held[region] = (at, groups)
        self.peak = max(self.peak, at + groups)
        return True

    def copy(self) -> "SumRoom":
        """The same room, to try something."""
        return SumRoom(self.capacity, self.base, dict(self.held), self.peak)


def _take(op: Op, left: Sequence[Op], room: SumRoom) -> int | None:
    """Run an op's claim and release on the room; the op's first sum group, or None if there is no room."""
    start = 0
    if op.keeps_sums:
        if not room.claim(op.region, op.groups):
            return None
        start = room.held[op.region][0]
    if not any(other.region == op.region for other in left):
        room.held.pop(op.region, None)
    return start


def _fits(ops: Sequence[Op], room: SumRoom) -> bool:
    """Whether these ops, in this order, find room for their sums."""
    trial = room.copy()
    return all(_take(op, ops[i + 1 :], trial) is not None for i, op in enumerate(ops))


def schedule(ops: Iterable[Op], room: SumRoom) -> list[tuple[Op, int]] | None:
    """Order the ops.

    Args:
        ops: in plain order.
        room: sums; left with its peak.

    Returns:
        (op, first sum group) in order, or None if even the plain order finds no room.
    """
    left = list(ops)
    if not _fits(left, room):
        return None
    now = 0
    ready: dict[Value, int] = {}
    order: list[tuple[Op, int]] = []
    while left:
        made = {value for op in left for value in op.writes}
        chosen = 0
        if not _is_ready(left[0], ready, made, now):
            for index in range(1, len(left)):
                op = left[index]
                moved = [op, *left[:index], *left[index + 1 :]]
                blocked = any(other.region == op.region or other.layer == op.layer for other in left[:index])
                if not blocked and _is_ready(op, ready, made, now) and _fits(moved, room):
                    chosen = index
                    break
        op = left.pop(chosen)
        start = _take(op, left, room)
        if start is None:
            raise AssertionError(f"no room for the sums of {op.layer} although the order was tried")
        now = max([now, *(ready[value] for value in op.reads if value in ready)]) + op.cost
        ready |= dict.fromkeys(op.writes, now + LATENCY)
        order.append((op, start))
    return order


def _is_ready(op: Op, ready: dict[Value, int], made: set[Value], now: int) -> bool:
    return all(value not in made and ready.get(value, 0) <= now for value in op.reads)
