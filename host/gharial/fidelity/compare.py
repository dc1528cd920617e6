# SPDX-License-Identifier: Apache-2.0
"""A program beside its checkpoint in float, over recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gharial.features import quantise_features
from gharial.fidelity.forced import IntegerRun, float_tensors, units_of
from gharial.fidelity.noise import TensorNoise
from gharial.floating.calibrate import RangeCollector, decode_greedily
from gharial.floating.network import MAX_SYMBOLS, FloatNetwork
from gharial.floating.path import TALK, LatticePath, babbles, drawn_path, path_targets
from gharial.program import Program
from gharial.trace.diff import Place, first_difference

DECISIVE = 4.0
"""A float margin of so many standard deviations of the logits' error is not to be overturned by it."""

_LIMITS = {"int8": (-127, 127), "int16": (-32768, 32767), "joint": (0, 127)}


@dataclass(frozen=True)
class Recording:
    """Speech to compare over.

    Attributes:
        name: what it is called in reports.
        features: float32 (T2, F).
        path: (encoder step, token id) to lead both models along; None for the float model's greedy path, behind the
            prefix; where that is babble, a drawn one (`drawn_path`).
        prefix: tokens that come before the float model's own, as if at the first step.
    """

    name: str
    features: np.ndarray
    path: LatticePath | None = None
    prefix: Sequence[int] = ()


@dataclass(frozen=True)
class Parting:
    """The first joint evaluation along a path at which the integers choose otherwise than the float model.

    Attributes:
        recording: its name.
        step: encoder step.
        evaluation: joint evaluation, counted from the recording's start.
        float_class, integer_class: what each chooses.
        margin: of the float model's choice over the integers', in the float logits.
        errors: what each tensor of that step is off by, in its own steps, root of the mean square.
        place: as `gharial trace diff` would name it: the first token that differs. None where both emit the same, and
            on a drawn path, which neither takes by itself.
    """

    recording: str
    step: int
    evaluation: int
    float_class: int
    integer_class: int
    margin: float
    errors: dict[str, float]
    place: str | None


@dataclass
class Comparison:
    """All recordings together.

    Attributes:
        tensors: by trace name, in the order of the machine.
        recordings: recordings with at least one feature vector.
        evaluations, agreeing: joint evaluations, and those at which the best class is the same.
        decisive, decisive_agreeing: the same of those whose float margin exceeds DECISIVE times `error`.
        error: standard deviation of the logits' error, over all recordings.
        babble: recordings that were led along a drawn path, as the float model's own is babble.
        partings: of each recording that has one, in order; only where no path was given.
    """

    tensors: dict[str, TensorNoise]
    recordings: int = 0
    evaluations: int = 0
    agreeing: int = 0
    decisive: int = 0
    decisive_agreeing: int = 0
    error: float = 0.0
    babble: int = 0
    partings: list[Parting] = field(default_factory=list)

    @property
    def logits(self) -> TensorNoise:
        """Of the logits."""
        return self.tensors["logits"]

    @property
    def agreement(self) -> float:
        """Share of joint evaluations with the same best class; 1 where there is none."""
        return self.agreeing / self.evaluations if self.evaluations else 1.0

    @property
    def decisive_agreement(self) -> float:
        """The same share of the decisive evaluations."""
        return self.decisive_agreeing / self.decisive if self.decisive else 1.0


@dataclass(frozen=True)
class Counted:
    """How often two models chose the same; fields as in `Comparison`."""

    evaluations: int = 0
    agreeing: int = 0
    decisive: int = 0
    decisive_agreeing: int = 0
    error: float = 0.0


class Choices:
    """Best classes of both models and the float margins, for what can only be counted once all errors are known."""

    def __init__(self) -> None:
        self.margins: list[np.ndarray] = []
        self.same: list[np.ndarray] = []
        self.sums = np.zeros(3)  # of the logits' error: elements, sum, sum of squares

    def add(self, exact: np.ndarray, found: np.ndarray) -> None:
        """Take one recording's logits, float64 (Q, V) of the float model and of the program."""
        error = found - exact
        self.sums += error.size, error.sum(), np.square(error).sum()
        two = np.partition(exact, -2, axis=1)[:, -2:] if exact.shape[1] > 1 else np.pad(exact, ((0, 0), (1, 0)))
        self.margins.append(two[:, 1] - two[:, 0])
        self.same.append(exact.argmax(axis=1) == found.argmax(axis=1))

    def counted(self) -> Counted:
        """What came of all recordings."""
        size, total, squares = self.sums
        if not size:
            return Counted()
        error = float(np.sqrt(max(squares / size - (total / size) ** 2, 0.0)))
        same = np.concatenate(self.same)
        decisive = np.concatenate(self.margins) > DECISIVE * error
        return Counted(len(same), int(same.sum()), int(decisive.sum()), int(same[decisive].sum()), error)


