#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Word errors of greedy decoding, beam search, and beam search with an n-gram, on every set at hand.

`python -m scripts.bench_decoding` prints the table of docs/accuracy.md and writes docs/measured/decoding-accuracy.json.
The n-grams are made of lists of words (scripts/word_ngram.py): that of the ten commands ships, the others need KenLM's
programs (gharial ngram build --build-tools) and are left out without them. Scales are those of SCALES; `--sweep` finds
them again, on strings of speakers that the shipped model was not trained on and that are in no set measured, and draws
rate over scale.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gharial
from gharial.bench import sweep_plot
from gharial.bench.sweep_set import sweep_set
from gharial.decoding import DecoderOptions
from gharial.model import demo_model
from gharial.ngram import tools
from scripts.bench import data_folder, markdown
from scripts.bench_batches import MEASURED, commit
from scripts.training.batches import string_maker
from scripts.training.recipe import Recipe
from scripts.training.run import SET_STRINGS
from scripts.training.sets import write_set
from scripts.word_ngram import SHIPPED, make, word_list

WIDTH = 4
GRID = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Scales that `--sweep` tries."""


@dataclass(frozen=True)
class Case:
    """A model, a set, and the list of words that the n-gram is made of.

    Attributes:
        model: name of the model.
        file: its checkpoint below the data folder, None for the shipped one.
        set: name of the set.
        words: name of the list, one of `scripts.word_ngram.LISTS`.
    """

    model: str
    file: str | None
    set: str
    words: str

    @property
    def stem(self) -> str:
        """The model's name as part of a file's."""
        return self.model.replace(" ", "-")

    def checkpoint(self, data: Path) -> Path:
        """Its file."""
        return demo_model() if self.file is None else data / "models" / self.file


CASES = (
    Case("demo-small", None, "sc_speakers", "commands"),
    Case("first demo model", "demo-small.hw.pt", "sc_speakers", "commands"),
    Case("demo-medium", "demo-medium.hw.pt", "sc_speakers", "commands"),
    Case("demo-medium", "demo-medium.hw.pt", "sc_speakers", "tasks"),
    Case("demo-medium", "demo-medium.hw.pt", "fsdd_takes", "digits"),
)

SCALES = {"demo-small": 0.05, "first demo model": 0.05, "demo-medium": 0.5}
"""By model: what `--sweep` recommends on the strings of dev; the usual scale where those do not tell it from none."""


def write_dev(folder: Path, data: Path) -> Path:
    """The dev set of the demo model's training: strings of ten words by speakers of their own."""
    write_set(folder / "dev", "dev", string_maker(data, "dev"), Recipe().longest, SET_STRINGS)
    return folder / "dev"


def ngram_of_list(words: str, folder: Path) -> Path | None:
    """The n-gram of a list, made in a folder if it does not ship; None where KenLM's programs are not there."""
    path = SHIPPED if words == "commands" else folder / f"{words}.ngram"
    if not path.is_file():
        try:
            for tool in tools.TOOLS:
                tools.find(tool)
        except gharial.BadInput as error:
            print(f"bench_decoding: without the list {words}: {error.what}", file=sys.stderr)
            return None
        make(word_list(words), demo_model(), path, note=lambda _: None)
    return path


def measured(case: Case, data: Path, ngram: Path, limit: int | None) -> dict[str, Any]:
    """Word errors of a case: greedy, beam alone, beam with the n-gram, with intervals."""
    scale = SCALES[case.model]
    found = sweep_set(
        data / "sets" / case.set,
        case.checkpoint(data),
        ngram=ngram,
        options=DecoderOptions(WIDTH),
        grid=(0.0, scale),
        refinements=0,
        limit=limit,
    )
    alone, with_ngram = found["points"]
    return {
        "model": case.model,
        "set": case.set,
        "list": case.words,
        "scale": scale,
        "words": found["words"],
        "utterances": found["utterances"],
        "config": found["config"],
        "greedy": found["greedy"],
        "beam": alone,
        "ngram": with_ngram,
    }


