# SPDX-License-Identifier: Apache-2.0
"""The training loop: updates, averaged weights, looks at the dev set, and checkpoints that it can go on from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gharial.bench.words import word_count, word_errors
from scripts.training.batches import Batch
from scripts.training.network import Network
from scripts.training.recipe import Recipe

_MINUTE = 60.0


@dataclass
class Progress:
    """Where a training is.

    Attributes:
        step: updates made.
        best_step: step of the weights in `best`, -1 before the first look at the dev set.
        best_errors: word errors on the dev set there.
        best: averaged weights with the fewest errors so far; of equal ones the latest.
        seconds: time spent so far, in all runs.
    """

    step: int = 0
    best_step: int = -1
    best_errors: int = 0
    best: dict[str, torch.Tensor] | None = None
    seconds: float = 0.0


class Trainer:
    """A network on its way.

    Args:
        recipe: see there.
        network: what is trained; its weights are the first ones.
    """

    def __init__(self, recipe: Recipe, network: Network) -> None:
        self.recipe = recipe
        self.network = network
        self.average = Network(network.dims).eval()
        self.average.load_state_dict(network.state_dict())
        matrices = [tensor for tensor in network.parameters() if tensor.ndim > 1]
        vectors = [tensor for tensor in network.parameters() if tensor.ndim == 1]
        groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=recipe.rate, betas=recipe.betas)
        self.progress = Progress()

    def update(self, batch: Batch) -> float:
        """One update of the weights; the loss a token before it."""
        recipe, step = self.recipe, self.progress.step
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.rate_at(step)
        self.network.train()
        # Dropout's choices depend on the step alone: a training that is taken up again goes on as it would have.
        torch.manual_seed(recipe.seed * 1_000_003 + step)
        self.optimizer.zero_grad(set_to_none=True)
        parts = (torch.from_numpy(part) for part in (batch.features, batch.lengths, batch.labels, batch.tokens))
        loss = self.network.loss(*parts) / int(batch.tokens.sum())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), recipe.clip)
        self.optimizer.step()
        kept = recipe.kept_at(step)
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.network.parameters(), strict=True):
                mean.lerp_(now, 1.0 - kept)
        self.progress.step += 1
        return float(loss.detach())

    def run(
        self,
        batches: Iterator[Batch],
        dev: Sequence[Batch],
        text: Callable[[Sequence[int]], str],
        say: Callable[[str], None],
        save: Callable[[], None],
    ) -> None:
        """Train to the recipe's end.

        Args:
            batches: from the one of `progress.step` on.
            dev: the dev set.
            text: text of token ids.
            say: takes a line about how it goes.
            save: called after each look at the dev set, and at the end.
        """
        recipe, progress = self.recipe, self.progress
        words = sum(word_count(said) for batch in dev for said in batch.texts)
        began, before, first = time.monotonic(), progress.seconds, progress.step
        losses = []
        for batch in batches:
            losses.append(self.update(batch))
            progress.seconds = before + time.monotonic() - began
            if progress.step % recipe.check and progress.step < recipe.steps:
                continue
            errors = dev_errors(self.average, dev, text)
            if progress.best is None or errors <= progress.best_errors:
                progress.best_step, progress.best_errors = progress.step, errors
                progress.best = {name: tensor.clone() for name, tensor in self.average.state_dict().items()}
            progress.seconds = before + time.monotonic() - began
            left = (progress.seconds - before) / (progress.step - first) * (recipe.steps - progress.step)
            say(
                f"step {progress.step} of {recipe.steps}  loss a token {np.mean(losses):.4f}  "
                f"dev {errors} of {words} words ({100 * errors / words:.1f} %)  "
                f"{progress.seconds / _MINUTE:.1f} min, {left / _MINUTE:.1f} min left"
            )
            losses = []
            save()

    def state(self) -> dict[str, Any]:
        """Everything to go on from, as a training checkpoint holds it."""
        progress = self.progress
        return {
            "epoch": 0,
            "step": progress.step,
            "state_dict": self.network.state_dict(),
            "ema_state_dict": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": dict(vars(progress)),
            "recipe": self.recipe.as_dict(),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.network.load_state_dict(state["state_dict"])
        self.average.load_state_dict(state["ema_state_dict"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(**state["progress"])


def dev_errors(network: Network, sets: Sequence[Batch], text: Callable[[Sequence[int]], str]) -> int:
    """Word errors of greedy decoding."""
    network.eval()
    errors = 0
    for batch in sets:
        found = network.greedy(torch.from_numpy(batch.features), torch.from_numpy(batch.lengths))
        errors += sum(word_errors(said, text(ids)) for said, ids in zip(batch.texts, found, strict=True))
    return errors
