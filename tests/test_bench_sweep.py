# SPDX-License-Identifier: Apache-2.0
"""Sweeps of the n-gram's scale: which scales are tried, which one is recommended, how sure that is; the picture."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scripts.bench_decoding import rows

from gharial.bench import sweep_plot
from gharial.bench.sweep import GRID, Swept, check_grid, runs_planned, summary, sweep
from gharial.errors import BadInput


class Decoder:
    """Utterances of some words, of which a scale gets some wrong: |scale - best| / 0.05 in each, rounded down."""

    def __init__(self, best: float, utterances: int = 20, words: int = 10) -> None:
        self.best = best
        self.words = ["yes"] * words
        self.transcripts = [" ".join(self.words)] * utterances
        self.asked: list[float | None] = []

    def __call__(self, scale: float | None) -> Sequence[str]:
        self.asked.append(scale)
        most = len(self.words) - 1
        wrong = most if scale is None else min(most, math.floor(abs(scale - self.best) / 0.05 + 1e-6))
        return [" ".join(["no"] * wrong + self.words[wrong:])] * len(self.transcripts)


def test_grid_and_refinement() -> None:
    decoder = Decoder(0.2)
    swept = sweep(decoder.transcripts, decoder)
    # 0.2 is the middle of the plateau around it, and stays so.
    assert decoder.asked == [*GRID, 0.175, 0.225, 0.1875, 0.2125, None]
    assert len(decoder.asked) == runs_planned(GRID, 2)
    assert swept.scales == tuple(sorted(decoder.asked[:-1]))  # type: ignore[type-var]
    assert swept.errors.shape == (20, len(swept.scales) + 1) and swept.words.tolist() == [10] * 20
    assert swept.errors[:, -1].tolist() == [9] * 20  # greedy
    at = swept.scales.index(0.3)
    assert swept.errors[:, at].tolist() == [2] * 20


def test_the_grid_goes_on_while_its_end_is_the_best() -> None:
    decoder = Decoder(0.45)
    swept = sweep(decoder.transcripts, decoder)
    assert decoder.asked[:10] == [*GRID, 0.35, 0.4, 0.45] and swept.scales[-1] == 0.5
    assert summary(swept)["best"]["scale"] == pytest.approx(0.45, abs=0.02)
    far = Decoder(1.4, words=40)
    assert sweep(far.transcripts, far).scales[-1] == 1.0


@pytest.mark.parametrize(("grid", "tried"), [((0.3, 0.1, 0.1), (0.1, 0.3)), ((0.2,), (0.2,)), ((0.0, 0.6), (0.0, 0.6))])
def test_without_refinement_the_grid_alone(grid: tuple[float, ...], tried: tuple[float, ...]) -> None:
    decoder = Decoder(5.0)
    assert sweep(decoder.transcripts, decoder, grid, 0).scales == tried
    assert len(decoder.asked) == runs_planned(tried, 0)


def test_one_scale_is_not_refined() -> None:
    decoder = Decoder(0.2)
    assert sweep(decoder.transcripts, decoder, (0.1,), 2).scales == (0.1,)
    assert len(decoder.asked) == runs_planned((0.1,), 2)


def test_summary_of_a_clear_case() -> None:
    """Every utterance says the same, so nothing is left to chance."""
    decoder = Decoder(0.15, utterances=5)
    found = summary(sweep(decoder.transcripts, decoder, (0, 0.05, 0.15, 0.25), 0), 500, 3)
    assert json.loads(json.dumps(found)) == found
    best = found["best"]
    assert (best["scale"], best["scale_ci"], best["errors"], best["wer"]) == (0.15, [0.15, 0.15], 0, 0.0)
    assert found["points"][2] == {name: value for name, value in best.items() if name != "scale_ci"}
    assert found["alike"] == [0.15, 0.15]
    assert [(point["scale"], point["errors"], point["wer"]) for point in found["points"]] == [
        (0.0, 15, 0.3),
        (0.05, 10, 0.2),
        (0.15, 0, 0.0),
        (0.25, 10, 0.2),
    ]
    assert (found["greedy"]["errors"], found["words"], found["utterances"]) == (45, 50, 5)
    for other, rate in (("against_none", -0.3), ("against_greedy", -0.9)):
        assert best[other]["rate"] == pytest.approx(rate) and not best[other]["by_chance"]
        assert best[other]["better"] == 1.0
    assert found["bootstrap"] == {"resamples": 500, "seed": 3, "level": 0.95}


def test_summary_within_chance(seed: int) -> None:
    """One utterance of forty decides for 0.1, and 0.3 is far off; every fourth drawn set has not that utterance."""
    errors = np.ones((40, 5), np.int64)  # scales 0, 0.1, 0.2, 0.3, and greedy
    errors[7, 1] = 0
    errors[:, 3] = 2
    found = summary(Swept((0.0, 0.1, 0.2, 0.3), errors, np.full(40, 4)), seed=seed)
    assert found["best"]["scale"] == 0.1 and found["alike"] == [0.0, 0.2]
    assert found["best"]["against_none"]["by_chance"] and found["best"]["against_greedy"]["by_chance"]
    assert 0.5 < found["best"]["against_none"]["better"] < 0.75
    # Of the drawn sets without that utterance 0, 0.1 and 0.2 are equally good.
    assert found["best"]["scale_ci"] == [0.0, 0.2]


def test_scales_that_trade_places(seed: int) -> None:
    """Half of the utterances are better at one scale, half at another: drawn sets choose either."""
    errors = np.ones((30, 3), np.int64)
    errors[:15, 0] = errors[15:, 1] = 0
    found = summary(Swept((0.1, 0.2), errors, np.full(30, 2)), seed=seed)
    assert found["best"]["scale_ci"] == [0.1, 0.2] and found["alike"] == [0.1, 0.2]
    assert found["best"]["scale"] == 0.1  # of two equal ones the lower
    assert found["best"]["against_none"] is None


def test_a_row_for_each_decoder() -> None:
    """The table of docs/accuracy.md."""
    decoder = Decoder(0.4)
    found = summary(sweep(decoder.transcripts, decoder, (0.0, 0.4), 0), 200)
    alone, weighed = found["points"]
    case = {"model": "m", "set": "s", "list": "commands", "scale": 0.4, "words": found["words"]}
    head, *table = rows([case | {"greedy": found["greedy"], "beam": alone, "ngram": weighed}])
    assert {len(row) for row in table} == {len(head)}
    assert [row[:3] for row in table] == [("m", "s", "200")] * 3
    assert [row[3:] for row in table] == [
        ("greedy", "180", "90.00 % (90.0 to 90.0)", "", ""),
        ("beam 4", "160", "80.00 % (80.0 to 80.0)", "-10.00 (-10.00 to -10.00)", ""),
        ("beam 4, commands 0.4", "0", "0.00 % (0.0 to 0.0)", "-90.00 (-90.00 to -90.00)", "-80.00 (-80.00 to -80.00)"),
    ]


@pytest.mark.parametrize("scales", [[], [-0.1], [math.nan], [0.1, math.inf], [0.1] * 2000])
def test_scales_that_are_refused(scales: list[float]) -> None:
    with pytest.raises(BadInput, match="scale"):
        check_grid(scales)


def test_a_set_without_words_is_refused() -> None:
    with pytest.raises(BadInput, match="nothing is said"):
        sweep(["", " "], lambda _: ["", ""])


@pytest.mark.parametrize("suffix", sweep_plot.SUFFIXES)
def test_picture(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    decoder = Decoder(0.1)
    found = summary(sweep(decoder.transcripts, decoder), 200)
    paths = [tmp_path / f"{number}{suffix}" for number in range(2)]
    for path in paths:
        sweep_plot.check(path)
        sweep_plot.write(path, found, "a set")
    one, other = (path.read_bytes() for path in paths)
    assert one == other and len(one) > 5000
    assert one.startswith({".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix])
    assert sorted(tmp_path.iterdir()) == paths
    if suffix == ".svg":
        text = one.decode()
        for words in ("a set", "scale of the n-gram", "word error rate", "greedy", "best: 0.1"):
            assert f">{words}<" in text, words


def test_pictures_that_are_refused(tmp_path: Path) -> None:
    for name in ("sweep.gif", "sweep", "svg"):
        with pytest.raises(BadInput, match="no such kind of picture"):
            sweep_plot.check(tmp_path / name)
