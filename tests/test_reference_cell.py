# SPDX-License-Identifier: Apache-2.0
"""The LSTM cell over all its scales: against exact fractions, and against float."""

import numpy as np
import pytest
import reference_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from reference_quantiser import sigmoid, tables
from sim.reference import numerics

TABLES = tables()
QC = range(8, 16)
QH = range(5, 15)
INT16 = st.one_of(st.integers(-32768, 32767), st.sampled_from([-32768, -1, 0, 1, 32767]))


@given(y=st.tuples(INT16, INT16, INT16, INT16), c=INT16, qc=st.sampled_from(QC), qh=st.sampled_from(QH))
def test_cell_is_the_page(y: tuple[int, int, int, int], c: int, qc: int, qh: int) -> None:
    c_new, h_new = numerics.cell(TABLES.sigmoid, TABLES.tanh, [y], [c], qc, qh)
    assert (int(c_new[0]), int(h_new[0])) == oracle.cell(TABLES.sigmoid, TABLES.tanh, y, c, qc, qh)


@pytest.mark.parametrize("qc", QC)
@pytest.mark.parametrize("qh", QH)
def test_cell_against_float(qc: int, qh: int, seed: int) -> None:
    """One step from the same y and c, everything in double precision.

    c', in its own unit: half for its rounding; f's error (0.75 of 2^-15) times c; the errors of i and g (0.75 and 1.1),
    which count 2^(qc - 15) each. h, in its own unit: half; the errors of o and tanh (0.75 and 1.1) count 2^(qh - 15);
    that of c' counts 2^(qh - qc).
    """
    rng = np.random.default_rng(seed)
    y = np.clip(rng.normal(0, 3, (4000, 4)) * 4096, -32768, 32767).astype(np.int64)
    c = rng.integers(-32768, 32768, 4000)
    c_new, h_new = numerics.cell(TABLES.sigmoid, TABLES.tanh, y, c, qc, qh)

    x = y / 4096
    exact = sigmoid(x[:, 1]) * (c / 2.0**qc) + sigmoid(x[:, 0]) * np.tanh(x[:, 2])
    exact = np.clip(exact, -(2.0 ** (15 - qc)), (32767 / 32768) * 2.0 ** (15 - qc))
    exact_h = np.clip(sigmoid(x[:, 3]) * np.tanh(exact), -127 * 2.0**-qh, 127 * 2.0**-qh)
    c_bound = 0.5 + 0.75 * np.abs(c) / 2**15 + (0.75 + 1.1) * 2.0 ** (qc - 15)
    c_error = np.abs(c_new - exact * 2.0**qc)
    assert (c_error <= c_bound).all()
    h_error = np.abs(h_new - exact_h * 2.0**qh)
    assert (h_error <= 0.5 + (0.75 + 1.1) * 2.0 ** (qh - 15) + c_error * 2.0 ** (qh - qc)).all()


@pytest.mark.parametrize("qc", QC)
def test_cell_state_saturates_and_does_not_wrap(qc: int) -> None:
    gates = [32767, 32767, 32767, 32767]
    c = np.array([32767])
    for _ in range(50):
        c, h = numerics.cell(TABLES.sigmoid, TABLES.tanh, [gates], c, qc, 7)
        assert 32000 < int(c[0]) <= 32767  # f is a little below 1: it stays at the top, short of the end for coarse c
        assert int(h[0]) > 90
    c = np.array([-32768])
    for _ in range(50):
        c, h = numerics.cell(TABLES.sigmoid, TABLES.tanh, [[32767, 32767, -32768, 32767]], c, qc, 7)
        assert -32768 <= int(c[0]) < -32000
        assert int(h[0]) < -90


def test_cell_state_reaches_both_ends() -> None:
    """At qc = 15 one step of i * g is as much as the whole range."""
    up, _ = numerics.cell(TABLES.sigmoid, TABLES.tanh, [[32767] * 4], [32767], 15, 7)
    down, _ = numerics.cell(TABLES.sigmoid, TABLES.tanh, [[32767, 32767, -32768, 32767]], [-32768], 15, 7)
    assert (int(up[0]), int(down[0])) == (32767, -32768)


@pytest.mark.parametrize("qh", QH)
def test_h_is_symmetric_at_its_ends(qh: int) -> None:
    """o and tanh(c) at their largest: h is 127 from qh = 7 on, and never -128."""
    y = [[-32768, 32767, 0, 32767]] * 2
    _, h = numerics.cell(TABLES.sigmoid, TABLES.tanh, y, [32767, -32768], 8, qh)
    top = min(127, 1 << qh)
    assert h.tolist() == [top, -top]


@pytest.mark.parametrize("qc", QC)
def test_zero_stays_zero(qc: int) -> None:
    """Zero input, weights and bias: g = 0, so c and h stay 0, as in a padded unit."""
    c = np.zeros(3, np.int64)
    for _ in range(10):
        c, h = numerics.cell(TABLES.sigmoid, TABLES.tanh, np.zeros((3, 4), np.int64), c, qc, 7)
        assert not c.any()
        assert not h.any()
