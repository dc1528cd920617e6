# SPDX-License-Identifier: Apache-2.0
"""The program file: written and read back, damaged, cut short, of other versions."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from small_program import assemble

from gharial.errors import BadInput
from gharial.program import Program, describe, format_description
from gharial.program.container import HEAD, MAGIC, MANIFEST_LIMIT, VERSION
from gharial.program.manifest import OTHER_LIMIT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "small.gprog"
    assemble().write(file)
    return file


def refused(path: Path, data: bytes | None = None) -> BadInput:
    """Reading the file must fail with a good message."""
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(BadInput) as caught:
        Program.read(path)
    error = caught.value
    assert str(path) in str(error) and 1 <= len(str(error).splitlines()) <= 3
    assert error.exit_code == 2
    return error


def with_manifest(change: Any) -> bytes:
    """The good file with its manifest changed, the digest right again, and the sections where they were."""
    data = assemble().to_bytes()
    _, _, length, _ = HEAD.unpack_from(data)
    table = json.loads(data[HEAD.size : HEAD.size + length])
    first = min(entry["offset"] for entry in table["sections"].values())
    change(table)
    text = json.dumps(table, separators=(",", ":")).encode()
    room = first - HEAD.size
    assert len(text) <= room, "choose a change that does not make the manifest longer"
    text = text.ljust(length)
    head = HEAD.pack(MAGIC, VERSION, len(text), hashlib.sha256(text).digest())
    return (head + text).ljust(first, b"\0") + data[first:]


def test_what_is_written_is_read(path: Path) -> None:
    program, original = Program.read(path), assemble()
    assert program.sections == original.sections
    assert {k: v for k, v in program.manifest.items() if k != "sections"} == original.manifest
    assert program.path == str(path)
    assert path.read_bytes() == original.to_bytes() == program.to_bytes()
    for entry in program.manifest["sections"].values():
        assert entry["offset"] % 64 == 0
    last = max(entry["offset"] + entry["bytes"] for entry in program.manifest["sections"].values())
    assert path.stat().st_size == last


def test_an_empty_section_is_kept(tmp_path: Path) -> None:
    program = assemble()
    for name in ("a", "z"):
        program.sections[name] = b""
    program.write(tmp_path / "p")
    assert Program.read(tmp_path / "p").sections["a"] == b""


def test_unknown_keys_and_sections_are_allowed(tmp_path: Path) -> None:
    program = assemble()
    program.manifest["colour"] = {"deep": [1, None]}
    program.manifest["features"]["colour"] = 3
    program.sections["notes"] = b"text"
    program.write(tmp_path / "p")
    again = Program.read(tmp_path / "p")
    assert again.manifest["colour"] == {"deep": [1, None]} and again.sections["notes"] == b"text"


def test_missing_empty_and_foreign(tmp_path: Path) -> None:
    assert "no such file" in str(refused(tmp_path / "absent"))
    file = tmp_path / "file"
    assert "empty" in str(refused(file, b""))
    assert "not a Gharial program" in str(refused(file, b"GHARIAX\0" + bytes(100)))
    assert "git lfs pull" in str(refused(file, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"))


def test_every_truncation_is_seen(path: Path) -> None:
    data = path.read_bytes()
    lengths = {*range(1, 64), *range(64, len(data), 997), len(data) - 1}
    for length in sorted(lengths):
        assert "truncated" in str(refused(path, data[:length])), length


def test_bytes_behind_the_end(path: Path) -> None:
    assert "behind the last section" in str(refused(path, path.read_bytes() + b"\0"))


def test_any_changed_byte_is_seen(path: Path, seed: int) -> None:
    """Head and manifest byte by byte, and samples of the rest."""
    data = path.read_bytes()
    _, _, length, _ = HEAD.unpack_from(data)
    rest = range(HEAD.size + length, len(data))
    places = [*range(HEAD.size + 64), *random.Random(seed).sample(rest, 200)]
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 1 << random.Random(seed + place).randrange(8)
        refused(path, bytes(broken))


def test_other_container_version(path: Path) -> None:
    data = path.read_bytes()
    error = refused(path, data[:8] + (2).to_bytes(4, "little") + data[12:])
    assert (error.found, error.expected) == (2, 1) and "compile again" in str(error)


@pytest.mark.parametrize("version", ["1.2", "0.9", "2.0"])
def test_other_interface_version(path: Path, version: str) -> None:
    error = refused(path, with_manifest(lambda m: m.update(interface_version=version)))
    assert (error.found, error.expected) == (version, "1.1") and "compile again" in str(error)


def test_other_configuration(path: Path) -> None:
    def renamed(manifest: dict[str, Any]) -> None:
        manifest["config"]["name"] = "huge"

    assert "unknown configuration" in str(refused(path, with_manifest(renamed)))

    def changed(manifest: dict[str, Any]) -> None:
        manifest["config"]["id"] = 7

    error = refused(path, with_manifest(changed))
    assert "0x00000007" in str(error) and "compile again" in str(error)


def test_sizes_are_checked_before_anything_is_read(path: Path) -> None:
    """Sections that claim to be huge are refused by their size, not by an attempt to read them."""

    def huge(manifest: dict[str, Any]) -> None:
        manifest["sections"]["weights"]["bytes"] = 1 << 39

    assert "section weights is too long" in str(refused(path, with_manifest(huge)))

    def other(manifest: dict[str, Any]) -> None:
        manifest["sections"]["sentencepiece"]["bytes"] = OTHER_LIMIT + 1

    assert "section sentencepiece is too long" in str(refused(path, with_manifest(other)))

    def beyond(manifest: dict[str, Any]) -> None:
        manifest["sections"]["sentencepiece"]["bytes"] = OTHER_LIMIT

    assert "truncated" in str(refused(path, with_manifest(beyond)))
    data = assemble().to_bytes()
    head = HEAD.pack(MAGIC, VERSION, MANIFEST_LIMIT + 1, bytes(32))
    assert "manifest is too long" in str(refused(path, head + data))


def test_sections_out_of_place(path: Path) -> None:
    def overlapping(manifest: dict[str, Any]) -> None:
        manifest["sections"]["weights"]["offset"] = manifest["sections"]["code"]["offset"]

    assert "out of place" in str(refused(path, with_manifest(overlapping)))

    def without(manifest: dict[str, Any]) -> None:
        del manifest["sections"]["weights"]

    assert "a section is missing" in str(refused(path, with_manifest(without)))


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"[1]",
        b'{"a": NaN}',
        b'{"a": 1, "a": 1}',
        b'{"a": "\xff"}',
        b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
    ids=["cut", "list", "nan", "twice", "utf8", "deep", "long number"],
)
def test_bad_json(path: Path, text: bytes) -> None:
    head = HEAD.pack(MAGIC, VERSION, len(text), hashlib.sha256(text).digest())
    assert "the manifest is not" in str(refused(path, head + text))


# Describing


def test_describe(path: Path) -> None:
    found = describe(path, instructions=True)
    json.dumps(found)
    assert found["kind"] == "program" and found["bytes"] == path.stat().st_size
    assert found["config"]["name"] == "tiny" and found["interface_version"] == "1.1"
    assert found["sections"]["weights"] == {
        "bytes": 832,
        "capacity": 262144,
        "percent": 0.3,
        "sha256": hashlib.sha256(assemble().sections["weights"]).hexdigest(),
    }
    assert found["sections"]["sentencepiece"]["percent"] is None
    assert found["use"]["scratch"] == {"used": 9, "of": 512, "percent": 1.8}
    assert found["slots"]["encoder"] == {"bytes": 2 * 4 + 10 * 8, "slots": 16}
    assert found["code"] == {"predict": 4, "encode": 8, "joint": 2}
    lines = found["instructions"]
    assert len(lines) == 14
    assert lines[0].startswith("predict   0  LOOKUP  row of the token from 0, 1 units, to scratch[4]")
    assert "CELL c[0] qc 11 qh 7 to scratch[3] and new[0], if vectors > 1, after 2" in lines[8]
    text = format_description(found)
    for word in ("small", "tiny", "0.3 % of 262144", "predict 4, encode 8, joint 2", lines[5]):
        assert word in text
    assert "instructions" not in describe(path)
