# SPDX-License-Identifier: Apache-2.0
"""Function tables: errors over every input against the bounds of docs/numerics.md, section 4, and who made them."""

import numpy as np
import pytest
from reference_quantiser import Float, Int, sigmoid, tables
from sim.reference import numerics
from sim.reference.layout import Tables

from gharial.compiler.tables import default_tables

SIGMOID_BOUND = 0.75  # units of Q0.15
TANH_BOUND = 1.1

PRE_ACTIVATIONS = np.arange(-(1 << 15), 1 << 15)
ARGUMENTS = np.arange(-numerics.U_LIMIT, numerics.U_LIMIT + 1)


@pytest.fixture(scope="module")
def shipped() -> Tables:
    return Tables(**default_tables())


def float_function(name: str, x: Float) -> Float:
    return 2.0**15 * (sigmoid(x) if name == "sigmoid" else np.tanh(x))


def integer_function(name: str, shipped: Tables, u: Int) -> Int:
    return getattr(numerics, name)(getattr(shipped, name), u)


def test_the_compiler_makes_the_tables_that_the_page_describes(shipped: Tables) -> None:
    own = tables()
    for name in ("sigmoid", "tanh", "exp", "log"):
        np.testing.assert_array_equal(getattr(shipped, name), getattr(own, name), err_msg=name)


@pytest.mark.parametrize(("name", "bound"), [("sigmoid", SIGMOID_BOUND), ("tanh", TANH_BOUND)])
def test_error_over_every_pre_activation(shipped: Tables, name: str, bound: float) -> None:
    error = integer_function(name, shipped, 8 * PRE_ACTIVATIONS) - float_function(name, PRE_ACTIVATIONS / 4096)
    assert np.abs(error).max() <= bound
    assert np.abs(error).max() > bound / 2  # else the bound says nothing


@pytest.mark.parametrize(("name", "bound"), [("sigmoid", SIGMOID_BOUND), ("tanh", TANH_BOUND)])
def test_error_over_every_argument(shipped: Tables, name: str, bound: float) -> None:
    error = integer_function(name, shipped, ARGUMENTS) - float_function(name, ARGUMENTS / 2.0**15)
    assert np.abs(error).max() <= bound


@pytest.mark.parametrize("qc", range(8, 16))
def test_error_over_every_cell_state(shipped: Tables, qc: int) -> None:
    c = np.arange(-(1 << 15), 1 << 15)
    u = numerics.clamp(c << (15 - qc), -numerics.U_LIMIT, numerics.U_LIMIT)
    error = numerics.tanh(shipped.tanh, u) - float_function("tanh", c / 2.0**qc)
    assert np.abs(error).max() <= TANH_BOUND


def test_ranges_symmetry_and_exact_points(shipped: Tables) -> None:
    s = integer_function("sigmoid", shipped, ARGUMENTS)
    t = integer_function("tanh", shipped, ARGUMENTS)
    assert (s.min(), s.max()) == (11, 32757)
    assert (t.min(), t.max()) == (-32767, 32767)
    assert (s + s[::-1] == 32768).all()
    np.testing.assert_array_equal(t, -t[::-1])
    zero = np.flatnonzero(ARGUMENTS == 0)[0]
    assert (s[zero], t[zero]) == (16384, 0)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_monotonic(shipped: Tables, name: str) -> None:
    assert np.diff(integer_function(name, shipped, ARGUMENTS)).min() >= 0


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_beyond_eight_the_value_at_eight(shipped: Tables, name: str) -> None:
    u = np.array([1 << 18, 1 << 20, -(1 << 18), -(1 << 20)])
    edge = integer_function(name, shipped, np.array([numerics.U_LIMIT, -numerics.U_LIMIT]))
    np.testing.assert_array_equal(integer_function(name, shipped, u), edge[[0, 0, 1, 1]])


def test_entries_have_the_width_that_the_page_gives_them(shipped: Tables) -> None:
    for name in ("sigmoid", "tanh", "exp", "log"):
        base, slope = getattr(shipped, name).T
        assert base.min() >= 0
        assert base.max() < 1 << 18
        assert slope.min() >= -(1 << 17)
        assert slope.max() < 1 << 17
