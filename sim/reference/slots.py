# SPDX-License-Identifier: Apache-2.0
"""State slots: free, live or ended, and their bytes in SAVE and RESTORE (docs/isa.md, section 2; docs/program.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from gharial.errors import BadInput
from gharial.isa.configs import Config

from .model import EncoderState, PredictionState, ReferenceModel
from .numerics import Array


class Life(Enum):
    """What a slot may be used for."""

    FREE = 0
    LIVE = 1
    ENDED = 2


@dataclass
class EncoderSlot:
    """One encoder slot that is not free."""

    state: EncoderState
    life: Life = Life.LIVE


@dataclass
class PredictionSlot:
    """One prediction slot that is not free."""

    state: PredictionState
    life: Life = Life.LIVE


@dataclass
class SlotStore:
    """All slots of one program; a slot that is not in its table is free.

    Attributes:
        encoders, predictions: number of slots.
        encoder, prediction: slots in use, by number.
    """

    encoders: int
    predictions: int
    encoder: dict[int, EncoderSlot] = field(default_factory=dict)
    prediction: dict[int, PredictionSlot] = field(default_factory=dict)

    def encoder_life(self, slot: int) -> Life:
        """Free, live or ended."""
        return self.encoder[slot].life if slot in self.encoder else Life.FREE

    def prediction_life(self, slot: int) -> Life:
        """Free or live."""
        return self.prediction[slot].life if slot in self.prediction else Life.FREE


def slot_numbers(config: Config, header: dict[str, int]) -> tuple[int, int]:
    """Encoder and prediction slots that a program has on a configuration; 0 where one slot is too large."""
    return (
        _number(config, header["enc_a_units"], header["enc_c_units"], config.enc_slots, "enc"),
        _number(config, header["pred_a_units"], header["pred_c_units"], config.pred_slots, "pred"),
    )


def _number(config: Config, a: int, c: int, limit: int, kind: str) -> int:
    pool_a, pool_c = getattr(config, f"{kind}_a_units"), getattr(config, f"{kind}_c_units")
    if config.in_memory:
        return limit if a <= pool_a and c <= pool_c else 0  # a slot is computed on in a place of that size
    return min([limit] + ([pool_a // a] if a else []) + ([pool_c // c] if c else []))


def slot_bytes(config: Config, a_units: int, c_units: int) -> int:
    """Bytes of a slot's image: A part, then C part."""
    return a_units * config.cols + c_units * config.cell_unit * 2


def state_bytes(config: Config, header: dict[str, int]) -> int:
    """Bytes that all slots take where they lie in the device memory: 64-byte aligned, encoder slots first."""
    encoders, predictions = slot_numbers(config, header)
    encoder = slot_bytes(config, header["enc_a_units"], header["enc_c_units"])
    prediction = slot_bytes(config, header["pred_a_units"], header["pred_c_units"])
    return encoders * (-(-encoder // 64) * 64) + predictions * (-(-prediction // 64) * 64)


def check_layout(model: ReferenceModel) -> None:
    """Whether the header gives slots the layout that this model packs them in.

    Raises:
        BadInput: it does not.
    """
    config, header = model.config, model.header
    encoder = sum(layer.padded for layer in model.pre + model.post)
    prediction = sum(layer.padded for layer in model.prediction)
    J, cell = model.joint_padded, config.cell_unit
    wanted = {
        "enc_a_units": encoder // config.cols,
        "enc_c_units": (encoder + 2 * J) // cell,
        "pred_a_units": prediction // config.cols,
        "pred_c_units": (prediction + J) // cell,
        "joint_enc_unit": encoder // cell,
        "joint_enc_units": J // cell,
        "joint_pred_unit": prediction // cell,
        "joint_pred_units": J // cell,
    }
    for key, value in wanted.items():
        if header[key] != value:
            raise BadInput("slots are not laid out in the order of the layers", f"header, {key}", header[key], value)


def pack_encoder(state: EncoderState) -> bytes:
    """h of every layer as int8; c of every layer, bank 0 and bank 1 as int16."""
    return _pack(state.h, [*state.c, *state.banks])


def unpack_encoder(model: ReferenceModel, image: bytes) -> EncoderState:
    """What `pack_encoder` wrote."""
    sizes = [layer.padded for layer in model.pre + model.post]
    h, c = _unpack(image, sizes, [*sizes, model.joint_padded, model.joint_padded])
    return EncoderState(h, c[:-2], np.stack(c[-2:]))


def pack_prediction(state: PredictionState) -> bytes:
    """h of every layer as int8; c of every layer and joint_pred's output as int16."""
    return _pack(state.h, [*state.c, state.joint_pred])


def unpack_prediction(model: ReferenceModel, image: bytes) -> PredictionState:
    """What `pack_prediction` wrote."""
    sizes = [layer.padded for layer in model.prediction]
    h, c = _unpack(image, sizes, [*sizes, model.joint_padded])
    return PredictionState(h, c[:-1], c[-1])


def _pack(bytes_: list[Array], words: list[Array]) -> bytes:
    return b"".join([v.astype("i1").tobytes() for v in bytes_] + [v.astype("<i2").tobytes() for v in words])


def _unpack(image: bytes, byte_sizes: list[int], word_sizes: list[int]) -> tuple[list[Array], list[Array]]:
    split = sum(byte_sizes)
    h = np.frombuffer(image[:split], dtype="i1").astype(np.int64)
    c = np.frombuffer(image[split:], dtype="<i2").astype(np.int64)
    return _cut(h, byte_sizes), _cut(c, word_sizes)


def _cut(v: Array, sizes: list[int]) -> list[Array]:
    parts, start = [], 0
    for size in sizes:
        parts.append(v[start : start + size])
        start += size
    return parts
