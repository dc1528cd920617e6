# SPDX-License-Identifier: Apache-2.0
"""The emulator's trace: names, shapes without padding, values, order of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_host import START, TOKEN, Host
from emulator_program import Sizes, network
from emulator_witness import Entry, Witness

from gharial.devices.emulator import EmulatorDevice, open_emulator
from gharial.isa.commands import UNIT_TEMPERATURE, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault

SIZES = Sizes(features=6, hidden=13, joint=11, classes=45)
UNITS = {"encoder.pre_rnn.0": 13, "encoder.post_rnn.0": 13, "joint_enc": 11, "prediction.0": 13, "joint_pred": 11,
         "joint": 11, "logits": 45}  # fmt: skip
CELLS = ("encoder.pre_rnn.0", "encoder.post_rnn.0", "prediction.0")


def layers() -> list[dict[str, Any]]:
    """As a manifest has them: what the trace needs."""
    found: list[dict[str, Any]] = [{"name": name, "units": units} for name, units in UNITS.items()]
    found[0]["parts"] = [
        {"input": "x", "column": 0, "columns": 4},
        {"input": "x", "column": 4, "columns": 2},
        {"input": "h", "column": 0, "columns": 13},
    ]
    return found


class Traced:
    """A device that is traced, and the witness with what it ought to show."""

    def __init__(self, seed: int, kernel: str | None = None) -> None:
        cfg = config("tiny")
        self.rng = np.random.default_rng(seed)
        images, trace = network(cfg, self.rng, SIZES)
        self.device = EmulatorDevice(cfg, cfg.window_bytes, kernel)
        self.host = Host(self.device)
        self.host.load(images)
        self.witness = Witness(cfg, images)
        self.names = {(t["section"], t["instruction"]): str(t["layer"]) for t in trace}
        self.trace = trace
        self.expected: dict[str, list[np.ndarray]] = {}

    def start(self) -> None:
        self.device.start_trace(layers(), self.trace)

    def add(self, key: str, value: Any) -> None:
        self.expected.setdefault(key, []).append(np.asarray(value))

    def keep(self, entry: Entry) -> None:
        """What the witness's instructions wrote, by name."""
        parts: dict[str, int] = {}
        for section, index, values in entry.trace:
            name = self.names[section, index]
            if name in CELLS:
                turn = parts[name] = parts.get(name, -1) + 1
                self.add(f"{name}.{('pre', 'c', 'h')[turn % 3]}", values[: UNITS[name]])
            else:
                self.add(name, values[: UNITS[name]])

    def encode(self, vectors: int, reset: bool) -> None:
        h = self.witness.h
        features = self.rng.integers(-127, 128, (vectors, h["feature_bytes"]))
        assert self.host.encode([{"slot": 0, "reset": int(reset), "features": features}])["status"] == Fault.NONE
        for each in features:
            self.add("features", each[:6])
        self.keep(self.witness.encode(0, features, reset, 0))

    def joint(self) -> int:
        entry = self.witness.joint(0, 0, 0)
        self.keep(entry)
        self.add("lse", self.witness.log_sum_exp(entry.logits, UNIT_TEMPERATURE))
        return int(entry.logits.argmax())

    def compare(self, found: dict[str, list[Any]]) -> None:
        assert set(found) == set(self.expected)
        for key, values in self.expected.items():
            assert len(found[key]) == len(values), key
            for mine, theirs in zip(found[key], values, strict=True):
                np.testing.assert_array_equal(mine, theirs, err_msg=key)


def test_encode_and_decode(seed: int) -> None:
    traced = Traced(seed)
    traced.encode(2, True)  # before the trace begins
    traced.expected.clear()
    traced.start()
    traced.encode(2, False)
    for step in range(3):
        entry = {"slot": 0, "kind": TOKEN if step else START, "token": 3 * step, "source": 0, "destination": 0}
        assert traced.host.decode([entry])["status"] == Fault.NONE
        traced.keep(traced.witness.predict(0 if step else None, 0, 3 * step if step else None))
        traced.joint()
    traced.encode(1, False)
    found = traced.device.stop_trace()
    traced.compare(found)
    types = {"features": "int8", "joint": "int8", "logits": "int16", "joint_enc": "int16", "lse": "int32",
             "prediction.0.pre": "int16", "prediction.0.c": "int16", "prediction.0.h": "int8"}  # fmt: skip
    assert {key: str(found[key][0].dtype) for key in types} == types
    shapes = {
        "features": (6,),
        "encoder.pre_rnn.0.pre": (13, 4),
        "encoder.pre_rnn.0.h": (13,),
        "logits": (45,),
        "lse": (),
    }
    assert {key: found[key][0].shape for key in shapes} == shapes


def test_greedy_shows_every_joint(seed: int) -> None:
    """Those that end in blank too, and the log-sum-exp that no result carries."""
    traced = Traced(seed)
    traced.start()
    h = traced.witness.h
    for step in range(4):
        features = traced.rng.integers(-127, 128, (2, h["feature_bytes"]))
        done = traced.host.greedy([{"slot": 0, "prediction": 0, "reset": int(step == 0), "features": features}], 5)
        assert done["status"] == Fault.NONE
        for each in features:
            traced.add("features", each[:6])
        traced.keep(traced.witness.encode(0, features, step == 0, 0))
        if step == 0:
            traced.keep(traced.witness.predict(None, 0, None))
        for _ in range(5):
            token = traced.joint()
            if token == h["blank"]:
                break
            traced.keep(traced.witness.predict(0, 0, token))
    traced.compare(traced.device.stop_trace())


@pytest.mark.parametrize("seen", [("encoder.post_rnn.0",), ("logits", "joint_pred"), ()])
def test_only_what_is_named(seed: int, seen: tuple[str, ...]) -> None:
    traced = Traced(seed)
    traced.trace = [t for t in traced.trace if t["layer"] in seen]
    traced.start()
    traced.encode(2, True)
    assert traced.host.decode([{"kind": START, "source": 0, "destination": 0}])["status"] == Fault.NONE
    found = set(traced.device.stop_trace())
    cells = {f"{name}.{part}" for name in seen if name in CELLS for part in ("pre", "c", "h")}
    assert found == {"features", "lse"} | cells | {name for name in seen if name not in CELLS}


def test_trace_starts_anew_and_changes_nothing(seed: int) -> None:
    traced, plain = Traced(seed), Traced(seed)
    for round_ in range(2):
        traced.start()
        for each in (traced, plain):
            each.encode(2, round_ == 0)
        traced.compare(traced.device.stop_trace())
        traced.expected.clear()
    for mine, theirs in zip(traced.host.saved(0), plain.host.saved(0), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert traced.device.stop_trace() == {}
    assert open_emulator(config("tiny")).stop_trace() == {}


def test_a_failed_command_leaves_a_trace_that_can_be_read(seed: int) -> None:
    traced = Traced(seed)
    traced.start()
    traced.device.inject_watchdog()
    features = np.zeros((2, traced.witness.h["feature_bytes"]), int)
    assert traced.host.encode([{"slot": 0, "reset": 1, "features": features}])["status"] == Fault.WATCHDOG
    traced.device.reset()
    traced.host.setup()
    traced.host.done(Operation.NOP)
    assert set(traced.device.stop_trace()) == {"features"}
