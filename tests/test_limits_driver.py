# SPDX-License-Identifier: Apache-2.0
"""Limits that the driver holds before a device sees anything, on a machine on chip and on one with weights in memory:
slots, entries, vocabulary, layers, memory (docs/driver.md)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from compiled import program as compiled
from fake_device import FakeDevice
from random_checkpoint import SMALL

from gharial.driver import DecodeEntry, Driver, EncodeEntry, GreedyEntry
from gharial.errors import BadInput, BadRequest, GharialError
from gharial.isa.commands import Kind, Mode, Operation
from gharial.isa.configs import config
from gharial.isa.header import HEADER
from gharial.program import Program

BOTH = ("tiny", "tiny-batch")
CLASSES, TOKENS = SMALL.classes, SMALL.classes - 1


@cache
def program(name: str, classes: int = CLASSES) -> Program:
    """A small model, compiled for that configuration."""
    return compiled(3, name, replace(SMALL, classes=classes))


@pytest.fixture(params=BOTH)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with Driver(FakeDevice(config(request.param)), program(request.param), timeout=60) as driver:
        fake(driver).log.clear()
        fake(driver).ran.clear()
        yield driver


def fake(driver: Driver) -> FakeDevice:
    assert isinstance(driver.device, FakeDevice)
    return driver.device


def refused(driver: Driver, words: str, call: Callable[[], object]) -> None:
    """It says what, what was found and what is expected; nothing was sent."""
    with pytest.raises(BadRequest) as caught:
        call()
    assert words in str(caught.value)
    assert fake(driver).log == [] and driver.in_flight == 0


def step(**fields: Any) -> EncodeEntry:
    features = np.zeros((SMALL.stack, SMALL.features), np.int8)
    return GreedyEntry(**({"slot": 0, "features": features} | fields))


def test_slots(driver: Driver) -> None:
    """Numbers beyond the table, whichever call names them."""
    there = {"encoder": driver.encoder_slots.count, "prediction": driver.prediction_slots.count}
    most = driver.program.config
    assert there["encoder"] <= most.enc_slots and there["prediction"] <= most.pred_slots
    for number in (there["encoder"], 0xFFFF, 1 << 40, -1):
        words = f"entry 1: encoder slot out of range: found {number}, expected 0..{there['encoder'] - 1}"
        refused(driver, words, lambda n=number: driver.encode([step(slot=1), step(slot=n)]))
        refused(driver, words, lambda n=number: driver.greedy([step(slot=1), step(slot=n, prediction=1)]))
        joints = [DecodeEntry(0, 0, Kind.START, 0, 1), DecodeEntry(number, 0, Kind.START, 0, 2)]
        refused(driver, words, lambda j=joints: driver.decode(j))
    last = there["prediction"] - 1
    for number in (last + 1, 0xFFFF, -1):
        words = f"slot out of range: found {number}, expected 0..{last}"
        refused(driver, words, lambda n=number: driver.greedy([step(prediction=n)]))
        refused(driver, "source " + words, lambda n=number: driver.decode([DecodeEntry(source=n, destination=1)]))
        refused(driver, "destination " + words, lambda n=number: driver.decode([DecodeEntry(source=1, destination=n)]))
    for kind, count in there.items():
        words = f"{kind} slot out of range: found {count}, expected 0..{count - 1}"
        for call in (driver.reset, driver.free, driver.save):
            refused(driver, words, lambda c=call, k=kind, n=count: c(k, [0, n]))
        for pair in ((0, count), (count, 0)):
            refused(driver, words, lambda k=kind, p=pair: driver.copy(k, [p]))
        driver.reset(kind, [count - 1]).result()
        (image,) = driver.save(kind, [count - 1]).result()
        fake(driver).log.clear()
        refused(driver, words, lambda n=count, i=image: driver.restore([n], [i]))


@pytest.mark.parametrize("kind", ["encoder", "prediction"])
def test_slots_are_given_out_once(driver: Driver, kind: str) -> None:
    pool = getattr(driver, f"{kind}_slots")
    driver.allocate(kind, pool.count)
    with pytest.raises(GharialError, match=rf"no {kind} slot is left: needed 1, found 0 of {pool.count}"):
        driver.allocate(kind)
    assert fake(driver).log == []


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("kind", ["encoder", "prediction"])
def test_a_driver_with_more_slots_than_there_are(kind: str, name: str) -> None:
    made = program(name)
    with Driver(FakeDevice(made.config), made) as driver:
        there = getattr(driver, f"{kind}_slots").count
    for number in (0, there + 1):
        with pytest.raises(BadRequest, match=rf"{kind} slots out of range: found {number}, expected 1..{there}"):
            Driver(FakeDevice(made.config), made, **{f"{kind}_slots": number})


def test_entries(driver: Driver) -> None:
    """None is refused; more than a command may carry are several commands."""
    for call in (driver.encode, driver.greedy, driver.decode):
        refused(driver, "a batch without entries", lambda c=call: c([]))
    for call in (driver.reset, driver.free, driver.save, driver.copy):
        refused(driver, "a batch without entries", lambda c=call: c("prediction", []))
    most = driver.program.config.max_entries
    driver.reset("prediction", [3]).result()
    assert len(driver.save("prediction", [3] * (2 * most + 1)).result()) == 2 * most + 1
    sizes = [len(command.entries) for command in fake(driver).ran if command.operation == Operation.SAVE]
    assert max(sizes) <= most and sum(sizes) == 2 * most + 1


def test_numbers_of_an_entry(driver: Driver) -> None:
    """Bank, feature vectors, kind, token."""
    for bank in (2, -1):
        refused(driver, f"bank out of range: found {bank}, expected 0..1", lambda b=bank: driver.encode([step(bank=b)]))
        refused(driver, "bank out of range", lambda b=bank: driver.decode([DecodeEntry(0, b, source=1)]))
    for vectors in (0, SMALL.stack + 1):
        features = np.zeros((vectors, SMALL.features), np.int8)
        words = f"features must be int8 (1..{SMALL.stack}, {SMALL.features}), found int8 ({vectors}, {SMALL.features})"
        refused(driver, words, lambda f=features: driver.encode([step(features=f)]))
    for token in (TOKENS, CLASSES, 1 << 16, -1):
        words = f"token out of range: found {token}, expected 0..{TOKENS - 1}"
        refused(driver, words, lambda t=token: driver.decode([DecodeEntry(source=1, token=t)]))
    refused(driver, "kind out of range: found 3", lambda: driver.decode([DecodeEntry(kind=3, source=1)]))  # type: ignore[arg-type]


def test_numbers_of_a_command(driver: Driver) -> None:
    """k, named classes, most symbols, inverse temperature."""
    entry = DecodeEntry(0, 0, Kind.START, 0, 1)
    for k in (0, -1, CLASSES + 1, 33, 34, 256):
        refused(driver, f"k out of range: found {k}, expected 1..{CLASSES}", lambda n=k: driver.decode([entry], k=n))
    refused(driver, "fuzzy top-k needs a multiple of 256", lambda: driver.decode([entry], mode=Mode.FUZZY))
    refused(driver, "too many named classes: found 5, at most 4", lambda: driver.decode([entry], named=range(5)))
    for name in (CLASSES, 1 << 16, -1):
        words = f"named class out of range: found {name}, expected 0..{CLASSES - 1}"
        refused(driver, words, lambda n=name: driver.decode([entry], named=[1, n]))
    for most in (0, 256):
        refused(driver, f"found {most}, expected 1..255", lambda m=most: driver.greedy([step()], max_symbols=m))
    for temperature in (0, 1 << 16):
        words = f"inverse temperature out of range: found {temperature}"
        refused(driver, words, lambda t=temperature: driver.decode([entry], temperature=t))


@pytest.mark.parametrize("classes", [40, 256])
def test_k_at_its_ends(classes: int) -> None:
    """33 at most, whatever the classes; fuzzy, one in eight of them."""
    made = program("tiny-batch", classes)
    with Driver(FakeDevice(made.config), made) as driver:
        entry = DecodeEntry(0, 0, Kind.START, 0, 1)
        driver.decode([entry], k=33, named=[0, 1, 2, classes - 1]).result()
        with pytest.raises(BadRequest, match=r"k out of range: found 34, expected 1\.\.33"):
            driver.decode([entry], k=34)
        if classes == 256:
            driver.decode([entry], k=32, mode=Mode.FUZZY).result()
            with pytest.raises(BadRequest, match=r"k out of range: found 33, expected 1\.\.32"):
                driver.decode([entry], k=33, mode=Mode.FUZZY)


def changed(made: Program, fields: dict[str, int]) -> Program:
    """The program with other fields in its header."""
    words = np.frombuffer(made.sections["code"], "<u4").copy()
    words[: HEADER.words] = HEADER.pack(**(HEADER.unpack(words[: HEADER.words]) | fields))
    words[HEADER.words - 1] = zlib.crc32(words[: HEADER.words - 1].tobytes())
    return Program(made.manifest, made.sections | {"code": words.tobytes()})


FIELDS = {
    "predict_count": ("instructions of section predict", 255),
    "encode_count": ("instructions of section encode", 255),
    "joint_count": ("instructions of section joint", 255),
    "vectors": ("feature vectors a step", 4),
    "classes": ("classes", "max_classes"),
    "scratch_units": ("scratch units", "scratch_units"),
    "sum_groups": ("sum groups", "sum_groups"),
    "enc_a_units": ("a slot's enc_a_units", "enc_a_units"),
    "enc_c_units": ("a slot's enc_c_units", "enc_c_units"),
    "pred_a_units": ("a slot's pred_a_units", "pred_a_units"),
    "pred_c_units": ("a slot's pred_c_units", "pred_c_units"),
    "joint_enc_units": ("a bank's joint_enc_units", "pred_c_units"),
}


@pytest.mark.parametrize(
    ("field", "name"),
    [(field, name) for field in FIELDS for name in BOTH if field != "joint_enc_units" or config(name).in_memory],
)
def test_a_program_beyond_the_configuration(field: str, name: str) -> None:
    """Vocabulary, layers and slots: the device is let go of before anything is written to its memory."""
    what, limit = FIELDS[field]
    device = FakeDevice(config(name))
    most = int(getattr(device.config, limit)) if isinstance(limit, str) else limit
    with pytest.raises(BadInput) as caught:
        Driver(device, changed(program(name), {field: most + 1}))
    low = 1 if field in ("classes", "vectors") else 0
    assert str(caught.value).splitlines() == [
        f"program: header: {what} is out of range",
        f"found {most + 1}, expected {low}..{most}",
    ]
    assert device.closed and not [entry for entry in device.log if entry[0] in ("write", "doorbell")]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("space", ["code", "weights", "scales", "biases", "embedding"])
def test_a_space_beyond_the_configuration(space: str, name: str) -> None:
    device, made = FakeDevice(config(name)), program(name)
    key = {"code": "code", "weights": "weight", "scales": "scale", "biases": "bias", "embedding": "embed"}[space]
    most = int(getattr(device.config, f"{key}_bytes"))
    sections = made.sections | {space: made.sections[space].ljust(most + 4, b"\0")}
    with pytest.raises(BadInput) as caught:
        Driver(device, Program(made.manifest, sections))
    assert f"section {space} is too long" in str(caught.value)
    assert f"found {most + 4} bytes, expected at most {most} in configuration {name}" in str(caught.value)
    assert device.closed and not [entry for entry in device.log if entry[0] in ("write", "doorbell")]


@pytest.mark.parametrize("name", BOTH)
def test_a_memory_that_is_too_small(name: str) -> None:
    """For rings, weights, all slots, and one command; a byte less than what the message asks for is refused too."""
    made = program(name)
    with pytest.raises(BadInput) as caught:
        Driver(FakeDevice(made.config, 1024), made, ring_log2=3)
    lines = str(caught.value).splitlines()
    assert lines[0] == "program: the program does not fit the device memory"
    assert lines[1].startswith("found 1024 bytes, expected ") and "staging" in lines[1]
    assert ("state" in lines[1]) == made.config.in_memory
    least = int(lines[1].split("expected ")[1].split(":")[0])
    device = FakeDevice(made.config, least - 1)
    with pytest.raises(BadInput, match="does not fit the device memory"):
        Driver(device, made, ring_log2=3)
    assert device.closed and not [entry for entry in device.log if entry[0] in ("write", "doorbell")]
    with Driver(FakeDevice(made.config, least), made, ring_log2=3) as driver:
        driver.encode([step(slot=driver.encoder_slots.count - 1)]).result()
