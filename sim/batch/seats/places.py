# SPDX-License-Identifier: Apache-2.0
"""Where units of seats lie, and the structures at the seater's ports: rtl/pkg/seat_pkg.sv in Python."""

from __future__ import annotations

from dataclasses import dataclass

from gharial.isa.configs import Config
from sim.sequencer.packing import Fields

SCRATCH, ENC, PRED = 0, 1, 2  # regions of the activations
CELL_ENC, CELL_PRED, CELL_JOINT = 0, 1, 2  # and of the cells
FETCH, STORE, ZERO = 0, 1, 2  # move_op_e
LOOK, TAKE, LEAVE = 0, 1, 2  # slot_use_e

MOVE: Fields = (
    *(("op", 2), ("addr", 64), ("act", 20), ("act_units", 16)),
    *(("cell_unit", 20), ("cell_units", 16), ("tag", 8)),
)
WORK: Fields = (
    *(("work", 3), ("operation", 8), ("checked", 1), ("first", 16), ("count", 16), ("features", 64), ("k", 8)),
    *(("mode", 2), ("named", 3), ("named_class", 64), ("temperature", 16), ("result", 64), ("result_stride", 32)),
)
ENDED: Fields = (
    *(("work", 3), ("last", 1), ("fault", 8), ("unit", 8), ("detail", 32), ("entry", 16)),
    *(("predictions", 16), ("joints", 16)),
)
RAN: Fields = (
    *(("side", 1), ("fault", 8), ("unit", 8), ("detail", 32), ("entry", 16), ("predictions", 16), ("joints", 16)),
)
ASK: Fields = (("op", 2), ("prediction", 1), ("slot", 16), ("zeros", 1), ("bank", 1))
TOLD: Fields = (("blank", 1), ("busy", 1), ("bank", 1))
READ: Fields = (("addr", 64), ("words", 27))
PLACES: Fields = (
    *((name, 64) for name in ("weights", "embedding", "enc_slots", "pred_slots")),
    *((name, 32) for name in ("enc_stride", "pred_stride")),
)


def batch_fields(seats: int) -> Fields:
    """`batch_t`."""
    return (
        *(("operation", 8), ("work", 3), ("side", 1), ("index", 16), ("seats", seats), ("vectors", 3 * seats)),
        *((name, seats) for name in ("predicts", "starts", "joints")),
        *(("tokens", 16 * seats), ("k", 8), ("mode", 2), ("named", 3), ("named_class", 64), ("temperature", 16)),
        *(("result", 64), ("result_stride", 32)),
    )


def aux_fields(seats: int) -> Fields:
    """`seat_aux_job_t`."""
    return (
        *(("thread", 1), ("seats", seats), ("joint", 1), ("row", 1), ("embed_unit", 32), ("unit_count", 16)),
        *(("joint_enc", 20), ("joint_pred", 20), ("joint_enc_shift", 5), ("joint_pred_shift", 5), ("shift", 4)),
        *(("destination", 20), ("destination_shift", 5)),
    )


def _log2(value: int) -> int:
    return (value - 1).bit_length()


@dataclass(frozen=True)
class Places:
    """Addresses of units in the seat memories of a configuration.

    Attributes:
        act_units, cell_units: of a seat and side, by region.
    """

    seats: int
    act_units: tuple[int, int, int]
    cell_units: tuple[int, int, int]
    unit_bytes: int
    cell_bytes: int

    @classmethod
    def of(cls, config: Config) -> Places:
        """Those of that configuration."""
        acts = config.scratch_units, config.enc_a_units, config.pred_a_units
        cells = config.enc_c_units, config.pred_c_units, config.pred_c_units
        return cls(config.batch, acts, cells, config.cols, config.rows // 2)

    def act(self, region: int, side: int, seat: int, unit: int = 0) -> int:
        """Address of an activation unit."""
        return self._place(self.act_units, region, side, seat, unit)

    def cell(self, region: int, side: int, seat: int, unit: int = 0) -> int:
        """Address of a cell unit."""
        return self._place(self.cell_units, region, side, seat, unit)

    def act_shift(self, region: int) -> int:
        """By how much a seat's number is shifted."""
        return _log2(self.act_units[region]) + 1

    def cell_shift(self, region: int) -> int:
        """By how much a seat's number is shifted."""
        return _log2(self.cell_units[region]) + 1

    def _place(self, units: tuple[int, ...], region: int, side: int, seat: int, unit: int) -> int:
        most, own = max(map(_log2, units)), _log2(units[region])
        return region << (_log2(self.seats) + 1 + most) | seat << (own + 1) | side << own | unit
