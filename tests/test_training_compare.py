# SPDX-License-Identifier: Apache-2.0
"""Two models side by side: which of the words that were said each of them hears."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from recordings import FOLDER, SHORT
from scripts.training.compare import heard, main, row

from gharial.bench.manifest import Utterance
from gharial.model import demo_model


@pytest.mark.parametrize(
    ("said", "text", "right"),
    [
        ("yes no up", "yes no up", [True, True, True]),
        ("yes no up", "yes go up", [True, False, True]),
        ("yes no up", "no up", [False, True, True]),
        ("yes no", "yes yes no off", [True, True]),
        ("yes no", "", [False, False]),
        ("", "yes", []),
    ],
)
def test_words_that_were_heard(said, text, right):
    assert heard(said, text) == right


def test_a_line_counts_errors_and_words_that_only_one_hears():
    utterances = [Utterance("a", Path("a"), "yes no", 1.0), Utterance("b", Path("b"), "up", 1.0)]
    found = row("set", utterances, ["yes no", "off up"], ["yes", "up"])
    assert found == ("set", "3", "1", "1", "1", "0", "1", "1")


def test_a_model_beside_itself_hears_nothing_alone(tmp_path, capsys):
    entries = json.loads((FOLDER / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(entries[:1]))
    shutil.copy(SHORT, tmp_path)
    model = str(demo_model())
    assert main([model, model, "--set", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    for line, kind in zip(lines[2:], ("float", "int8"), strict=True):
        cells = line.strip("| ").split(" | ")
        assert cells[0] == f"{tmp_path.name}, {kind}" and cells[2] == cells[3] and cells[4:6] == ["0", "0"]
