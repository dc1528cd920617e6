# SPDX-License-Identifier: Apache-2.0
"""Torch's zip format: the same objects as torch reads, and a clear refusal of everything else."""

from __future__ import annotations

import io
import pickle
import re
import struct
import tarfile
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_files import DEMO, GOOD, PROTO2, STOP, archive, named, patched, storage, tensor

from gharial.checkpoint.torchzip import load
from gharial.checkpoint.ziparchive import MAX_MEMBERS, ZipArchive
from gharial.errors import BadInput

DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
]


def same(ours: Any, truth: Any) -> None:
    """Asserts that our object is torch's, value by value and type by type."""
    if isinstance(truth, torch.Tensor):
        truth = truth.detach()
        expected = (truth.float() if truth.dtype == torch.bfloat16 else truth).numpy()
        assert isinstance(ours, np.ndarray)
        assert ours.dtype == expected.dtype
        assert ours.shape == expected.shape
        assert ours.tobytes() == expected.tobytes()
        assert not ours.flags.writeable
    elif isinstance(truth, dict):
        assert type(ours) is type(truth)
        assert list(ours) == list(truth)
        for key, value in truth.items():
            same(ours[key], value)
    elif isinstance(truth, (list, tuple)):
        assert type(ours) is type(truth)
        assert len(ours) == len(truth)
        for mine, theirs in zip(ours, truth, strict=True):
            same(mine, theirs)
    else:
        assert type(ours) is type(truth)
        assert ours == truth


