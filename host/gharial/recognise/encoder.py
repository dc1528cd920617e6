# SPDX-License-Identifier: Apache-2.0
"""A program's encoder alone: vectors in, joint_enc's outputs out (docs/bring_your_lstm.md)."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from gharial.devices.base import Device
from gharial.devices.open import DEFAULT, open_device
from gharial.driver import Driver, EncodeBatch, SlotImage
from gharial.errors import BadInput
from gharial.features import quantise_features
from gharial.model import front_end
from gharial.program import Program

BANK = 0


class Encoder:
    """A program on an open device, of which the encoder is run and nothing else.

    Close it after use, or use it in a `with` statement. Not for use from several threads at once.

    Args:
        program: the network; any program has an encoder, those of networks that take no audio have nothing else.
        device: name of the device (`gharial devices` lists them).

    Raises:
        BadInput: the device is not known, or the program cannot be used on it.
        DeviceError: the device failed.
    """

    def __init__(self, program: Program, device: str = DEFAULT) -> None:
        self.program = program
        self.front_end = front_end(program)
        self.stack = program.header["vectors"]
        features, numerics = program.manifest["features"], program.manifest["numerics"]
        self._count, self._feature_bits = int(features["count"]), int(features["frac_bits"])
        self._outputs = int(program.layer("joint_enc")["units"])
        self._unit = float(numerics["joint_unit"]) * 2.0 ** -int(numerics["joint_shift"])
        self._device = open_device(device, program.config, program.manifest)
        self._driver = Driver(self._device, program)  # closes the device where it fails

    @property
    def device(self) -> Device:
        """The device itself, which belongs to the driver; for traces and counters."""
        return self._device

    def run(self, sequences: Sequence[npt.ArrayLike]) -> list[npt.NDArray[np.float64]]:
        """Run sequences from zero states, as many at a time as the device has slots.

        Args:
            sequences: (T, F) float each, T a multiple of the program's stack-time factor: vectors as the network takes
                them where they are made elsewhere, else as `gharial.features.FeatureStream` makes them.

        Returns:
            For each sequence joint_enc's outputs, (T / stack, J): what the dense layer gives, in its own unit.

        Raises:
            BadInput: a sequence of another shape, or with a value that is not finite.
            GharialError: the device failed.
        """
        steps = [self._steps(index, sequence) for index, sequence in enumerate(sequences)]
        outputs = [np.zeros((len(array), self._outputs)) for array in steps]
        # Sequences of like length run together, so that the last steps of a long one are not taken alone.
        order = sorted((i for i, array in enumerate(steps) if len(array)), key=lambda i: -len(steps[i]))
        most = self._driver.encoder_slots.free
        for first in range(0, len(order), most):
            self._together([(steps[i], outputs[i]) for i in order[first : first + most]])
        return outputs

    def _steps(self, index: int, sequence: npt.ArrayLike) -> npt.NDArray[np.int8]:
        """int8 (steps, stack, F) of a sequence."""
        try:
            vectors = self.front_end.normalised(np.asarray(sequence))
        except BadInput as error:
            raise BadInput(error.what, f"sequence {index}", error.found, error.expected) from None
        if len(vectors) % self.stack:
            # A short step ends a slot, and the state of an ended slot is not given out.
            found, expected = f"{len(vectors)} vectors", f"a multiple of {self.stack}"
            raise BadInput("the last step lacks vectors", f"sequence {index}", found, expected)
        return quantise_features(vectors, self._feature_bits).reshape(-1, self.stack, self._count)

    def _together(self, pairs: Sequence[tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]]) -> None:
        """Run sequences side by side, the longest first; fills the second array of each pair."""
        slots = np.array(self._driver.allocate("encoder", len(pairs)), np.int64)
        try:
            for step in range(len(pairs[0][0])):
                active = sum(len(steps) > step for steps, _ in pairs)
                batch = EncodeBatch(
                    slot=slots[:active],
                    features=np.stack([steps[step] for steps, _ in pairs[:active]]),
                    vectors=np.full(active, self.stack),
                    bank=np.full(active, BANK),
                    reset=np.full(active, step == 0),
                    prediction=np.zeros(active, np.int64),
                )
                self._driver.encode(batch).result()
                for (_, found), image in zip(
                    pairs, self._driver.save("encoder", slots[:active]).result(), strict=False
                ):
                    found[step] = self._output(image)
        finally:
            self._driver.release("encoder", slots.tolist())

    def _output(self, image: SlotImage) -> npt.NDArray[np.float64]:
        """joint_enc's output out of a slot: the C part follows the A part, int16 in cell units (isa.md, section 2)."""
        header, config = self.program.header, self.program.config
        unit = header["joint_enc_unit"] + BANK * header["joint_enc_units"]
        cells = np.frombuffer(image.data, "<i2", offset=header["enc_a_units"] * config.cols)
        return cells[unit * config.cell_unit :][: self._outputs] * self._unit

    def close(self) -> None:
        """Stop the device and let go of it. Closing twice is harmless."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
