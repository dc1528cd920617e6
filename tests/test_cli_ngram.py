# SPDX-License-Identifier: Apache-2.0
"""`gharial ngram` and `gharial inspect` of n-grams: what they print, their exit codes; KenLM's programs found."""

from __future__ import annotations

import hashlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from checkpoint_files import DEMO, complete
from command import Run, environment
from ngram_files import ARPA, COUNTS, KINDS, OTHER, binary, copy, demo_pieces

from gharial.checkpoint.sentencepiece_model import count_pieces
from gharial.ngram import read_file, tools

PIECES = demo_pieces()
OURS = hashlib.sha256(PIECES).hexdigest()


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.model"
    path.write_bytes(PIECES)
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another SentencePiece model, as far as its bytes go: a piece more."""
    path = tmp_path / "other.model"
    path.write_bytes(PIECES + b"\x0a\x03\x0a\x01x")
    assert count_pieces(path.read_bytes(), "") == count_pieces(PIECES, "") + 1
    return path


def test_append_and_check(tmp_path: Path, cli: Run, tokens: Path, other: Path) -> None:
    path = copy(tmp_path)
    outcome = cli("ngram", "append", path, "--model", DEMO)
    assert (outcome.code, outcome.err) == (0, "") and outcome.out == f"{path}: marked, sha256:{OURS}\n"
    outcome = cli("ngram", "append", path, "--model", tokens)
    assert outcome.code == 0 and "marked already" in outcome.out
    for model in (DEMO, tokens):
        outcome = cli("ngram", "check", path, "--model", model)
        assert (outcome.code, outcome.err) == (0, "") and OURS in outcome.out
    theirs = hashlib.sha256(other.read_bytes()).hexdigest()
    cli("ngram", "check", path, "--model", other).refused(str(path), OURS, theirs, "another SentencePiece model")
    cli("ngram", "append", path, "--model", other).refused(str(path), OURS, theirs, "--force")
    outcome = cli("ngram", "append", path, "--model", other, "--force", "--json")
    assert json.loads(outcome.out) == {"file": str(path), "mark": f"sha256:{theirs}", "written": True}


def test_a_mark_for_a_model_of_other_pieces_is_put_with_a_note(tmp_path: Path, cli: Run) -> None:
    """From then on nothing else would tell that its words score as unknown ones."""
    path, model = copy(tmp_path), tmp_path / "x.model"
    model.write_bytes(b"\x0a\x09\x0a\x05<unk>\x18\x02" + b"\x0a\x03\x0a\x01f")
    outcome = cli("ngram", "append", path, "--model", model)
    assert outcome.code == 0 and "only 1 of its 18 words are pieces of this model" in outcome.err, outcome
    assert not cli("ngram", "append", path, "--model", model).err


def test_check_json(tmp_path: Path, cli: Run, tokens: Path, other: Path) -> None:
    path = copy(tmp_path)
    outcome = cli("ngram", "check", path, "--model", tokens, "--json")
    assert outcome.code == 1 and json.loads(outcome.out)["result"] == "not marked"
    cli("ngram", "append", path, "--model", tokens)
    outcome = cli("ngram", "check", path, "--model", tokens, "--json")
    expected = {"file": str(path), "result": "same", "mark": f"sha256:{OURS}", "model": f"sha256:{OURS}"}
    assert outcome.code == 0 and json.loads(outcome.out) == expected
    outcome = cli("ngram", "check", path, "--model", other, "--json")
    assert outcome.code == 2 and json.loads(outcome.out)["result"] == "other"
    cli("ngram", "check", ARPA, "--model", tokens, "--json").refused("ARPA")


def test_check_of_a_file_without_a_mark(tmp_path: Path, cli: Run, tokens: Path) -> None:
    path = copy(tmp_path)
    outcome = cli("ngram", "check", path, "--model", tokens)
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1 and "is not marked" in outcome.err and "gharial ngram append" in outcome.err
    assert f"{COUNTS[0] - 3} of its {COUNTS[0] - 3} words are pieces of this model" in outcome.out


def test_info(tmp_path: Path, cli: Run, tokens: Path) -> None:
    for kind, name in KINDS.items():
        outcome = cli("ngram", "info", binary(kind))
        assert outcome.code == 0 and f"{name}" in outcome.out and "not marked" in outcome.out
        assert "order       3; n-grams of each order: 21, 41, 42" in outcome.out
    path = copy(tmp_path)
    cli("ngram", "append", path, "--model", tokens)
    outcome = cli("ngram", "info", path, "--model", DEMO, "--json")
    facts = json.loads(outcome.out)
    assert facts["mark"] == {"algorithm": "sha256", "digest": OURS, "layout": "gharial"}
    assert facts["counts"] == list(COUNTS) and facts["for_model"] is True and facts["good"]
    assert facts["words"][:4] == ["<unk>", "<s>", "</s>", "▁go"] and facts["vocabulary"] == COUNTS[0]
    assert "this model's" in cli("ngram", "info", path, "--model", DEMO).out
    outcome = cli("ngram", "info", path, ARPA)
    assert outcome.code == 2 and "good" in outcome.out and "BAD" in outcome.out and "ARPA" in outcome.out


def test_words_cannot_steer_a_terminal(tmp_path: Path, cli: Run) -> None:
    path = copy(tmp_path)
    data = path.read_bytes()
    at = data.index("▁le\0".encode())
    path.write_bytes(data[:at] + b"\x1b[31m" + data[at + 5 :])
    outcome = cli("ngram", "info", path)
    assert outcome.code == 0 and "\x1b" not in outcome.out and "\\x1b[31m" in outcome.out


def test_inspect(tmp_path: Path, cli: Run, tokens: Path) -> None:
    path = copy(tmp_path)
    assert cli("inspect", path).out == cli("ngram", "info", path).out
    path.write_bytes(path.read_bytes()[:600])
    outcome = cli("inspect", path, "--json")
    facts = json.loads(outcome.out)
    assert outcome.code == 2 and facts["kind"] == "n-gram" and facts["problem"]["what"] == "the file is truncated"
    assert "build_binary" in cli("inspect", ARPA).out or "gharial ngram build" in cli("inspect", ARPA).out


def test_models_that_are_none(tmp_path: Path, cli: Run) -> None:
    nothing = tmp_path / "nothing.model"
    for data in (b"", b"plain text", b"\x0a"):
        nothing.write_bytes(data)
        cli("ngram", "check", binary(), "--model", nothing).refused(str(nothing), "SentencePiece model")
    cli("ngram", "check", binary(), "--model", tmp_path / "none").refused("no such file")
    cli("ngram", "check", tmp_path / "none", "--model", DEMO).refused("no such file")


def test_where_the_programs_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The named folder, PATH, the cache, in this order; a named folder without them is an error."""
    for place in ("named/bin", "path", "cache/gharial/kenlm-0.3.0"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / "lmplz").write_text("#!/bin/sh\n")
        (folder / "lmplz").chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("GHARIAL_KENLM", str(tmp_path / "named"))
    assert tools.find("lmplz") == tmp_path / "named/bin/lmplz"
    with pytest.raises(tools.BadInput, match="GHARIAL_KENLM"):
        tools.find("build_binary")
    # What is run must not be looked for on PATH again, and a folder is no program.
    monkeypatch.chdir(tmp_path / "named/bin")
    monkeypatch.setenv("GHARIAL_KENLM", ".")
    assert tools.find("lmplz") == tmp_path / "named/bin/lmplz"
    (tmp_path / "named/bin/build_binary").mkdir()
    with pytest.raises(tools.BadInput, match="GHARIAL_KENLM") as caught:
        tools.find("build_binary")
    complete(caught.value)
    monkeypatch.delenv("GHARIAL_KENLM")
    monkeypatch.setenv("PATH", ".")
    assert tools.find("lmplz") == tmp_path / "named/bin/lmplz"
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert tools.find("lmplz") == tmp_path / "path/lmplz"
    (tmp_path / "path/lmplz").unlink()
    assert tools.find("lmplz") == tmp_path / "cache/gharial/kenlm-0.3.0/lmplz"
    with pytest.raises(tools.BadInput, match="--build-tools"):
        tools.find("build_binary")