def mixture() -> dict[Any, Any]:
    """Every kind of value and view that a checkpoint may hold."""
    base = torch.arange(60, dtype=torch.float32).reshape(5, 12)
    module = torch.nn.LSTM(3, 4, num_layers=2)
    patterns = {str(t): (torch.arange(-7, 23) * 37).to(t).reshape(2, 3, 5) for t in DTYPES}
    return {
        "types": patterns,
        "views": [base, base.t(), base[1:4, 2:9], base[:, 3], base[::2, ::3], base[4, 11]],
        "empty": torch.zeros(0, 7),
        "scalar": torch.tensor(3.5),
        "parameter": torch.nn.Parameter(torch.tensor([1.0, float("nan"), float("inf"), -0.0])),
        # Carries `_metadata` as an attribute of the OrderedDict.
        "module": module.state_dict(),
        "numbers": [0, 1, 255, 256, 65535, 65536, -1, 2**31, -(2**31) - 1, 2**70, -(2**200), 0.5, -1e300],
        "texts": ["", "a" * 300, "Ä€😀", "two\nlines"],
        "bytes": [b"", b"\x00\xff" * 200, bytes(range(256))],
        "nested": OrderedDict(a=[(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {}, [], None, True, False]),
        7: "integer key",
    }


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_reads_what_torch_reads(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "m.pt"
    torch.save(mixture(), path, pickle_protocol=protocol)
    same(load(path), torch.load(path, weights_only=False))


def test_bytes_of_protocol_2(tmp_path: Path) -> None:
    # Written as text to encode; torch's safe reader returns them too.
    path = tmp_path / "m.pt"
    torch.save({"model": bytes(range(256)) * 3}, path)
    assert load(path) == torch.load(path, weights_only=True)


@pytest.mark.parametrize("protocol", [2, 5])
def test_demo_equals_torch(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "demo.pt"
    truth = torch.load(DEMO, weights_only=False)
    torch.save(truth, path, pickle_protocol=protocol)
    # torch's own safe reader does not know protocol 5.
    same(load(path), torch.load(path, weights_only=protocol == 2))
    same(load(DEMO), truth)


def test_medium_equals_torch(data_dir: Path) -> None:
    path = data_dir / "models/demo-medium.hw.pt"
    same(load(path), torch.load(path, weights_only=False))


def test_shared_storage_stays_shared(tmp_path: Path) -> None:
    base = torch.zeros(1000)
    torch.save([base, base[10:20], base], tmp_path / "m.pt")
    whole, part, again = load(tmp_path / "m.pt")
    assert np.shares_memory(whole, part)
    assert np.shares_memory(whole, again)


def test_select_reads_only_what_remains(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    torch.save({"a": torch.ones(3), "b": torch.zeros(4)}, path)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        at = ZipArchive(io.BytesIO(data), len(data), "m").members[file.namelist()[0].split("/")[0] + "/data/1"].offset
    data[at] ^= 1
    path.write_bytes(data)
    chosen = load(path, lambda tree: [tree["a"], tree["b"].shape])
    assert chosen[0].tolist() == [1, 1, 1]
    assert chosen[1] == (4,)
    with pytest.raises(BadInput, match="data/1"):
        load(path)


def test_hand_made_archive_is_good(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(GOOD)
    assert load(path).tolist() == [1, 2]


def duplicate() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("a/data.pkl", PROTO2 + b"N.")
        file.writestr("a/data.pkl", PROTO2 + b"N.")
    return buffer.getvalue()


def encrypted() -> bytes:
    data = bytearray(GOOD)
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(signature) + offset] |= 1
    return bytes(data)


def legacy() -> bytes:
    buffer = io.BytesIO()
    torch.save({"a": torch.ones(2)}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(tarfile.TarInfo("storages"))
    return buffer.getvalue()


def crowded() -> bytes:
    return archive(PROTO2 + b"N.", extra={f"x{i}": b"" for i in range(MAX_MEMBERS)})


def script() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("m/data.pkl", PROTO2 + named("__torch__", "Net") + b")\x81.")
        file.writestr("m/code/__torch__.py", "class Net: ...", zipfile.ZIP_DEFLATED)
        file.writestr("m/constants.pkl", PROTO2 + b").")
        file.writestr("m/version", "3\n")
    return buffer.getvalue()


LFS = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 340123456\n"
)

BAD: dict[str, tuple[Any, str, str]] = {
    # name: (bytes or what makes them, pattern of the message's first two lines, pattern of the remedy)
    "empty": (b"", "the file is empty", "again"),
    "git-lfs": (LFS, "Git LFS pointer.*13. bytes for a file of 340123456", "git lfs pull"),
    "text": (b"epoch: 3\nloss: 0.1\n", "no torch checkpoint.*text file that starts with 'epoch: 3", "hw.pt"),
    "web-page": (b"\n<!DOCTYPE html><html>", "web page", "download the file itself"),
    "gzip": (b"\x1f\x8b\x08\x00" + bytes(60), "compressed file", "unpack"),
    "safetensors": (struct.pack("<Q", 60) + b'{"a":{}}' + bytes(60), "safetensors", "hw.pt"),
    "noise": (bytes(range(128, 256)), "no torch checkpoint.*bytes 80|pickle", ""),
    "legacy-torch": (legacy, "format before 1.6", "save it again"),
    "bare-pickle": (pickle.dumps({"a": 1}), "a bare pickle", "save it again"),
    "tar": (tar, "tar archive", "save it again"),
    "torchscript": (script, "TorchScript archive, which holds code", "state_dict"),
    "cut-zip": (GOOD[:-30], "cut short", "again"),
    "zip-head-alone": (b"PK\3\4", "too short for a zip", "again"),
    "appended": (GOOD + b"tail", "cut short, or something was appended", "again"),
    "comment": (patched(GOOD, b"PK\5\6", 20, b"\1\0"), "comment", "again"),
    "no-pickle": (archive(b"", extra={"data.pkl": None}), "no torch checkpoint", "hw.pt"),
    "two-pickles": (
        archive(PROTO2 + b"N.", extra={"../b/data.pkl": b""}, folder=".").replace(b"./../b/", b"aaaaaa/"),
        "2 members",
        "",
    ),
    "compressed": (archive(PROTO2 + b"N.", compression=zipfile.ZIP_DEFLATED), "is compressed.*method 8", "torch.save"),
    "encrypted": (encrypted, "is encrypted", "torch.save"),
    "headers-differ": (patched(GOOD, b"PK\1\2", 8, b"\1\0"), "contradicts the directory", "damaged"),
    "two-sizes": (patched(GOOD, b"PK\1\2", 20, b"\1"), "has two sizes", "damaged"),
    "duplicate-member": (duplicate, "two members have the name a/data.pkl", "again"),
    "header-moved": (patched(GOOD, b"PK\1\2", 42, b"\xff\xff\xff\x7f"), "lies outside the data", "damaged"),
    "header-of-another": (patched(GOOD, b"PK\1\2", 42, b"\0\0\0\0"), "is damaged|contradicts", "damaged"),
    "too-many-members": (crowded, "too many members", ""),
    "member-count": (patched(GOOD, b"PK\5\6", 8, b"\3\0\3\0"), "left over", ""),
    "no-version": (archive(PROTO2 + b"N.", extra={"version": None}), "unknown version.*nothing", "current torch"),
    "version-99": (archive(PROTO2 + b"N.", extra={"version": b"99\n"}), "unknown version.*99", "current torch"),
    "long-version": (archive(PROTO2 + b"N.", extra={"version": b"3" * 17}), "too long", ""),
    "big-endian": (archive(PROTO2 + b"N.", extra={"byteorder": b"big"}), "byte order.*big", "little-endian"),
    "no-storage": (archive(PROTO2 + storage("0", 2) + STOP), "data of a tensor are missing", ""),
    "long-storage": (archive(PROTO2 + storage("0", 1) + STOP, {"0": bytes(8)}), "wrong size.*8 bytes.*4 bytes", ""),
    "short-storage": (archive(PROTO2 + storage("0", 3) + STOP, {"0": bytes(8)}), "wrong size.*8 bytes.*12 bytes", ""),
    "bool-of-2": (
        archive(PROTO2 + tensor(storage("0", 1, "BoolStorage"), 0, (1,), (1,)) + STOP, {"0": b"\2"}),
        "bool tensor holds other bytes",
        "",
    ),
    "crc": (GOOD.replace(struct.pack("<2f", 1, 2), struct.pack("<2f", 1, 3)), "damaged.*CRC-32", "again"),
}


@pytest.mark.parametrize("name", BAD)
def test_refuses(tmp_path: Path, name: str) -> None:
    content, message, remedy = BAD[name]
    path = tmp_path / "bad.pt"
    path.write_bytes(content if isinstance(content, bytes) else content())
    with pytest.raises(BadInput) as caught:
        load(path)
    lines = str(caught.value).split("\n")
    assert len(lines) <= 3
    assert str(path) in lines[0]
    assert re.search(message, " ".join(lines[:2]))
    assert remedy in (caught.value.remedy or "")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        load(tmp_path / "absent.pt")


def test_sparse_giant_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "giant.pt"
    with path.open("wb") as file:
        file.write(b"PK\3\4")
        file.truncate(9 << 30)
    with pytest.raises(BadInput, match="too large"):
        load(path)


def test_member_names_touch_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.pt").write_bytes(archive(PROTO2 + b"N.", extra={"../../evil": b"x", "/etc/evil": b"x"}))
    assert load("m.pt") is None
    assert [p.name for p in tmp_path.iterdir()] == ["m.pt"]
    assert not (tmp_path.parent / "evil").exists()


def test_terminal_escapes_are_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "m.pt").write_bytes(b"\x1b[31m red and more text\n" * 3)
    with pytest.raises(BadInput) as caught:
        load(tmp_path / "m.pt")
    assert "\x1b" not in str(caught.value)
