# SPDX-License-Identifier: Apache-2.0
"""The reference model's operations against exact fractions, at random and where they saturate."""

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import reference_oracle as oracle
import sim.reference
from hypothesis import given
from hypothesis import strategies as st
from reference_quantiser import tables
from sim.reference import numerics

TABLES = tables()
M = st.one_of(st.integers(1 << 16, (1 << 17) - 1), st.integers(0, (1 << 17) - 1))
K = st.integers(-8, 23)


@given(v=st.integers(-(1 << 45), 1 << 45), n=st.integers(-8, 31))
def test_rsr_is_division_rounded_half_up(v: int, n: int) -> None:
    assert int(numerics.rsr(v, n)) == oracle.rsr(v, n)


@pytest.mark.parametrize(
    ("v", "n", "result"), [(3, 1, 2), (-3, 1, -1), (1, 1, 1), (-1, 1, 0), (-5, 1, -2), (7, 0, 7), (-7, -2, -28)]
)
def test_rsr_halves_go_up(v: int, n: int, result: int) -> None:
    assert int(numerics.rsr(v, n)) == result


def test_rsr_takes_a_shift_for_each_element() -> None:
    np.testing.assert_array_equal(numerics.rsr([100, 100, 100, -3], [0, 3, -2, 1]), [100, 13, 400, -1])


def test_saturation() -> None:
    big = [-(1 << 40), 1 << 40]
    assert numerics.sat8(big).tolist() == [-127, 127]
    assert numerics.sat16(big).tolist() == [-32768, 32767]
    assert numerics.sat18(big).tolist() == [-131072, 131071]
    inside = [-127, -1, 0, 127]
    for function in (numerics.sat8, numerics.sat16, numerics.sat18):
        assert function(inside).tolist() == inside


@given(data=st.data(), m=M, k=K, start=st.integers(-(1 << 30), 1 << 30))
def test_part_is_the_page(data: st.DataObject, m: int, k: int, start: int) -> None:
    n = data.draw(st.integers(1, 20))
    values = st.lists(st.one_of(st.integers(-127, 127), st.sampled_from([-127, 127])), min_size=n, max_size=n)
    W, x = data.draw(values), data.draw(values)
    S = numerics.part([start], [W], x, [m], [k])
    assert S.tolist() == [start + oracle.term(W, x, m, k)]


@given(data=st.data(), m=st.integers(1 << 16, (1 << 17) - 1), k=st.integers(0, 15))
def test_part_is_close_to_the_real_product(data: st.DataObject, m: int, k: int) -> None:
    """Half a step of a, at most half an output step; t's rounding; y's rounding."""
    values = st.lists(st.integers(-127, 127), min_size=16, max_size=16)
    W, x = data.draw(values), data.draw(values)
    exact = Fraction(sum(w * v for w, v in zip(W, x, strict=True)) * m, 1 << (k + 17))
    if abs(exact) < 32767:
        y = numerics.output(numerics.part([0], [W], x, [m], [k]))
        assert abs(int(y[0]) - exact) <= Fraction(1, 2) + Fraction(1, 2) + Fraction(1, 2048)


@pytest.mark.parametrize("k", range(-8, 24))
@pytest.mark.parametrize("sign", [-1, 1])
def test_each_shift_at_the_ends(k: int, sign: int) -> None:
    """The most columns, all of them at the ends: acc is largest, and sat18 takes hold below k = 13."""
    columns = 65536
    W, x = np.full((1, columns), 127), np.full(columns, 127 * sign)
    m = (1 << 17) - 1
    acc = 127 * 127 * columns * sign
    a = oracle.sat(oracle.rsr(acc, k), 18)
    assert (abs(a) >= 131071) == (k <= 12)
    S = numerics.part([0], W, x, [m], [k])
    assert S.tolist() == [oracle.rsr(a * m, 7)]
    assert numerics.output(S).tolist() == [oracle.sat(oracle.rsr(int(S[0]), 10), 16)]


def test_one_saturated_part_reaches_twice_the_output() -> None:
    for m in (1 << 16, (1 << 17) - 1):
        S = numerics.part([0], [[127] * 100], [127] * 100, [m], [-8])
        assert (1 << 16) - 1 <= int(numerics.rsr(S, 10)[0]) <= 1 << 17
        assert numerics.output(S).tolist() == [32767]


def test_seven_saturated_parts_and_the_largest_bias_fit() -> None:
    for sign in (-1, 1):
        S = np.array([sign * (1 << 30)])
        for _ in range(7):
            S = numerics.part(S, [[127] * 100], [127 * sign] * 100, [(1 << 17) - 1], [-8])
        assert abs(int(S[0])) > 2_000_000_000
        assert numerics.output(S).tolist() == [32767 if sign > 0 else -32768]


