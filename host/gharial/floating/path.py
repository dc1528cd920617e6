# SPDX-License-Identifier: Apache-2.0
"""Greedy results and the paths through the output lattice that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gharial.errors import BadInput

LatticePath = Sequence[tuple[int, int]]
"""(encoder step, token id) of each token in the order of emission; blanks are implied."""

TALK = 2.0
"""Tokens an encoder step, over a recording, that no network says which has learnt to listen: speech has 0.15."""

_DRAWN_EVERY = 2  # encoder steps from one drawn token to the next: denser than speech, so that many are heard


@dataclass(frozen=True)
class Decoded:
    """Result of greedy decoding.

    Attributes:
        tokens: token ids, blanks left out.
        steps: encoder step of each token, never falling.
        confidences: probability of each token when it was chosen, 0 to 1.
    """

    tokens: list[int]
    steps: list[int]
    confidences: list[float]

    @property
    def path(self) -> list[tuple[int, int]]:
        """(step, token) pairs."""
        return list(zip(self.steps, self.tokens, strict=True))


def path_targets(path: LatticePath, steps: int, blank: int, max_symbols: int) -> list[tuple[int, int]]:
    """The joint evaluations along a path, in order, and the class the path takes at each.

    A step is left by a blank, or, after `max_symbols` tokens, without another evaluation. On the path of a model's own
    greedy decoding the class is that model's argmax throughout.

    Args:
        path: the path.
        steps: encoder steps of the recording.
        blank: class that stands for blank.
        max_symbols: most tokens at one step.

    Returns:
        (encoder step, class) of each evaluation.

    Raises:
        BadInput: a step outside 0..steps-1 or out of order, a token outside 0..blank-1, or too many tokens at a step.
    """
    targets: list[tuple[int, int]] = []
    at = 0
    for step in range(steps):
        count = 0
        while at < len(path) and path[at][0] == step:
            token = path[at][1]
            if not 0 <= token < blank:
                raise BadInput("token is outside the vocabulary", f"path item {at}", token, f"0 to {blank - 1}")
            targets.append((step, token))
            count += 1
            at += 1
        if count > max_symbols:
            raise BadInput("too many tokens at one step", f"path, step {step}", count, f"at most {max_symbols}")
        if count < max_symbols:
            targets.append((step, blank))
    if at < len(path):
        raise BadInput("step is out of order or range", f"path item {at}", path[at][0], f"rising, below {steps}")
    return targets


def babbles(path: LatticePath, steps: int, talk: float = TALK) -> bool:
    """Whether a network's own path through a recording is babble, as that of an untrained one is.

    Args:
        path: its greedy path, however far that was followed.
        steps: encoder steps of the recording.
        talk: tokens an encoder step, over the recording, that are not yet babble.
    """
    return len(path) > talk * steps


def drawn_path(seed: int, steps: int, blank: int) -> list[tuple[int, int]]:
    """A path for a network that babbles: a token at every other encoder step, each drawn from all but blank.

    Babble is the same few tokens over and over, and what a network makes of these is no measure of what it makes of
    the others.

    Args:
        seed: number of the recording, say: the same one gives the same path.
        steps: encoder steps of the recording.
        blank: class that stands for blank; tokens are below it.
    """
    random = np.random.default_rng(seed)
    return [(step, int(random.integers(0, blank))) for step in range(0, steps, _DRAWN_EVERY)] if blank else []
