# SPDX-License-Identifier: Apache-2.0
"""The reference model behind registers, rings and commands: results are the model's, slots live as they should."""

from __future__ import annotations

import numpy as np
import pytest
from reference_host import FEATURES, RESULTS, STATE_BASE, Host, Outcome
from reference_program import Dims, TestProgram, make_program
from sim.reference import ReferenceDevice, ReferenceModel

from gharial.errors import BadInput, DeviceError
from gharial.isa import _registers as reg
from gharial.isa.commands import (
    DECODE_ENTRY,
    ENCODE_ENTRY,
    GREEDY_ENTRY,
    SLOT_ENTRY,
    Flag,
    Kind,
    Mode,
    Operation,
)
from gharial.isa.configs import config
from gharial.isa.faults import Fault

WIDE = Dims(features=8, hidden=8, joint=16, classes=512, pred_hidden=8, pred_layers=1)


class Bench:
    """A device with a program started, its host and the bare model."""

    def __init__(self, program: TestProgram) -> None:
        self.program = program
        self.device = ReferenceDevice(program.config, program.manifest)
        self.host = Host(self.device)
        self.host.load(program)
        assert self.host.start(program)["status"] == 0
        self.model = ReferenceModel.from_program(program)

    def vectors(self, rng: np.random.Generator, count: int = 2) -> np.ndarray:
        return rng.integers(-127, 128, (count, self.program.dims.features))

    def encode(self, slot: int, x8: np.ndarray, bank: int = 0, reset: bool = False) -> Outcome:
        entry = {"slot": slot, "bank": bank, "reset": int(reset)}
        entry |= self.host.features(x8, self.model.features_padded)
        return self.host.run(Operation.ENCODE, ENCODE_ENTRY, [entry])

    def decode(self, *entries: dict[str, int], **fields: int) -> Outcome:
        common = {"k": 4, "stride": 2048, "temperature": 16384}
        return self.host.run(Operation.DECODE, DECODE_ENTRY, entries, **(common | fields))

    def slots(self, operation: Operation, *entries: dict[str, int], prediction: bool = False) -> Outcome:
        flags = Flag.CHECKED | (Flag.PREDICTION if prediction else 0)
        return self.host.run(operation, SLOT_ENTRY, entries, flags=flags)

    def result(self, index: int, count: int, stride: int = 2048) -> bytes:
        return self.device.read_memory(RESULTS + index * stride, count)


def head(data: bytes) -> tuple[int, list[int], int]:
    """Log-sum-exp, named logits and length of a DECODE result."""
    lse, count = np.frombuffer(data, "<i4", 1)[0], np.frombuffer(data, "<u2", 2, 12)
    assert count[1] == 0
    return int(lse), np.frombuffer(data, "<i2", 4, 4).tolist(), int(count[0])


def pairs(data: bytes, start: int, step: int = 4) -> list[tuple[int, int]]:
    """(class, logit) words."""
    return [
        (int.from_bytes(data[at + 2 : at + 4], "little"), int.from_bytes(data[at : at + 2], "little", signed=True))
        for at in range(start, len(data), step)
    ]


@pytest.fixture
def bench(seed: int) -> Bench:
    return Bench(make_program(seed))