def test_a_width_that_does_not_hold_is_an_error() -> None:
    with pytest.raises(OverflowError, match="S does not fit"):
        numerics.part([(1 << 31) - 1], [[127]], [127], [1 << 16], [0])
    with pytest.raises(OverflowError, match="acc does not fit"):
        numerics.part([0], np.full((1, 1 << 18), 127), np.full(1 << 18, 127), [1], [0])


def test_parts_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [
        (
            rng.integers(-127, 128, (12, 30)),
            rng.integers(-127, 128, 30),
            rng.integers(1 << 16, 1 << 17, 12),
            rng.integers(-8, 24, 12),
        )
        for _ in range(7)
    ]
    bias = rng.integers(-(1 << 30), 1 << 30, 12)
    results = []
    for _ in range(10):
        S = bias
        for index in rng.permutation(7):
            S = numerics.part(S, *parts[index])
        results.append(S)
    for S in results[1:]:
        np.testing.assert_array_equal(S, results[0])


def test_columns_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W, x = rng.integers(-127, 128, (4, 64)), rng.integers(-127, 128, 64)
    order = rng.permutation(64)
    one, other = (numerics.part([0] * 4, *pair, [70000] * 4, [3] * 4) for pair in ((W, x), (W[:, order], x[order])))
    np.testing.assert_array_equal(one, other)


def test_zero_weights_leave_the_bias() -> None:
    bias = np.array([-(1 << 30), -513, -512, 0, 511, 512, 1 << 30])
    S = numerics.part(bias, np.zeros((7, 5)).astype(int), [127] * 5, [0] * 7, [0] * 7)
    np.testing.assert_array_equal(S, bias)
    assert numerics.output(S).tolist() == [-32768, -1, 0, 0, 0, 1, 32767]


@given(y=st.integers(-32768, 32767), s=st.integers(0, 8), lo=st.sampled_from([0, -127]), hi=st.integers(1, 127))
def test_i8(y: int, s: int, lo: int, hi: int) -> None:
    assert int(numerics.i8(y, s, lo, hi)) == oracle.limited(oracle.rsr(y, s), lo, hi)


@given(u=st.integers(-(1 << 19), 1 << 19))
def test_functions(u: int) -> None:
    assert int(numerics.sigmoid(TABLES.sigmoid, u)) == oracle.function(TABLES.sigmoid, u, 32768)
    assert int(numerics.tanh(TABLES.tanh, u)) == oracle.function(TABLES.tanh, u, 0)


@pytest.mark.parametrize("C", [32768, 0])
def test_any_table(C: int, seed: int) -> None:
    """A table is the program's to choose: entries over their whole width, and arguments at every seam."""
    rng = np.random.default_rng(seed)
    table = np.stack([rng.integers(0, 1 << 18, 512), rng.integers(-(1 << 17), 1 << 17, 512)], axis=1)
    table[-1] = 60000, 50000  # not clipped: the last argument but one has another value
    u = [sign * (at + step) for at in range(0, 1 << 18, 512) for step in (-1, 0, 1) for sign in (-1, 1)]
    u += [(1 << 18) - 1, 1 - (1 << 18), 1 << 18, -(1 << 18), 0, *rng.integers(-(1 << 18), 1 << 18, 500)]
    assert numerics.function(table, u, C).tolist() == [oracle.function(table, int(v), C) for v in u]


@given(a=st.integers(-32768, 32767), b=st.integers(-32768, 32767), zs=st.integers(0, 8))
def test_joint(a: int, b: int, zs: int) -> None:
    assert int(numerics.joint(a, b, zs)) == oracle.joint(a, b, zs)


def test_joint_sum_does_not_wrap() -> None:
    np.testing.assert_array_equal(numerics.joint([32767, -32768], [32767, -32768], 8), [127, 0])
    np.testing.assert_array_equal(numerics.joint([32767, 32767], [32767, -32768], 0), [127, 0])


def test_floats_are_refused() -> None:
    with pytest.raises(TypeError, match="integers only"):
        numerics.rsr(1.5, 1)
    with pytest.raises(TypeError, match="integers only"):
        numerics.part([0], [[1.0]], [1], [1], [1])


def test_no_float_and_no_foreign_arithmetic_in_the_source() -> None:
    """No float constant, no true division, no float type; and nothing of the emulator or the compiler."""
    folder = Path(sim.reference.__file__).parent
    files = sorted(folder.glob("*.py"))
    assert len(files) > 5
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path.name}:{getattr(node, 'lineno', '?')}"
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float | complex)), where
            assert not (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div)), where
            named = getattr(node, "id", getattr(node, "attr", ""))
            assert "float" not in named or (named == "float" and path.name == "device.py"), where  # a timeout
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not node.module.startswith(("gharial.compiler", "gharial.devices.emulator")), where
