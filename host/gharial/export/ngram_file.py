# SPDX-License-Identifier: Apache-2.0
"""The n-gram that belongs to a model: where it is. Its file stays there and is given to whoever decodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gharial.errors import BadInput
from gharial.export.configuration import TrainingConfig
from gharial.export.sources import beside

BINARY, ARPA = "ngram.binary", "ngram.arpa"


def find_ngram(config: TrainingConfig, override: str | None) -> Path:
    """The file given, else the binary in the configuration's ngram_path; absolute. What is in it is not looked at.

    Raises:
        BadInput: there is none, or only the text form (ARPA).
    """
    return (Path(override) if override is not None else _in_folder(config)).absolute()


def named_files(config: TrainingConfig) -> Iterator[Path]:
    """The files that a configuration names, there or not: none of them is to be written over."""
    yield beside(config, config.sentencepiece_path)
    if config.stats_path is not None:
        yield from (beside(config, config.stats_path) / name for name in ("melmeans.pt", "melvars.pt"))
    if config.ngram_path is not None:
        yield from (beside(config, config.ngram_path) / name for name in (BINARY, ARPA))


def _in_folder(config: TrainingConfig) -> Path:
    where = f"{config.path}: ngram"
    skip = "give the file with --override-ngram-path FILE, or leave the n-gram out with --skip-ngram"
    if config.ngram_path is None:
        raise BadInput("ngram_path is missing", where, "no such key", f"the folder of {BINARY}", skip)
    folder = beside(config, config.ngram_path)
    if (folder / BINARY).exists():
        return folder / BINARY
    if (folder / ARPA).exists():
        build = "make a binary of it (gharial ngram build FILE.arpa --model M -o FILE), or leave it out: --skip-ngram"
        raise BadInput("only the text form of the n-gram is there", where, folder / ARPA, folder / BINARY, build)
    raise BadInput("there is no n-gram where ngram_path says", where, "no such file", folder / BINARY, skip)