def test_registers(bench: Bench) -> None:
    host, tiny = bench.host, config("tiny")
    assert host.register(reg.ID) == 0x4748524C
    assert host.register(reg.VERSION) == 0x00010001
    assert host.register(reg.CONFIG_ID) == tiny.config_id
    assert host.register(reg.DEVICE) == 2
    assert host.register(reg.MEM_SIZE_LO) == tiny.window_bytes
    assert host.register(reg.MEM_SIZE_HI) == 0
    assert host.register(reg.PROGRAM_ID) == bench.program.manifest["program_id"]
    assert host.register(reg.STATUS) == 1 | 8  # ready, program
    header = bench.model.header
    encoders = min(512 // header["enc_a_units"], 1024 // header["enc_c_units"], 16)
    predictions = min(512 // header["pred_a_units"], 1024 // header["pred_c_units"], 64)
    assert (host.register(reg.ENC_SLOTS), host.register(reg.PRED_SLOTS)) == (encoders, predictions)
    bench.device.write_register(reg.ID.offset, 0)
    assert host.register(reg.ID) == 0x4748524C
    assert host.register(reg.CYCLES_LO) == 0
    with pytest.raises(DeviceError, match="no such register"):
        bench.device.read_register(0x7FC)
    bench.device.write_register(reg.WATCHDOG.offset, 0xFFFFFFFF)
    assert host.register(reg.WATCHDOG) == 0xFFFFFFFF
    with pytest.raises(DeviceError, match="more than 32 bits"):
        bench.device.write_register(reg.WATCHDOG.offset, 1 << 32)


def test_encode_and_decode_are_the_models(bench: Bench, seed: int) -> None:
    """Two streams in one command, several steps, both banks; decode after each, top-k with named classes."""
    rng, model = np.random.default_rng(seed), bench.model
    states = [model.encoder_state(), model.encoder_state()]
    predictions = [model.predict(None, None) for _ in range(2)]
    for step in range(4):
        bank = step % 2
        x8 = [bench.vectors(rng), bench.vectors(rng)]
        entries = []
        for slot in range(2):
            at = 512 * slot
            entry = {"slot": slot, "bank": bank, "reset": int(step == 0)}
            entries.append(entry | bench.host.features(x8[slot], model.features_padded, at))
        assert bench.host.run(Operation.ENCODE, ENCODE_ENTRY, entries) == Outcome(0)
        encs = []
        for slot in range(2):
            states[slot], enc = model.encode_step(states[slot], x8[slot], bank)
            encs.append(enc)

        tokens = [int(t) for t in rng.integers(model.tokens, size=2)]
        kind = Kind.START if step == 0 else Kind.TOKEN
        decodes = [
            {"slot": s, "bank": bank, "kind": kind, "token": tokens[s], "source": 8 + s, "destination": 8 + s}
            for s in range(2)
        ]
        named = [model.blank, 3, 0]
        outcome = bench.decode(
            *decodes, k=5, named=3, named_01=named[0] | named[1] << 16, named_23=named[2], temperature=23000
        )
        assert outcome == Outcome(0, predictions=2, joints=2)
        for slot in range(2):
            if step:
                predictions[slot] = model.predict(predictions[slot], tokens[slot])
            logits = model.joint(encs[slot], predictions[slot].joint_pred)
            data = bench.result(slot, 16 + 5 * 4)
            assert head(data) == (model.lse(logits, 23000), [*(int(logits[j]) for j in named), 0], 5)
            order = np.argsort(-logits, kind="stable")[:5]
            assert pairs(data, 16) == [(int(j), int(logits[j])) for j in order]


def test_one_source_many_destinations(bench: Bench, seed: int) -> None:
    """A beam's round: several tokens from one state, to other slots; the source stays."""
    rng, model = np.random.default_rng(seed), bench.model
    x8 = bench.vectors(rng)
    bench.encode(0, x8, reset=True)
    _, enc = model.encode_step(model.encoder_state(), x8)
    start = model.predict(None, None)
    assert bench.decode({"slot": 0, "kind": Kind.START, "destination": 3}) == Outcome(0, predictions=1, joints=1)
    entries = [{"slot": 0, "kind": Kind.TOKEN, "token": t, "source": 3, "destination": 4 + t} for t in range(3)]
    assert bench.decode(*entries) == Outcome(0, predictions=3, joints=3)
    for t in range(3):
        logits = model.joint(enc, model.predict(start, t).joint_pred)
        assert pairs(bench.result(t, 20), 16) == [(int(np.argmax(logits)), int(logits.max()))]
    # The source is still the start; kind none reuses its stored output.
    assert bench.decode({"slot": 0, "kind": Kind.NONE, "source": 3, "destination": 3}) == Outcome(0, joints=1)
    logits = model.joint(enc, start.joint_pred)
    assert head(bench.result(0, 16))[0] == model.lse(logits)


def test_no_joint_gives_no_result_and_needs_no_encoder_slot(bench: Bench) -> None:
    bench.device.write_memory(RESULTS, b"\xaa" * 64)
    entry = {"slot": 0xFFFF, "kind": Kind.START, "destination": 1, "no_joint": 1}
    assert bench.decode(entry) == Outcome(0, predictions=1)
    assert bench.result(0, 64) == b"\xaa" * 64
    image = bench.model.predict(None, None).joint_pred.astype("<i2").tobytes()
    assert bench.slots(Operation.SAVE, {"slot": 1}, prediction=True) == Outcome(0)
    assert bench.result(0, 200).find(image) > 0


def test_modes_all_and_fuzzy(seed: int) -> None:
    bench = Bench(make_program(seed, dims=WIDE))
    rng, model = np.random.default_rng(seed), bench.model
    x8 = bench.vectors(rng)
    bench.encode(0, x8, reset=True)
    _, enc = model.encode_step(model.encoder_state(), x8)
    start = {"slot": 0, "kind": Kind.START, "destination": 0}
    logits = model.joint(enc, model.predict(None, None).joint_pred)

    assert bench.decode(start, mode=Mode.ALL, named=1, named_01=17).status == 0
    data = bench.result(0, 16 + 2 * 512)
    assert head(data) == (model.lse(logits), [int(logits[17]), 0, 0, 0], 512)
    assert np.frombuffer(data, "<i2", 512, 16).tolist() == logits.tolist()

    # One survivor of each block and lane; the rest is as the smallest of them.
    groups = logits.reshape(2, 8, 32)
    kept = [256 * b + 32 * int(groups[b, :, lane].argmax()) + lane for b in range(2) for lane in range(32)]
    lost = next(j for j in range(512) if j not in kept)
    replaced = np.full(512, logits[kept].min())
    replaced[kept] = logits[kept]
    assert bench.decode(start, mode=Mode.FUZZY, k=33, named=1, named_01=lost).status == 0
    data = bench.result(0, 16 + 33 * 4)
    assert head(data) == (model.lse(replaced), [int(logits[kept].min()), 0, 0, 0], 33)
    order = sorted(kept, key=lambda j: (-logits[j], j))[:33]
    assert pairs(data, 16) == [(j, int(logits[j])) for j in order]


def test_greedy_is_the_models() -> None:
    program = make_program(4, blank_bias=1 << 21)  # an utterance with steps of every kind
    bench = Bench(program)
    model, x8 = bench.model, np.random.default_rng(4).integers(-127, 128, (7, program.dims.features))
    expected = model.greedy(x8, max_symbols=3)
    found, shapes = [], []
    for step in range(4):
        vectors = x8[2 * step : 2 * step + 2]
        entry = {"slot": 2, "prediction": 7, "reset": int(step == 0), "bank": step % 2}
        entry |= bench.host.features(vectors, model.features_padded)
        bench.device.write_memory(RESULTS, b"\xee" * 64)
        outcome = bench.host.run(Operation.GREEDY, GREEDY_ENTRY, [entry], k=3, temperature=16384, stride=64)
        data = bench.result(0, 32)
        words = np.frombuffer(data, "<u4")
        n = int(words[0] & 0xFFFF)
        shapes.append((n, int(words[0] >> 16), int(words[1])))
        assert outcome == Outcome(0, predictions=n + (step == 0), joints=int(words[1]))
        tokens = pairs(data[: 8 + 8 * n], 8, 8)
        lse = np.frombuffer(data, "<i4")[3 : 3 + 2 * n : 2].tolist()
        found += [(token, step, logit, value) for (token, logit), value in zip(tokens, lse, strict=True)]
        assert data[8 + 8 * n :] == b"\xee" * (24 - 8 * n)
    assert shapes == [(0, 0, 1), (1, 0, 2), (0, 0, 1), (3, 1, 3)]
    assert found == list(zip(expected.tokens, expected.steps, expected.logits, expected.lse, strict=True))


def test_a_short_step_ends_the_slot(bench: Bench, seed: int) -> None:
    rng, model = np.random.default_rng(seed), bench.model
    x8 = [bench.vectors(rng), bench.vectors(rng, 1)]
    bench.encode(0, x8[0], reset=True)
    assert bench.encode(0, x8[1], bank=1) == Outcome(0)
    assert bench.encode(0, x8[0]) == Outcome(Fault.BAD_SLOT, 0)
    assert bench.slots(Operation.SAVE, {"slot": 0}) == Outcome(Fault.BAD_SLOT, 0)
    state, _ = model.encode_step(model.encoder_state(), x8[0])
    _, enc = model.encode_step(state, x8[1])
    assert bench.slots(Operation.COPY, {"slot": 0, "second": 1}) == Outcome(0)
    for slot in (0, 1):  # both can still be decoded, and neither continued
        assert bench.decode({"slot": slot, "bank": 1, "kind": Kind.START, "destination": 0}).status == 0
        logits = model.joint(enc, model.predict(None, None).joint_pred)
        assert head(bench.result(0, 16))[0] == model.lse(logits)
    assert bench.encode(1, x8[0]) == Outcome(Fault.BAD_SLOT, 1)
    assert bench.encode(0, x8[0], reset=True) == Outcome(0)
    assert bench.encode(0, x8[0]) == Outcome(0)


def test_save_free_restore_continues_a_stream(bench: Bench, seed: int) -> None:
    rng, model = np.random.default_rng(seed), bench.model
    x8 = [bench.vectors(rng) for _ in range(3)]
    state = model.encoder_state()
    for step in range(2):
        bench.encode(1, x8[step], bank=step, reset=step == 0)
        state, _ = model.encode_step(state, x8[step], step)
    assert bench.slots(Operation.SAVE, {"slot": 1, "offset": 256}) == Outcome(0)

    # A part: h of each layer; C part: c of each layer, then the two banks.
    image = b"".join(h.astype("i1").tobytes() for h in state.h)
    image += b"".join(c.astype("<i2").tobytes() for c in (*state.c, state.banks[0], state.banks[1]))
    assert bench.device.read_memory(RESULTS + 256, len(image)) == image

    assert bench.slots(Operation.FREE, {"slot": 1}) == Outcome(0)
    assert bench.encode(1, x8[2]) == Outcome(Fault.BAD_SLOT, 1)
    assert bench.slots(Operation.RESTORE, {"slot": 2, "offset": 256}) == Outcome(0)
    assert bench.encode(2, x8[2]) == Outcome(0)
    state, _ = model.encode_step(state, x8[2])
    assert bench.slots(Operation.SAVE, {"slot": 2}) == Outcome(0)
    assert bench.result(0, len(state.h[0])) == state.h[0].astype("i1").tobytes()
    bench.device.write_memory(RESULTS, b"\x55" * len(image))
    assert bench.slots(Operation.RESTORE, {"slot": 3}) == Outcome(0)
    assert bench.slots(Operation.SAVE, {"slot": 3, "offset": 1024}) == Outcome(0)
    assert bench.device.read_memory(RESULTS + 1024, len(image)) == b"\x55" * len(image)


def test_prediction_slots_are_saved_copied_and_reset(bench: Bench) -> None:
    model = bench.model
    bench.decode({"kind": Kind.START, "destination": 0, "no_joint": 1})
    bench.decode({"kind": Kind.TOKEN, "token": 2, "destination": 0, "no_joint": 1})
    state = model.predict(model.predict(None, None), 2)
    image = b"".join(h.astype("i1").tobytes() for h in state.h)
    image += b"".join(c.astype("<i2").tobytes() for c in (*state.c, state.joint_pred))
    assert bench.slots(Operation.COPY, {"slot": 0, "second": 5}, prediction=True) == Outcome(0)
    assert bench.slots(Operation.RESET, {"slot": 0}, prediction=True) == Outcome(0)
    saves = [{"slot": 0}, {"slot": 5, "offset": 512}]
    assert bench.slots(Operation.SAVE, *saves, prediction=True) == Outcome(0)
    assert bench.result(0, len(image)) == bytes(len(image))
    assert bench.device.read_memory(RESULTS + 512, len(image)) == image


def test_start_frees_all_slots_and_load_unloads(bench: Bench, seed: int) -> None:
    x8 = bench.vectors(np.random.default_rng(seed))
    bench.encode(0, x8, reset=True)
    assert bench.host.start(bench.program)["status"] == 0
    assert bench.encode(0, x8) == Outcome(Fault.BAD_SLOT, 0)
    bench.encode(0, x8, reset=True)
    bench.host.load(bench.program)
    assert bench.encode(0, x8) == Outcome(Fault.NO_PROGRAM)
    for register in (reg.PROGRAM_ID, reg.ENC_SLOTS, reg.PRED_SLOTS):
        assert bench.host.register(register) == 0
    assert bench.host.register(reg.STATUS) == 1
    assert bench.host.start(bench.program)["status"] == 0
    assert bench.encode(0, x8, reset=True) == Outcome(0)


def test_weights_in_memory(seed: int) -> None:
    """A configuration whose weights, embedding and state lie in the device memory; memory is capped at 64 MiB."""
    bench = Bench(make_program(seed, "kv260"))
    assert bench.host.register(reg.MEM_SIZE_LO) == 64 << 20
    limits = (bench.program.config.enc_slots, bench.program.config.pred_slots)
    assert (bench.host.register(reg.ENC_SLOTS), bench.host.register(reg.PRED_SLOTS)) == limits
    x8 = bench.vectors(np.random.default_rng(seed))
    assert bench.encode(4095, x8, reset=True) == Outcome(0)
    _, enc = bench.model.encode_step(bench.model.encoder_state(), x8)
    outcome = bench.decode({"slot": 4095, "kind": Kind.START, "destination": 49151})
    assert outcome == Outcome(0, predictions=1, joints=1)
    logits = bench.model.joint(enc, bench.model.predict(None, None).joint_pred)
    assert head(bench.result(0, 16))[0] == bench.model.lse(logits)
    size = bench.device.read_register(reg.MEM_SIZE_LO.offset)
    too_far = {"entry_lo": 48 << 20, "feature_lo": 40 << 20, "result_lo": size - 64}
    done = bench.host.command(Operation.START, **too_far)
    assert (done["status"], done["detail"]) == (Fault.ADDRESS, size - 64)
    moved = {"entry_lo": 48 << 20, "feature_lo": (40 << 20) + 64, "result_lo": STATE_BASE}
    done = bench.host.command(Operation.START, **moved)
    assert (done["status"], done["detail"]) == (Fault.ADDRESS, (40 << 20) + 64)


def test_trace(bench: Bench, seed: int) -> None:
    rng, model = np.random.default_rng(seed), bench.model
    x8 = np.concatenate([bench.vectors(rng), bench.vectors(rng)])
    bench.encode(0, bench.vectors(rng), reset=True)  # before the trace starts
    bench.device.start_trace(bench.program.manifest["layers"], [])
    for step in range(2):
        bench.encode(0, x8[2 * step : 2 * step + 2], reset=step == 0)
        bench.decode({"slot": 0, "kind": Kind.START, "destination": 0}, temperature=20000)
    kept = bench.device.stop_trace()
    bench.encode(0, x8[:2])  # after it
    assert bench.device.stop_trace() == {}

    trace, state = model.trace(), model.encoder_state()
    for step in range(2):
        state, enc = model.encode_step(state, x8[2 * step : 2 * step + 2], 0, trace)
        logits = model.joint(enc, model.predict(None, None, trace).joint_pred, trace)
        model.lse(logits, 20000, trace)
    expected = trace.steps()
    assert list(kept) == list(expected)
    assert len(kept["features"]) == 4
    for key, steps in expected.items():
        assert [a.dtype for a in kept[key]] == [a.dtype for a in steps]
        np.testing.assert_array_equal(np.stack(kept[key]), np.stack(steps), err_msg=key)


def test_opening_and_closing() -> None:
    program = make_program(5)
    with pytest.raises(BadInput, match="another configuration"):
        ReferenceDevice(config("ecp5-85f"), program.manifest)
    device = ReferenceDevice(program.config, program.manifest)
    with pytest.raises(DeviceError, match="no program"):
        device.start_trace([], [])
    with pytest.raises(DeviceError, match="outside the device memory"):
        device.read_memory(32768, 1)
    with pytest.raises(DeviceError, match="outside the device memory"):
        device.write_memory(FEATURES, bytes(32768))
    device.close()
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        device.read_register(reg.ID.offset)