def compare(
    program: Program,
    network: FloatNetwork,
    recordings: Iterable[Recording],
    *,
    only: str | None = None,
    progress: Callable[[int], object] | None = None,
) -> Comparison:
    """Lead both models along the same path through each recording.

    Args:
        program: compiled from the network's checkpoint.
        network: the float model.
        recordings: those without a feature vector count for nothing.
        only: leave out every other tensor, and the partings.
        progress: called with the number of recordings done since the last call.

    Raises:
        BadInput: a path does not fit its recording.
        DeviceError: the emulator failed.
    """
    units = units_of(program)
    kept = list(units) if only is None else [only]
    result = Comparison({name: TensorNoise(units[name], *_limits(name), held=name.endswith(".pre")) for name in kept})
    choices = Choices()
    bits = program.manifest["features"]["frac_bits"]
    with IntegerRun(program) as run:
        for recording in recordings:
            if len(recording.features):
                result.recordings += 1
                encoded = network.encode(recording.features)
                path, own = recording.path, False
                if path is None:
                    path, own = _path(network, encoded["joint_enc"], recording.prefix, result.recordings - 1)
                    result.babble += not own
                exact = float_tensors(network, encoded, path) | {"features": recording.features}
                found = run.tensors(quantise_features(recording.features, bits), path)
                for name in kept:
                    result.tensors[name].add(exact[name], found[name])
                choices.add(exact["logits"].astype(np.float64), found["logits"] * units["logits"])
                if recording.path is None and only is None:
                    result.partings += _parting(recording, network, path, own, exact, found, units)
            if progress is not None:
                progress(1)
    counted = choices.counted()
    result.evaluations, result.agreeing = counted.evaluations, counted.agreeing
    result.decisive, result.decisive_agreeing = counted.decisive, counted.decisive_agreeing
    result.error = counted.error
    return result


def _path(network: FloatNetwork, joint_enc: np.ndarray, prefix: Sequence[int], number: int) -> tuple[LatticePath, bool]:
    """The path of a recording that has none, behind its prefix; whether it is the float model's own."""
    (found,) = decode_greedily(network, [joint_enc], RangeCollector(), prefix, TALK)
    own = not babbles(found, len(joint_enc))
    if not own:
        found = drawn_path(number, len(joint_enc), network.blank)
    # However much the model says at once: no more than a step may hold.
    first = sum(step == 0 for step, _ in found)
    spare = max(0, first + len(prefix) - MAX_SYMBOLS)
    return [*((0, token) for token in prefix), *found[: first - spare], *found[first:]], own


def _limits(name: str) -> tuple[int, int]:
    if name == "joint":
        return _LIMITS["joint"]
    return _LIMITS["int8" if name == "features" or name.endswith(".h") else "int16"]


def _parting(
    recording: Recording,
    network: FloatNetwork,
    path: LatticePath,
    own: bool,
    exact: dict[str, np.ndarray],
    found: dict[str, np.ndarray],
    units: dict[str, float],
) -> list[Parting]:
    """Up to the first evaluation that comes out otherwise the integers would have taken an own path by themselves."""
    best = found["logits"].argmax(axis=1)
    steps = len(exact["joint_enc"])
    token = 0
    for index, (step, target) in enumerate(path_targets(path, steps, network.blank, MAX_SYMBOLS)):
        # Against the float model's choice, which is the path's but where it was made to stop talking.
        choice = int(exact["logits"][index].argmax())
        if index >= len(recording.prefix) and int(best[index]) != choice:
            at = {"joint": index, "logits": index, "joint_pred": token}
            errors = {}
            for tensor, unit in units.items():
                if tensor.startswith("prediction."):
                    row = token
                elif tensor == "features" or tensor.startswith("encoder.pre_rnn."):
                    row = min((step + 1) * network.dims.stack, len(exact["features"])) - 1
                else:
                    row = at.get(tensor, step)
                error = found[tensor][row] - exact[tensor][row].astype(np.float64) / unit
                errors[tensor] = float(np.sqrt(np.square(error).mean()))
            logits = exact["logits"][index]
            margin = float(logits[choice] - logits[best[index]])
            before = path[len(recording.prefix) : token]
            place = _place(network.blank, before, steps, step, choice, int(best[index])) if own else None
            return [Parting(recording.name, step, index, choice, int(best[index]), margin, errors, place)]
        token += target != network.blank
    return []


def _place(blank: int, before: LatticePath, steps: int, step: int, a: int, b: int) -> str | None:
    """The first token in which the two transcripts differ, in the words of `gharial trace diff`."""
    sides: list[dict[str, np.ndarray]] = []
    for choice in (a, b):
        taken = [*before, (step, choice)] if choice != blank else list(before)
        sides.append(
            {
                "prefix": np.zeros(0, np.int32),
                "features": np.zeros((steps, 1), np.int8),
                "joint_enc": np.zeros((steps, 1), np.int16),
                **{name: np.zeros((0, 1), np.int16) for name in ("joint_pred", "joint", "logits", "lse")},
                "steps": np.array([at for at, _ in taken], np.int32),
                "tokens": np.array([token for _, token in taken], np.int32),
            }
        )
    # The order of a trace follows the tokens of its first side: let that be the one that emits.
    sides.sort(key=lambda side: -len(side["tokens"]))
    difference = first_difference(*sides)
    place: Place | None = difference.place if difference is not None else None
    return None if place is None else str(place)
