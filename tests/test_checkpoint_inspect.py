# SPDX-License-Identifier: Apache-2.0
"""Descriptions of checkpoints, good and bad."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import DEMO, saved

from gharial.checkpoint import describe, format_description

ALWAYS = {"file", "kind", "good", "problem", "bytes", "sha256"}


def test_demo() -> None:
    facts = describe(DEMO)
    assert facts["good"]
    assert facts["problem"] is None
    assert facts["bytes"] == DEMO.stat().st_size
    assert facts["sha256"] == hashlib.sha256(DEMO.read_bytes()).hexdigest()
    assert facts["parameters"] == 269_120
    assert facts["vocabulary"] == 255
    assert facts["window_ms"] == 25
    assert facts["macs"] == {"encode_step": 307_200, "joint": 16_384, "prediction_step": 36_864}
    nothing = {"order": None, "type": None, "problem": None}
    assert facts["ngram"] == {"embedded": False, "bytes": None, "scale": None, **nothing}
    assert facts["prefixes"] is None
    assert facts["notes"] == []
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    text = format_description(facts)
    assert text.startswith(f"{DEMO}: hardware checkpoint, good\n")
    for part in ("269,120", "255 tokens", "307,200 an encoder step", "25 ms", facts["sha256"], "1.15.0", "WER 16.72"):
        assert part in text
    assert all(line == line.rstrip() for line in text.split("\n"))


def test_word_error_rate(tmp_path: Path) -> None:
    """CAIMAN-ASR stores a fraction, and a million before the first validation."""
    for stored, told in ((0.0437, "WER 0.0437"), (0, "WER 0"), (10**6, None)):
        facts = describe(saved(tmp_path, lambda c, wer=stored: c.update(best_wer=wer)))  # type: ignore[misc]
        assert facts["good"] and facts["best_wer"] == (None if told is None else stored)
        line = next(line for line in format_description(facts).splitlines() if "step " in line)
        assert line.endswith(told) if told is not None else "WER" not in line


def test_unusual(tmp_path: Path) -> None:
    def change(c: dict[str, Any]) -> None:
        c["melalpha"] = 0.001
        c["best_wer"] = float("inf")
        c["ngram"] = {"binary": b"x" * 5000, "scale_factor": 0.05}
        c["prefix_spec"] = {"valid_prefix": "^(?:<a>|)$", "default_prefix": ""}
        c["rnnt_config"]["rnnt"]["hard_activation_functions"] = True
        c["new\x1b[2J"] = 1

    facts = describe(saved(tmp_path, change))
    assert facts["good"]
    json.dumps(facts, allow_nan=False)
    assert facts["best_wer"] is None
    assert facts["prefixes"]["prefixes"] == ("", "<a>")
    assert (facts["hard_sigmoid"], facts["hard_tanh"], facts["melalpha"]) == (True, True, 0.001)
    text = format_description(facts)
    for part in (
        "embedded, 5,000 bytes, not usable (this is no n-gram file), scale 0.05",
        "'', <a>; default ''",
        "rate 0.001",
        "hard activations",
        "not known",
    ):
        assert part in text
    assert "\x1b" not in text


@pytest.mark.parametrize(("pattern", "shown"), [("^$", "none"), ("^<a>+$", "^<a>+$")])
def test_prefixes(tmp_path: Path, pattern: str, shown: str) -> None:
    def change(c: dict[str, Any]) -> None:
        c["prefix_spec"] = {"valid_prefix": pattern, "default_prefix": None}

    text = format_description(describe(saved(tmp_path, change)))
    (line,) = [line for line in text.split("\n") if line.startswith("  prefixes")]
    assert line.split(maxsplit=1)[1] == shown


def test_first_version(tmp_path: Path) -> None:
    def change(c: dict[str, Any]) -> None:
        for key in ("version", "rnnt_config", "ngram", "epoch", "step", "best_wer"):
            del c[key]

    facts = describe(saved(tmp_path, change, protocol=2))
    assert facts["good"]
    assert "not stated" in format_description(facts)
    assert "no configuration" in facts["notes"][0]


def test_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n")
    facts = describe(path)
    assert not facts["good"]
    assert set(facts) == ALWAYS
    assert facts["bytes"] == path.stat().st_size
    assert "Git LFS pointer" in facts["problem"]["what"]
    json.dumps(facts)
    text = format_description(facts)
    assert text.startswith(f"{path}: hardware checkpoint, BAD\n")
    assert "git lfs pull" in text


@pytest.mark.parametrize("name", ["", "absent.pt"])
def test_what_cannot_be_read(tmp_path: Path, name: str) -> None:
    facts = describe(tmp_path / name)
    assert set(facts) == ALWAYS
    assert not facts["good"]
    assert (facts["bytes"], facts["sha256"]) == (None, None)
    assert "BAD" in format_description(facts)