def test_building_the_programs_needs_things(
    tmp_path: Path, cli: Run, tokens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without KenLM, cmake or the right package: what is missing, and where it is to be had."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GHARIAL_KENLM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    out = tmp_path / "o.binary"
    words = ("ngram", "build", ARPA, "--model", tokens, "-o", out)
    cli(*words).refused("KenLM's lmplz is needed", "--build-tools", "GHARIAL_KENLM")
    cli("ngram", "build", "--build-tools").refused("no cmake", "apt-get install cmake")
    assert not out.exists()
    for name in ("cmake", "c++"):
        program = tmp_path / "empty" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\necho 'Could NOT find Boost (missing: thread)'\nexit 1\n")
        program.chmod(0o755)
    wrong = tmp_path / "kenlm-0.3.0.tar.gz"
    wrong.write_bytes(b"not it")
    cli("ngram", "build", "--build-tools", "--source", wrong, "--json").refused("source package", tools.SHA256)
    with tarfile.open(wrong, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("kenlm-0.3.0/CMakeLists.txt"), io.BytesIO())
    monkeypatch.setattr(tools, "SHA256", hashlib.sha256(wrong.read_bytes()).hexdigest())
    outcome = cli("ngram", "build", "--build-tools", "--source", wrong)
    assert outcome.code == 2 and "no Boost" in outcome.err and "libboost-thread-dev" in outcome.err
    assert list((tmp_path / "cache" / "gharial").iterdir()) == []
    cli("ngram", "build", ARPA, "--source", wrong).refused("--build-tools")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "TEXT"),
        (("a.txt",), "--model"),
        (("a.txt", "--model", DEMO), "--output"),
        (("a.txt", "--model", DEMO, "-o", "o", "--order", "7"), "2 to 6"),
        (("a.txt", "--model", DEMO, "-o", "o", "--order", "1"), "2 to 6"),
        (("a.txt", "--model", DEMO, "-o", "o", "--quantise", "8"), "only a trie"),
        (("a.txt", "--model", DEMO, "-o", "o", "--type", "trie", "--quantise", "1"), "2 to 25"),
        (("a.txt", "--model", DEMO, "-o", "o", "--prune", "1,0"), "must not fall"),
        (("a.txt", "--model", DEMO, "-o", "o", "--prune", "0,a"), "commas"),
        (("a.txt", "--model", DEMO, "-o", "o", "--prune", "0,0,0,0,0"), "one an order"),
        (("a.txt", "--model", DEMO, "-o", "o", "--memory", "much"), "no amount of memory"),
        ((ARPA, "--model", DEMO, "-o", ARPA), "written over what is read"),
        ((ARPA, "--model", DEMO, "-o", "o", "--arpa", "./o"), "written over by the binary"),
        ((ARPA, "--model", DEMO, "-o", "none/o"), "the folder does not exist"),
    ],
)
def test_build_usage(cli: Run, words: tuple[object, ...], part: str) -> None:
    outcome = cli("ngram", "build", *words)
    outcome.refused(part)
    _, facts, remedy = outcome.err.splitlines()
    assert facts.startswith("found ") and ", expected " in facts and remedy


