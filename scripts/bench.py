#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what int8 and int4 weights cost in accuracy: every model at hand on every set it knows the words of.

The shipped demo model and recordings are always there; larger sets and models are looked for in the folder that
GHARIAL_DATA names, else in shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import gharial
from gharial.bench.models import measure_wer
from gharial.model import demo_model

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "host" / "gharial" / "data" / "recordings"

# Model and the set, below the data folder.
LARGER = (
    ("demo-medium", "sc_speakers"),
    ("demo-medium", "fsdd_takes"),
)
WEIGHTS = ("int8", "int4")


def data_folder() -> Path | None:
    """Folder of the larger models and sets, None if there is none."""
    folder = Path(os.environ.get("GHARIAL_DATA") or ROOT.parent / "shared" / "data")
    return folder if folder.is_dir() else None


def pairs() -> list[tuple[Path, Path]]:
    """Every model and set that is there."""
    found = [(demo_model(), RECORDINGS)]
    data = data_folder()
    if data is not None:
        found.append((demo_model(), data / "sets" / "sc_speakers"))
        found += [(data / "models" / f"{model}.hw.pt", data / "sets" / name) for model, name in LARGER]
    return [(model, folder) for model, folder in found if model.is_file() and folder.is_dir()]


def rows(results: list[dict[str, Any]], weights: str) -> list[tuple[str, ...]]:
    """The results as a table with a head."""
    table: list[tuple[str, ...]] = [
        (
            "model",
            "set",
            "words",
            "errors float",
            f"errors {weights}",
            "rate float",
            f"rate {weights}",
            "texts changed",
            "agreement",
        )
    ]
    table += [
        (
            found["model"],
            found["set"],
            f"{found['words']}",
            f"{found['errors_float']}",
            f"{found['errors_int']}",
            f"{100 * found['wer_float']:.2f} %",
            f"{100 * found['wer_int']:.2f} %",
            f"{found['changed_utterances']} of {found['utterances']}",
            f"{100 * found['token_agreement']:.2f} % of {found['evaluations']}",
        )
        for found in results
    ]
    return table


def markdown(table: list[tuple[str, ...]]) -> str:
    """The table as Markdown, its columns lined up."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = [
        "| " + " | ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) + " |" for row in table
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the results, texts that changed included")
    parser.add_argument("--limit", metavar="N", type=int, help="only the first N utterances of each set")
    args = parser.parse_args()
    if data_folder() is None:
        print("bench: without the larger sets and models: set GHARIAL_DATA to their folder", file=sys.stderr)
    results = []
    for weights in WEIGHTS:
        found = [measure_wer(folder, model, limit=args.limit, weights=weights) for model, folder in pairs()]
        print(markdown(rows(found, weights)), flush=True)
        results += [{**each, "weights": weights} for each in found]
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
