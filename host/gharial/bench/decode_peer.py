# SPDX-License-Identifier: Apache-2.0
"""The transducer search of torchaudio on the bench's table, beside ours in `bench decode`; optional (extra `peer`)."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

NAME = "torchaudio.models.RNNTBeamSearch"
DOES_NOT = "no n-gram, no thresholds, no finals; one stream at a time; a log-softmax over all classes is its own work"
MAX_SYMBOLS = 8
STREAMS = 8
STEPS = 100
_WARM_UP = 5  # steps
_FLOOR = -40.0  # of classes that the table does not list, as logits
_STEP_S = 0.06

Hypotheses = list[tuple[list[int], Any, Any, float]]
"""Tokens with a blank before them, output and state of the prediction network, score."""


class Device(Protocol):
    """What answers entries of a DECODE command, as `decode_device.TableDevice` does."""

    def decode(self, entries: np.ndarray, step: int) -> np.ndarray:
        """Results of entries (n, 16) at one step: bytes (n, stride)."""


def load() -> tuple[type[Any], str]:
    """The peer's class, and its version.

    Raises:
        ImportError: torchaudio, or torch, is not there.
        OSError: what is there cannot be read.
    """
    import torch

    found = importlib.util.find_spec("torchaudio")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("torchaudio is not installed (pip install gharial[peer])", name="torchaudio")
    # The search is one module of plain Python over torch. Its package as a whole loads libraries that want CUDA's,
    # which torch's CPU builds do not bring; the module is run without, and all that it takes from the package is a
    # name for annotations.
    place = Path(found.submodule_search_locations[0], "models", "rnnt_decoder.py")
    spec = importlib.util.spec_from_file_location("torchaudio.models.rnnt_decoder", place)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{place} is no Python module", name="torchaudio")
    module = importlib.util.module_from_spec(spec)
    package, models = types.ModuleType("torchaudio"), types.ModuleType("torchaudio.models")
    vars(models)["RNNT"] = torch.nn.Module
    stand_ins = {"torchaudio": package, "torchaudio.models": models}
    kept = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        spec.loader.exec_module(module)
    finally:
        for name, before in kept.items():
            if before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = before
    return module.RNNTBeamSearch, importlib.metadata.version("torchaudio")


class _Network:
    """A stream of the table as the peer asks a network: states, and outputs of the prediction network, are slots.

    Args:
        device: the table; its slots are this stream's alone.
        stream: number of the stream.
        blank: class; there are `blank` others below it.
        k, unit: classes that a result lists, nats of a logit step.
    """

    def __init__(self, device: Device, stream: int, blank: int, k: int, unit: float) -> None:
        self._device, self._stream, self._blank, self._k, self._unit = device, stream, blank, k, unit
        self._torch: Any = importlib.import_module("torch")
        self._used = 0
        self.step = 0
        self.spent = 0.0

    def transcribe_streaming(self, frames: Any, lengths: Any, state: Any) -> tuple[Any, Any, Any]:
        """Encoder: the table knows the step by itself."""
        return frames, lengths, state

    def predict(self, tokens: Any, lengths: Any, state: Any) -> tuple[Any, Any, list[list[Any]]]:
        """Slots (n, 1, 1) behind tokens (n, 1)."""
        began = time.thread_time()
        count = len(tokens)
        to = np.arange(self._used, self._used + count)
        self._used += count
        if state is None:
            self._ask(2, to, to, np.zeros_like(to))
        else:
            self._ask(1, state[0][0][:, 0].numpy(), to, tokens[:, 0].numpy())
        slots = self._torch.from_numpy(to).reshape(count, 1)
        self.spent += time.thread_time() - began
        return slots[:, None], lengths, [[slots]]

    def join(self, encoded: Any, lengths: Any, predicted: Any, target_lengths: Any) -> tuple[Any, Any, Any]:
        """Log-probabilities (n, 1, 1, classes) of slots (n, 1, 1)."""
        began = time.thread_time()
        slots = predicted[:, 0, 0].numpy()
        results = self._ask(0, slots, slots, np.zeros_like(slots))
        rows = np.full((len(slots), self._blank + 1), _FLOOR, np.float32)
        listed = np.ascontiguousarray(results[:, 16 : 16 + 4 * self._k]).view("<i2").reshape(len(slots), self._k, 2)
        classes = listed[:, :, 1].astype(np.int64) & 0xFFFF
        np.put_along_axis(rows, classes, (listed[:, :, 0] * self._unit).astype(np.float32), 1)
        rows[:, self._blank] = np.ascontiguousarray(results[:, 4:6]).view("<i2")[:, 0] * self._unit
        found = self._torch.from_numpy(rows)[:, None, None]
        self.spent += time.thread_time() - began
        return found, lengths, target_lengths

    def _ask(self, kind: int, source: np.ndarray, to: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        words = np.zeros((len(to), 4), "<u4")
        words[:, 0], words[:, 1], words[:, 2] = self._stream | kind << 21, source | to << 16, tokens
        return self._device.decode(words.view(np.uint8), self.step)


class PeerStream:
    """One stream, searched by the peer.

    Args:
        device: the table; its slots are this stream's alone, and a step uses `MAX_SYMBOLS` x `width` new ones at most.
        stream: number of the stream in the table.
        blank: class, the last one.
        width: of the beam.
        k, unit: classes that a result lists, nats of a logit step (log-probabilities are not scaled any more).

    Attributes:
        busy_s: seconds of this thread in the search, without those in the table.

    Raises:
        ImportError, OSError: as `load`.
    """

    def __init__(self, device: Device, stream: int, blank: int, width: int, k: int, unit: float) -> None:
        search, _ = load()
        self._network = _Network(device, stream, blank, k, unit)
        self._search, self._width = search(self._network, blank, 1.0, None, MAX_SYMBOLS), width
        self._torch: Any = importlib.import_module("torch")
        self._one = self._torch.ones(1, dtype=self._torch.int64)
        self._frame = self._torch.zeros(1, 1, 1)
        self._hypotheses: Hypotheses | None = None
        self.busy_s = 0.0

    def step(self) -> None:
        """One step of it."""
        network = self._network
        with self._torch.inference_mode():
            began, before = time.thread_time(), network.spent
            self._hypotheses, _ = self._search.infer(self._frame, self._one, self._width, None, self._hypotheses)
            self.busy_s += time.thread_time() - began - (network.spent - before)
        network.step += 1

    def best(self) -> list[int]:
        """Tokens of the best hypothesis."""
        return self._hypotheses[0][0][1:] if self._hypotheses else []


def compare(
    table: Callable[[int], Device],
    *,
    blank: int,
    width: int,
    k: int,
    unit: float,
    ours: float,
    note: Callable[[str], object],
) -> dict[str, Any] | None:
    """Streams a core of the peer.

    Args:
        table: the table, with that many slots.
        blank, width, k, unit: as for `PeerStream`.
        ours: streams a core that it is compared with.
        note: is told what takes long, or why there is no peer.

    Returns:
        name, version, streams_per_core, ratio (ours to the peer's) and does_not: what of the search it leaves out.
        None if the peer is not there.
    """
    slots = 1 + (_WARM_UP + STEPS) * MAX_SYMBOLS * width  # a hypothesis takes one, and they are used once
    try:
        _, version = load()
        streams = [PeerStream(table(slots), stream, blank, width, k, unit) for stream in range(STREAMS)]
    except (ImportError, OSError) as error:
        note(f"no peer: {error}")
        return None
    note(f"the peer, {NAME}")
    torch: Any = importlib.import_module("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _ in range(_WARM_UP):
            for stream in streams:
                stream.step()
        before = sum(stream.busy_s for stream in streams)
        for _ in range(STEPS):
            for stream in streams:
                stream.step()
    finally:
        torch.set_num_threads(threads)
    rate = len(streams) * STEPS * _STEP_S / (sum(stream.busy_s for stream in streams) - before)
    return {
        "name": NAME,
        "version": version,
        "streams_per_core": round(rate, 1),
        "ratio": round(ours / rate, 1),
        "does_not": DOES_NOT,
    }
