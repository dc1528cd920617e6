# SPDX-License-Identifier: Apache-2.0
"""What a model takes by its sizes alone, against the programs that the compiler makes of it."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from compiled import program, random_dims
from random_checkpoint import SMALL

from gharial.bench.products import products
from gharial.bench.random_model import SHAPES
from gharial.checkpoint import ModelDims, load_hardware
from gharial.compiler.fit import fit
from gharial.errors import BadInput
from gharial.isa.configs import config, configs
from gharial.model import compile_model, demo_model
from gharial.program import Program
from gharial.program.pace import TOKENS_A_STEP, program_pace


def agrees(found: Program, dims: ModelDims) -> None:
    expected = fit(dims, found.config)
    assert expected.fits and expected.short == ()
    assert expected.bytes == {name: len(found.sections[name]) for name in expected.bytes}
    assert expected.header.items() <= found.header.items()
    assert expected.pace == program_pace(found)


@pytest.mark.parametrize("name", list(configs()))
def test_sizes_are_the_programs(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    compared = 0
    for number in range(4):
        dims = random_dims(random) if number else SMALL
        try:
            made = program(seed + number, name, dims)
        except BadInput as error:
            assert not fit(dims, config(name)).fits
            assert str(error.found) in "; ".join(fit(dims, config(name)).short)
            continue
        agrees(made, dims)
        compared += 1
    assert compared


def test_the_demo_model() -> None:
    dims = load_hardware(demo_model()).dims
    agrees(compile_model(demo_model()), dims)
    assert [found.name for found in configs().values() if fit(dims, found).fits] == list(configs())


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_are_trained(shape: str) -> None:
    fits = {name: fit(SHAPES[shape], found) for name, found in configs().items()}
    assert [name for name, found in fits.items() if found.fits] == ["kv260", "u50", "u55c"]
    assert "weights need at least" in fits["ecp5-85f"].short[0] and "classes" in fits["ecp5-85f"].short[1]


def test_base_on_u50_takes_the_clocks_that_were_measured() -> None:
    """docs/performance.md: 161,280 steps of the array for 16 encoder steps."""
    pace = fit(SHAPES["base"], config("u50")).pace
    assert pace is not None
    assert 16 * pace.steps["encode"] == 161_280
    assert pace.live_clocks == pace.steps["encode"] + (1 + TOKENS_A_STEP) * pace.steps["joint"] + (
        TOKENS_A_STEP * pace.steps["predict"]
    )
    most = pace.most_streams(0.06)
    assert most is not None and 1444 < most < 2000  # the figure that was simulated, and what cannot be


def test_steps_are_those_that_the_bench_counts() -> None:
    made = compile_model(demo_model())
    pace = program_pace(made)
    counted = products(made, [np.zeros((2, 240))] * 3, predictions=5, joints=7)
    assert sum(product.array_cycles for product in counted) == (
        3 * pace.steps["encode"] + 5 * pace.steps["predict"] + 7 * pace.steps["joint"]
    )


def test_memory_can_be_what_is_slow() -> None:
    narrow = fit(SHAPES["base"], config("kv260")).pace
    assert narrow is not None
    alone = replace(narrow, config=replace(narrow.config, batch=1))
    assert alone.clocks("encode") == narrow.bytes["encode"] / narrow.config.memory_rate > narrow.clocks("encode")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"hidden": 3000}, "there"),
        ({"stack": 5}, "stack-time factor"),
        ({"pre_layers": 60}, "there"),
        ({"classes": 17409}, "logits need 17409 classes, 17408 there"),
        ({"features": 70000}, ""),
        ({"pred_hidden": 4000}, "there"),
    ],
)
def test_what_does_not_fit_says_why(change: dict[str, int], part: str) -> None:
    found = fit(ModelDims(**asdict(SHAPES["base"]) | change), config("u50"))
    assert not found.fits
    assert any(part in clause for clause in found.short), found.short
