# SPDX-License-Identifier: Apache-2.0
"""What DECODE lists: top-k, ties, fuzzy top-k, all logits, named classes, log-sum-exp."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_host import NONE, Host
from emulator_program import Assembler, Ints
from emulator_witness import Witness, fuzzy, top_k

from gharial.devices.emulator import open_emulator
from gharial.isa.commands import UNIT_TEMPERATURE, Mode, Operation
from gharial.isa.configs import config
from gharial.isa.faults import Fault
from gharial.isa.instructions import Post

ENTRY = {"slot": 0, "kind": NONE, "source": 0, "destination": 0}


def ranked(logits: Ints, bits: int = 8, name: str = "tiny") -> tuple[Host, Witness]:
    """A device whose joint gives these logits: they are the biases of a product of zeros."""
    cfg, a = config(name), Assembler(config(name))
    rows = -(-len(logits) // cfg.rows) * cfg.rows
    bias = np.full(rows, 32767 << 10)  # of classes that there are not
    bias[: len(logits)] = np.asarray(logits, np.int64) << 10
    a.matvec("joint", np.zeros((rows, cfg.cols), np.int64), first=1, last=1, post=Post.LOGIT, source=0,
             scale_group=a.scale(np.zeros(rows, int), np.zeros(rows, int)), bias_group=a.bias(bias))  # fmt: skip
    images = a.build(vectors=1, feature_bytes=cfg.cols, scratch_units=1, classes=len(logits), blank=0, logit_bits=bits)
    host = Host(open_emulator(cfg, 1 << 20 if not cfg.in_memory else 1 << 26))
    host.load(images)
    for prediction in (False, True):
        assert host.slots(Operation.RESET, [0], prediction)["status"] == Fault.NONE
    return host, Witness(cfg, images)


def result(host: Host, k: int = 1, mode: Mode = Mode.TOP_K, **fields: int) -> dict[str, object]:
    done = host.decode([ENTRY], k, mode, **fields)
    assert done["status"] == Fault.NONE
    return host.decode_result(0, k, mode)


def patterns(rng: np.random.Generator, count: int) -> list[Ints]:
    return [
        rng.integers(-32768, 32768, count),
        rng.integers(-3, 3, count),  # ties everywhere
        np.full(count, -32768),
        np.arange(count) - 32768,  # each is better than all before
        -np.arange(count),
        np.where(np.arange(count) == count - 1, 32767, -32768),
    ]


@pytest.mark.parametrize("count", [1, 2, 33, 129, 255, 512])
def test_top_k_and_log_sum_exp(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for logits in patterns(rng, count):
        host, witness = ranked(logits)
        for k in {1, 2, 5, 32, 33}:
            if k > count:
                assert host.decode([ENTRY], k)["status"] == Fault.BAD_COMMAND
                continue
            found, classes = result(host, k), top_k(logits, k)
            assert found["classes"] == classes
            assert found["logits"] == logits[classes].tolist()
            assert found["lse"] == witness.log_sum_exp(logits, UNIT_TEMPERATURE)


def test_many_classes(seed: int) -> None:
    """As many classes as the large model has, in a configuration that holds them."""
    rng = np.random.default_rng(seed)
    for logits in patterns(rng, 17408):
        host, witness = ranked(logits, name="kv260")
        for mode, values, among in ((Mode.TOP_K, logits, None), (Mode.FUZZY, *fuzzy(logits))):
            found = result(host, 33, mode)
            assert found["classes"] == top_k(values, 33, among)
            assert found["lse"] == witness.log_sum_exp(values, UNIT_TEMPERATURE)


@pytest.mark.parametrize("count", [256, 512])
def test_fuzzy(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for logits in patterns(rng, count):
        host, witness = ranked(logits)
        values, survivors = fuzzy(logits)
        lost = next(j for j in range(count) if j not in survivors)
        for k in (1, 7, 32):
            found, classes = (
                result(host, k, Mode.FUZZY, named=2, named_01=lost | survivors[3] << 16),
                top_k(values, k, survivors),
            )
            assert found["classes"] == classes
            assert found["logits"] == logits[classes].tolist()
            assert found["lse"] == witness.log_sum_exp(values, UNIT_TEMPERATURE)
            assert found["named"] == [values.min(), logits[survivors[3]], 0, 0]


def test_fuzzy_needs_blocks_and_survivors() -> None:
    host, _ = ranked(np.zeros(255, int))
    assert (host.decode([ENTRY], 1, Mode.FUZZY)["status"], host.send(Operation.NOP)["status"]) == (1, 0)
    host, _ = ranked(np.arange(256))  # 32 survive
    assert host.decode([ENTRY], 32, Mode.FUZZY)["status"] == Fault.NONE
    assert host.decode([ENTRY], 33, Mode.FUZZY)["status"] == Fault.BAD_COMMAND
    assert host.decode([ENTRY], 33, Mode.TOP_K)["status"] == Fault.NONE


@pytest.mark.parametrize("count", [1, 16, 255])
def test_all_logits(count: int, seed: int) -> None:
    """Odd numbers of classes are padded with zero; nothing behind is touched."""
    logits = np.random.default_rng(seed).integers(-32768, 32768, count)
    host, _ = ranked(logits)
    size = 16 + (2 * count + 3) // 4 * 4
    host.device.write_memory(host.result_address, b"\xee" * 1024)
    found = result(host, 0, Mode.ALL)
    assert (found["logits"], found["count"]) == (logits.tolist(), count)
    raw = host.device.read_memory(host.result_address, 1024)
    assert raw[16 + 2 * count : size] == bytes(size - 16 - 2 * count)
    assert raw[size:] == b"\xee" * (1024 - size)


def test_named_classes(seed: int) -> None:
    logits = np.random.default_rng(seed).integers(-32768, 32768, 300)
    host, _ = ranked(logits)
    names = [299, 0, 299, 256]
    fields = {"named_01": names[0] | names[1] << 16, "named_23": names[2] | names[3] << 16}
    for named in range(5):
        found = result(host, 1, named=named, **fields)
        assert found["named"] == [*logits[names[:named]].tolist(), *[0] * (4 - named)]
    for named, word in ((1, 7), (2, 7), (3, 8), (4, 8)):
        wrong = [0, 0, 0, 0]
        wrong[named - 1] = 300
        done = host.decode([ENTRY], named=named, named_01=wrong[0] | wrong[1] << 16, named_23=wrong[2] | wrong[3] << 16)
        assert (done["status"], done["detail"]) == (Fault.BAD_COMMAND, word)
        assert host.decode([ENTRY], named=named - 1, named_01=wrong[0] | wrong[1] << 16,
                           named_23=wrong[2] | wrong[3] << 16)["status"] == Fault.NONE  # fmt: skip


@pytest.mark.parametrize("bits", range(4, 13))
def test_temperatures(bits: int, seed: int) -> None:
    """Every fraction of the logits; temperatures in turn, so that tables for one must not serve another."""
    rng = np.random.default_rng(seed)
    for logits in (
        rng.integers(-32768, 32768, 256),
        rng.normal(0, 1 << bits, 256).astype(np.int64).clip(-32768, 32767),
    ):
        host, witness = ranked(logits, bits)
        for temperature in (0, 1, 16384, 65535, 8192, 16384, int(rng.integers(65536))):
            assert result(host, temperature=temperature)["lse"] == witness.log_sum_exp(logits, temperature)


def test_log_sum_exp_is_near_the_real_one(seed: int) -> None:
    """Against floating point: a witness that shared a mistake with the emulator would show."""
    rng = np.random.default_rng(seed)
    for count in (2, 256, 512):
        logits = rng.normal(0, 2 << 8, count).astype(np.int64)
        host, _ = ranked(logits)
        exact = np.log(np.exp(logits / 256.0).sum())
        assert abs(float(str(result(host)["lse"])) / 65536 - exact) < 3.5e-4


def test_results_lie_a_stride_apart(seed: int) -> None:
    logits = np.random.default_rng(seed).integers(-32768, 32768, 64)
    host, _ = ranked(logits)
    slots = [1, 2, 3]
    assert host.slots(Operation.RESET, slots, prediction=True)["status"] == Fault.NONE
    host.device.write_memory(host.result_address, b"\xee" * 512)
    entries = [{"slot": 0, "kind": NONE, "source": s, "destination": s, "no_joint": int(s == 2)} for s in slots]
    done = host.decode(entries, 2, stride=100)
    assert (done["status"], done["predictions"], done["joints"]) == (Fault.NONE, 0, 2)
    raw = host.device.read_memory(host.result_address, 512)
    assert raw[:24] == raw[200:224] != raw[100:124]
    assert raw[24:200] == b"\xee" * 176  # nothing for the entry without joint
