# SPDX-License-Identifier: Apache-2.0
"""Set two models side by side, word by word, in float and in int8 (python -m scripts.training.compare --help)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import jiwer
from tqdm import tqdm

import gharial
from gharial.bench.manifest import Utterance, read_set
from gharial.bench.models import DeviceModel
from gharial.bench.words import word_errors
from gharial.checkpoint import load_hardware
from gharial.compiler.calibrate import audio_features
from gharial.devices.open import DEFAULT, device_config
from gharial.floating.yardstick import TorchRnnt
from gharial.model import open_model
from gharial.recognise import Recogniser

Texts = list[str]


def texts(model: Path, utterances: Sequence[Utterance]) -> tuple[Texts, Texts]:
    """What a model hears by greedy decoding, in float and as a program on the emulator."""
    yardstick = TorchRnnt.from_checkpoint(load_hardware(model))
    floating, integer = [], []
    with Recogniser(open_model(str(model), device_config(DEFAULT)), DEFAULT) as recogniser:
        device, text = DeviceModel(recogniser), recogniser.vocabulary.text
        for utterance in tqdm(utterances, model.parent.name, unit="utt", disable=None):
            vectors = audio_features(utterance.path, recogniser.front_end)
            floating.append(text(yardstick.greedy(vectors).tokens))
            integer.append(text(device.greedy(vectors).tokens))
    return floating, integer


def heard(said: str, text: str) -> list[bool]:
    """Which words of what was said a transcript has, by the best alignment."""
    words = said.split()
    right = [False] * len(words)
    if words and text:
        for chunk in jiwer.process_words(said, text).alignments[0]:
            if chunk.type == "equal":
                right[chunk.ref_start_idx : chunk.ref_end_idx] = [True] * (chunk.ref_end_idx - chunk.ref_start_idx)
    return right


def row(kind: str, utterances: Sequence[Utterance], one: Texts, other: Texts) -> tuple[str, ...]:
    """A line of the comparison: errors of both, words that only one of them hears, texts that only one gets right."""
    said = [utterance.transcript for utterance in utterances]
    errors = [sum(map(word_errors, said, found)) for found in (one, other)]
    pairs = [
        pair
        for text, a, b in zip(said, one, other, strict=True)
        for pair in zip(heard(text, a), heard(text, b), strict=True)
    ]
    only = [pairs.count((True, False)), pairs.count((False, True))]
    whole = [sum(map(str.__eq__, said, found)) for found in (one, other)]
    return (kind, f"{len(pairs)}", *map(str, errors), *map(str, only), *map(str, whole))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs=2, type=Path, metavar="MODEL.hw.pt", help="the one, and the other")
    parser.add_argument(
        "--set", action="append", required=True, type=Path, metavar="DIR", help="a set; may be repeated"
    )
    args = parser.parse_args(argv)
    head = ("set", "words", "errors 1", "errors 2", "only 1 hears", "only 2 hears", "texts right 1", "texts right 2")
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for folder in args.set:
        utterances = read_set(folder)
        both = [texts(model, utterances) for model in args.models]
        for kind, one, other in zip(("float", "int8"), *both, strict=True):
            print("| " + " | ".join(row(f"{folder.name}, {kind}", utterances, one, other)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"compare: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
