# SPDX-License-Identifier: Apache-2.0
"""Files opened (plain ones only) and written (whole or not at all)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import complete

from gharial.cli.paths import check_output
from gharial.errors import BadInput, GharialError
from gharial.files import open_regular, write_atomically


def refused(path: Path | str) -> str:
    with pytest.raises(BadInput) as caught:
        open_regular(path, "an audio file", "name another")
    text = str(caught.value)
    assert 1 <= len(text.splitlines()) <= 3
    return text


def test_what_is_no_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody writes: waiting for it would hang
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, words in (
        ("missing", "no such file\nfound nothing, expected an audio file\nname another"),
        ("", "is a directory\nfound a folder, expected an audio file\nname another"),
        ("pipe", "is not a plain file\nfound a device or pipe, expected an audio file\nname another"),
        ("loop", "cannot be opened\nfound Too many levels of symbolic links, expected an audio file\nname another"),
    ):
        path = tmp_path / name
        assert refused(path) == f"{path}: {words}"
    assert "not a plain file" in refused("/dev/null")
    with pytest.raises(BadInput) as caught:
        open_regular("/dev/null", "a file")
    complete(caught.value)
    assert refused("a\0b").startswith("a\\0b: cannot be opened\n")
    assert refused("").startswith("'': no such file")


def test_every_refusal_says_what_to_do(tmp_path: Path) -> None:
    """Where the caller has nothing better to say, too."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("missing", "", "pipe", "dangling", "loop"):
        with pytest.raises(BadInput) as caught:
            open_regular(tmp_path / name, "an audio file")
        complete(caught.value)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "private"
    path.write_bytes(b"x")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gharial.files.os.open", refuse)  # root may read everything
    told = f"{path}: cannot be opened\nfound Permission denied, expected an audio file\nname another"
    assert refused(path) == told


def test_a_plain_file_or_a_link_to_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").symlink_to("a")
    for name in ("a", "b"):
        with open_regular(tmp_path / name, "a file") as file:
            assert file.read() == b"x"


# Writing


def no_space() -> Any:
    yield b"half of it"
    raise OSError(28, "No space left on device")


def test_a_failed_write_leaves_all_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(GharialError, match="No space left"):
        write_atomically(target, no_space())
    assert list(tmp_path.iterdir()) == []
    target.write_bytes(b"the old one")
    with pytest.raises(GharialError, match="No space left"):
        write_atomically(target, no_space())
    assert [p.name for p in tmp_path.iterdir()] == ["out"] and target.read_bytes() == b"the old one"


def test_an_interrupted_write_leaves_all_as_it_was(tmp_path: Path) -> None:
    def interrupted() -> Any:
        yield b"half of it"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "out", interrupted())
    assert list(tmp_path.iterdir()) == []


def test_a_real_limit_of_the_system(tmp_path: Path) -> None:
    """A file size limit makes the write itself fail, as a full disk does."""
    script = (
        "import resource, sys\n"
        "from gharial.errors import GharialError\n"
        "from gharial.files import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: write_atomically(sys.argv[1], iter([bytes(9999)] * 9))\n"
        "except GharialError as error: print(error); sys.exit(error.exit_code)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script, str(tmp_path / "out")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "cannot be written" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_where_a_file_cannot_go(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "gone").symlink_to(tmp_path / "no" / "file")
    other_end, pipe = os.pipe()
    for target, words in (
        (tmp_path, "not a file"),
        (tmp_path / "a" / "b", "folder does not exist"),
        (tmp_path / "gone", "folder does not exist"),
        ("/dev/null", "not a file"),
        (tmp_path / "loop", "there can be no file of this name|not a file"),
        (tmp_path / "loop" / "b", "there can be no file of this name|folder does not exist"),
        (tmp_path / ("n" * 300), "File name too long"),
        (f"{tmp_path}/new/", "names a folder, not a file"),
        (f"{tmp_path}/new/.", "names a folder, not a file"),
        (f"/dev/fd/{pipe}", "not a file"),
        ("a\0b", "there can be no file of this name"),
    ):
        with pytest.raises(BadInput, match=words) as caught:
            write_atomically(target, iter([b"x"]))
        complete(caught.value)
        with pytest.raises(BadInput, match=words):
            check_output(str(target))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gone", "loop"]
    os.close(pipe)
    os.close(other_end)


def test_a_slash_behind_a_file_overwrites_it_not(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"old")
    with pytest.raises(BadInput, match="names a folder, not a file"):
        write_atomically(f"{tmp_path}/kept/", iter([b"new"]))
    assert (tmp_path / "kept").read_bytes() == b"old"


@pytest.mark.parametrize("letter", ["n", "é", "\U0001d538"])
def test_the_longest_name(tmp_path: Path, letter: str) -> None:
    path = tmp_path / (letter * (255 // len(letter.encode())))
    write_atomically(path, iter([b"x"]))
    assert path.read_bytes() == b"x" and list(tmp_path.iterdir()) == [path]


def test_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "real", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, iter([b"n", b"ew"]))
    assert link.is_symlink() and target.read_bytes() == b"new"


def test_files_get_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "p", iter([b"x"]))
    finally:
        os.umask(before)
    assert (tmp_path / "p").stat().st_mode & 0o777 == 0o640
