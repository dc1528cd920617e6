# SPDX-License-Identifier: Apache-2.0
"""Train the demo model from recordings of single words: docs/training.md has the recipe and what it gives.

Reads speech_commands/WORD/*.flac below the data folder. Everything goes into the output folder: the dev and test sets
as recordings with manifests (sets/dev, sets/test), checkpoints, config.yaml, and at the end the hardware checkpoint. A
training that was interrupted is taken up again by the same command.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import gharial
from gharial.checkpoint import load_hardware
from gharial.export import export_checkpoint
from gharial.features import FeatureSpec
from gharial.model import demo_model
from gharial.model.vocabulary import Vocabulary
from scripts.training import checkpoints
from scripts.training.batches import batches, class_shares, encoder, string_maker
from scripts.training.network import DEMO, Network
from scripts.training.recipe import Recipe
from scripts.training.recordings import WORDS
from scripts.training.sets import load_set, mel_statistics, write_set
from scripts.training.trainer import Trainer

ROOT = Path(__file__).resolve().parent.parent.parent

SET_STRINGS = 400
"""Strings of the dev set, and of the test set."""

STATISTICS_STRINGS = 400
"""Strings that mel statistics are taken from."""


def train(data: Path, out: Path, recipe: Recipe, processes: int) -> Path:
    """Train, or go on; the path of the hardware checkpoint.

    Raises:
        BadInput: recordings are missing, a number is out of range, or the folder cannot be made or holds a training by
            another recipe.
    """
    for name, value, least in (("--steps", recipe.steps, 1), ("--processes", processes, 0), ("--seed", recipe.seed, 0)):
        if value < least:
            raise gharial.BadInput("is out of range", name, value, f"{least} or more")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise gharial.BadInput("the folder cannot be made", f"--out {out}", error.strerror or error) from None
    # The vocabulary is the shipped model's: n-grams and keyword lists made for it still fit.
    sentencepiece = load_hardware(demo_model()).sentencepiece
    encode, text = encoder(sentencepiece), Vocabulary(sentencepiece, DEMO.vocabulary, "the shipped model").text
    say(f"making the dev and test sets and mel statistics in {out}")
    for which in ("dev", "test"):
        if not (out / "sets" / which / "manifest.json").is_file():
            write_set(out / "sets" / which, which, string_maker(data, which), recipe.longest, SET_STRINGS)
    melmeans, melvars = statistics(data, out, recipe)
    spec = FeatureSpec(melmeans=melmeans, melvars=melvars)
    checkpoints.write_config(out, DEMO, sentencepiece, melmeans, melvars)
    dev = load_set(out / "sets" / "dev", spec, encode)
    words = sum(len(said.split()) for batch in dev for said in batch.texts)

    torch.manual_seed(recipe.seed)
    network = Network(DEMO, recipe.dropout)
    network.start_at(class_shares([encode(word) for word in WORDS], DEMO.classes))
    trainer = Trainer(recipe, network)
    last = out / checkpoints.LAST
    if last.is_file():
        state = checkpoints.read_training(last)
        # A training may be given more or fewer steps than it began with: its rate then falls later or sooner.
        if {**state["recipe"], "steps": recipe.steps} != recipe.as_dict():
            raise gharial.BadInput(
                "the folder holds a training by another recipe", last, remedy="name another folder by --out"
            )
        trainer.resume(state)
        say(f"going on from step {trainer.progress.step}")

    def save() -> None:
        state = checkpoints.training_checkpoint(trainer.state(), melmeans, melvars, sentencepiece)
        # The best first: a training that is stopped in between is taken up before this look, and writes both again.
        checkpoints.write_torch(out / checkpoints.BEST, checkpoints.best_of(state, trainer.progress.best_errors, words))
        checkpoints.write_torch(last, state)

    made = batches(recipe.plan, data, spec, sentencepiece, trainer.progress.step, recipe.steps, processes)
    trainer.run(made, dev, text, say, save)
    best = checkpoints.read_training(out / checkpoints.BEST)
    say(f"best on dev: step {best['step']}, {best['best_wer']:.2f} %")
    target = out / "demo-small.hw.pt"
    export_checkpoint(out / checkpoints.BEST, out / checkpoints.CONFIG, target, skip_ngram=True)
    return target


def statistics(data: Path, out: Path, recipe: Recipe) -> tuple[np.ndarray, np.ndarray]:
    """Mel statistics of the training strings; those of an earlier call if there are any."""
    paths = [out / "melmeans.pt", out / "melvars.pt"]
    if all(path.is_file() for path in paths):
        means, variances = (torch.load(path, weights_only=True).numpy() for path in paths)
        return means, variances
    return mel_statistics(string_maker(data, "train"), recipe.mixture, recipe.longest, STATISTICS_STRINGS)


def say(line: str) -> None:
    print(line, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  nice .venv/bin/python scripts/train_demo.py --data $GHARIAL_DATA --out build/demo",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="holds speech_commands (default: $GHARIAL_DATA)")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="where everything goes")
    parser.add_argument("--steps", type=int, metavar="N", help="updates of the weights in all (default: the recipe's)")
    parser.add_argument("--seed", type=int, metavar="N", default=1, help="another training of the same recipe")
    parser.add_argument(
        "--processes", type=int, metavar="N", default=1, help="that make strings, beside the one that trains"
    )
    args = parser.parse_args(argv)
    data = args.data or Path(os.environ.get("GHARIAL_DATA") or ROOT.parent / "shared" / "data")
    recipe = Recipe(seed=args.seed)
    if args.steps is not None:
        recipe = replace(recipe, steps=args.steps)
    # Its arrays are small: more threads than one only wait for each other.
    torch.set_num_threads(1)
    try:
        say(f"written: {train(data, args.out, recipe, args.processes)}")
    except gharial.GharialError as error:
        print(f"train_demo: {error}", file=sys.stderr)
        return error.exit_code
    return 0