def test_program_as_model(tmp_path: Path, cli: Run) -> None:
    program = tmp_path / "m.gprog"
    assert cli("compile", DEMO, "-o", program).code == 0
    path = copy(tmp_path)
    assert cli("ngram", "append", path, "--model", program).code == 0
    mark = read_file(path).mark
    assert mark is not None and mark.digest.hex() == OURS and not mark.fits(OTHER)


@pytest.mark.parametrize(
    ("script", "part"),
    [
        # As KenLM's programs say it; their words must not be written to the disk that is full.
        ('ls -A "$(dirname "$7")" >&2; echo "No space left on device in here" >&2; kill -ABRT $$', "No space left"),
        ("kill -BUS $$", "no space left on device"),
    ],
)
def test_a_full_disk_is_told(
    tmp_path: Path, cli: Run, monkeypatch: pytest.MonkeyPatch, tokens: Path, script: str, part: str
) -> None:
    (tmp_path / "kenlm").mkdir()
    for name in tools.TOOLS:
        (tmp_path / "kenlm" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "kenlm" / name).chmod(0o755)
    monkeypatch.setenv("GHARIAL_KENLM", str(tmp_path / "kenlm"))
    (tmp_path / "t.txt").write_text("go left\n")
    outcome = cli("ngram", "build", tmp_path / "t.txt", "--model", tokens, "-o", tmp_path / "o")
    outcome.refused("lmplz failed (SIG", part, "nothing was left behind", code=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kenlm", "t.txt", "tokens.model"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_build_that_is_ended_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """Neither its folder nor KenLM's program, here one that does not end by itself."""
    tool = tmp_path / "kenlm" / "lmplz"
    tool.parent.mkdir()
    pipe = tool.parent / "pipe"
    os.mkfifo(pipe)
    tool.write_text(f"#!/bin/sh\nexec 3> {pipe}\necho begun >&3\nexec sleep 600\n")
    tool.chmod(0o755)
    (tool.parent / "build_binary").symlink_to(tool)
    work = tmp_path / "work"
    work.mkdir()
    (work / "t.txt").write_text("go left\n")
    command = [sys.executable, "-m", "gharial", "ngram", "build", "t.txt", "--model", str(DEMO), "-o", "o"]
    alive = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    running = subprocess.Popen(
        command,
        cwd=work,
        env=environment(GHARIAL_KENLM=str(tool.parent)),
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    # The program alone has the other end. Its process number may outlive it: whoever adopts it reads its end late.
    assert select.select([alive], [], [], 60)[0] and os.read(alive, 16) == b"begun\n"
    running.send_signal(number)
    assert running.wait(60) == 128 + number
    assert [path.name for path in work.iterdir()] == ["t.txt"]
    assert select.select([alive], [], [], 60)[0] and os.read(alive, 16) == b""
    os.close(alive)


def test_a_signal_while_a_program_starts_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def interrupted(*words: object, **options: object) -> object:
        begun.append(popen(*words, **options))
        signal.raise_signal(signal.SIGTERM)
        return begun[0]

    def handle(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(signal.SIGTERM, handle)
    try:
        nothing = subprocess.DEVNULL
        with pytest.raises(KeyboardInterrupt), tools.running(["sleep", "600"], nothing, nothing, nothing):
            pytest.fail("the signal was lost")
        assert signal.getsignal(signal.SIGTERM) is handle
    finally:
        signal.signal(signal.SIGTERM, before)
    assert begun[0].returncode == -signal.SIGKILL
