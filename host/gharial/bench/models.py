# SPDX-License-Identifier: Apache-2.0
"""The two models that `gharial bench wer` compares: a program on a device, and its checkpoint in float."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gharial.bench.wer import bench_wer
from gharial.checkpoint import Prefixes, load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.devices.open import DEFAULT, device_config
from gharial.driver import DecodeEntry, DecodeResult, EncodeEntry, Ticket
from gharial.errors import BadInput
from gharial.features import quantise_features
from gharial.floating import Decoded, path_targets
from gharial.floating.path import LatticePath
from gharial.floating.yardstick import TorchRnnt
from gharial.isa.commands import Kind
from gharial.model import compile_model, demo_model, is_program, open_model
from gharial.recognise import Recogniser


class DeviceModel:
    """A compiled model on a device, as the bench asks for it.

    Args:
        recogniser: the model; it stays open.
        prefix: tokens that its prediction network hears before everything else.
    """

    def __init__(self, recogniser: Recogniser, prefix: tuple[int, ...] = ()) -> None:
        self._recogniser = recogniser
        self._prefix = prefix
        program = recogniser.program
        self._stack = program.header["vectors"]
        self._blank: int = program.manifest["decoding"]["blank"]
        self._max_symbols: int = program.manifest["decoding"]["max_symbols"]

    def greedy(self, features: np.ndarray) -> Decoded:
        """Greedy decoding of one recording, (T2, F) float32 normalised feature vectors."""
        engine = self._recogniser.engine
        session = engine.open(self._prefix)
        try:
            session.put(self._quantised(features))
            session.ended = True
            engine.run()
            if session.error is not None:
                raise session.error
            emitted = [token for result in session.results for token in result.finals]
            emitted += session.alternatives()[0].tokens
        finally:
            engine.close(session)
        return Decoded(
            [item.token for item in emitted], [item.step for item in emitted], [item.confidence for item in emitted]
        )

    def forced(self, features: np.ndarray, path: LatticePath) -> np.ndarray:
        """Best class at each joint evaluation along a path, (Q,) int64.

        The path says beforehand what is asked, so nothing waits for a result before the end.
        """
        vectors = self._quantised(features)
        steps = -(-len(vectors) // self._stack)
        driver = self._recogniser.driver
        (encoder,) = driver.allocate("encoder")
        (prediction,) = driver.allocate("prediction")
        results: list[Ticket[DecodeResult]] = []
        encoded = 0
        kind, token = Kind.START, 0
        try:
            for following in self._prefix:
                driver.decode([DecodeEntry(0, 0, kind, prediction, prediction, token, joint=False)])
                kind, token = Kind.TOKEN, following
            for step, target in path_targets(path, steps, self._blank, self._max_symbols):
                while encoded <= step:
                    part = vectors[encoded * self._stack : (encoded + 1) * self._stack]
                    driver.encode([EncodeEntry(encoder, part, encoded & 1, encoded == 0)])
                    encoded += 1
                results.append(driver.decode([DecodeEntry(encoder, step & 1, kind, prediction, prediction, token)]))
                kind, token = (Kind.NONE, 0) if target == self._blank else (Kind.TOKEN, target)
            return np.array([int(ticket.result().classes[0, 0]) for ticket in results], np.int64)
        finally:
            driver.release("encoder", (encoder,))
            driver.release("prediction", (prediction,))

    def _quantised(self, features: np.ndarray) -> np.ndarray:
        return quantise_features(features, self._recogniser.feature_bits)


def measure_wer(
    set_dir: Path,
    model: str | os.PathLike[str] | None = None,
    device: str = DEFAULT,
    *,
    limit: int | None = None,
    prefix: str | None = None,
    weights: str = "int8",
    quiet: bool = False,
    progress: Callable[[int, int], object] | None = None,
    note: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Word errors of a model on a device and of the same model in float, on a set.

    Args:
        set_dir: folder of the set.
        model: hardware checkpoint; None for the shipped demo model.
        device: name of the device.
        limit: only so many utterances from the start of the set.
        prefix: what both are told before the audio, as in `Recogniser.stream`.
        weights: type of the program's weights, as in `compile_model`; other programs than of int8 are not cached.
        quiet: no progress bar.
        progress, note: as in `open_model`.

    Returns:
        What `bench_wer` returns, with `device` and `config`.

    Raises:
        BadInput: set, model, prefix or device cannot be used, or PyTorch is not installed.
        GharialError: the device failed.
    """
    path = os.fspath(demo_model() if model is None else model)
    if is_program(path):
        raise BadInput("a program holds no float model", path, expected="a hardware checkpoint (.hw.pt)")
    checkpoint = load_hardware(path)
    told = Prefixes.of(checkpoint).tokens(prefix)
    yardstick = TorchRnnt.from_checkpoint(checkpoint, told)
    config = device_config(device)
    if weights == "int8":
        program = open_model(path, config, progress=progress, note=note)
    else:
        program = compile_model(path, config, progress=progress, weights=weights, allow_error=True)
    name = Path(path).name.removesuffix(".hw.pt")
    with Recogniser(program, device) as recogniser:
        found = bench_wer(
            set_dir,
            name,
            yardstick,
            DeviceModel(recogniser, told),
            lambda recording: audio_features(recording, recogniser.front_end),
            recogniser.vocabulary.text,
            quiet=quiet,
            limit=limit,
        )
        return found | {"device": recogniser.device_name, "config": program.config.name}