def rows(results: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The results as a table with a head, a row a decoder; rates in per cent, differences in points."""
    table: list[tuple[str, ...]] = [
        ("model", "set", "words", "decoder", "errors", "rate (95 %)", "against greedy (95 %)", "against beam 4 (95 %)")
    ]
    for found in results:
        what = found["model"], found["set"], f"{found['words']}"
        greedy, beam, ngram = (found[name] for name in ("greedy", "beam", "ngram"))
        name = f"beam {WIDTH}"
        weighed = _rate(ngram), _apart(ngram["against_greedy"]), _apart(ngram["against_none"])
        table += [
            (*what, "greedy", f"{greedy['errors']}", _rate(greedy), "", ""),
            (*what, name, f"{beam['errors']}", _rate(beam), _apart(beam["against_greedy"]), ""),
            (*what, f"{name}, {found['list']} {found['scale']:g}", f"{ngram['errors']}", *weighed),
        ]
    return table


def _rate(found: dict[str, Any]) -> str:
    low, high = found["ci"]
    return f"{100 * found['wer']:.2f} % ({100 * low:.1f} to {100 * high:.1f})"


def _apart(found: dict[str, Any]) -> str:
    low, high = found["ci"]
    return f"{100 * found['rate']:+.2f} ({100 * low:+.2f} to {100 * high:+.2f})"


def _told(found: dict[str, Any]) -> str:
    """A sweep in a line."""
    best, greedy = found["best"], found["greedy"]
    low, high = best["scale_ci"]
    return (
        f"greedy {greedy['errors']} of {found['words']}, best scale {best['scale']:g} (95 %: {low:g} to {high:g}) with "
        f"{best['errors']}, against no n-gram {_apart(best['against_none'])}; alike {found['alike']}"
    )


def swept(model: str, checkpoint: Path, data: Path, folder: Path, limit: int | None) -> dict[str, Any]:
    """The sweep that a model's scale comes from."""
    dev = folder / "dev"
    if not dev.is_dir():
        write_dev(folder, data)
    found = sweep_set(
        dev,
        checkpoint,
        ngram=SHIPPED,
        options=DecoderOptions(WIDTH),
        grid=GRID,
        refinements=0,
        limit=limit,
    )
    return {"model": model} | {key: value for key, value in found.items() if key != "ngram"}


def sweep(models: Sequence[str], data: Path, folder: Path, limit: int | None) -> None:
    """Find the scales of models; write and draw each sweep when it is through."""
    for model, case in {case.model: case for case in CASES if case.model in models}.items():
        found = swept(model, case.checkpoint(data), data, folder, limit)
        print(f"{model}: {_told(found)}", flush=True)
        if limit is None:
            name = f"decoding-sweep-{case.stem}"
            _write(name, found)
            title = f"{model}, strings of dev, beam {WIDTH}, 3-gram of ten words"
            sweep_plot.write(MEASURED / f"{name}.svg", found, title)


def rates(models: Sequence[str], data: Path, folder: Path, limit: int | None) -> None:
    """Measure models on the sets."""
    found = [(case, ngram_of_list(case.words, folder)) for case in CASES if case.model in models]
    results = [measured(case, data, ngram, limit) for case, ngram in found if ngram is not None]
    print(markdown(rows(results)))
    if limit is None and len(results) == len(CASES):
        _write("decoding-rates", {"rates": results})


def _write(name: str, found: dict[str, Any]) -> None:
    MEASURED.mkdir(exist_ok=True)
    text = json.dumps({"commit": commit()} | found, indent=1) + "\n"
    (MEASURED / f"{name}.json").write_text(text, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0 measured, or nothing there to measure; 1 failed, 2 bad input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(SCALES))
    parser.add_argument("--sweep", action="store_true", help="find the scales, in place of measuring with them")
    parser.add_argument("--limit", metavar="N", type=int, help="only the first N utterances; writes no file")
    args = parser.parse_args(argv)
    models = args.models or list(SCALES)
    for model in models:
        if model not in SCALES:
            raise gharial.BadInput("no such model", "MODEL", model, ", ".join(SCALES))
    data = data_folder()
    if data is None or not (data / "sets").is_dir():
        print("bench_decoding: no sets: set GHARIAL_DATA to the folder that has them", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (sweep if args.sweep else rates)(models, data, folder, args.limit)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"bench_decoding: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
