# SPDX-License-Identifier: Apache-2.0
"""`gharial inspect` on every kind of file, good and bad: docs/inspect.md, row by row."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_files import DEMO, demo, saved
from command import Run
from ngram_files import copy
from prefix_models import DEFAULT, PATTERN, SYMBOLS, VALID, checkpoint, vocabulary
from recordings import SHORT

from gharial.devices.emulator import open_emulator
from gharial.driver import Driver
from gharial.inspect import Description, describe
from gharial.isa.configs import configs
from gharial.model import compile_model, demo_model
from gharial.program import Program
from gharial.trace import trace_recording, write_trace

ALWAYS = ("file", "kind", "good", "problem")


def told(path: Path, kind: str, good: bool, *parts: str) -> dict[str, Any]:
    """Facts of a file, with what holds for every description checked."""
    found = describe(path)
    assert isinstance(found, Description) and found.good == good
    facts = found.facts
    assert json.loads(json.dumps(facts, allow_nan=False)).keys() == facts.keys()
    assert [facts[key] for key in ALWAYS[:3]] == [str(path), kind, good]
    assert (facts["problem"] is None) == good
    lines = found.text.split("\n")
    assert lines[0] == f"{path}: {kind}, good" if good else lines[0] == f"{path}: {kind}, BAD"
    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)
    for part in parts:
        assert part in found.text, found.text
    if not good:
        assert len(lines) <= 4
    return facts


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("calibration")
    shutil.copy(SHORT, folder)
    return compile_model(demo_model(), "ecp5-85f", folder)


def test_a_checkpoint_and_where_it_runs(program: Program) -> None:
    facts = told(DEMO, "hardware checkpoint", True, "ecp5-85f       default", "one needs", "user-defined")
    found = {one["config"]: one for one in facts["configurations"]}
    assert list(found) == list(configs()) and all(one["fits"] for one in found.values())
    assert [name for name, one in found.items() if one["default"]] == ["ecp5-85f"]
    small = found["ecp5-85f"]
    assert small["bytes"]["weights"] == len(program.section("weights"))
    assert (small["slots"]["encoder"]["slots"], small["memory"]) == (8, None)
    assert small["pace"]["live_clocks"] == round(1200 + 1.2 * 64 + 0.2 * 144) and small["pace"]["live_streams"] is None
    card = found["u50"]
    assert card["memory"]["needed"] == sum(card["memory"][part] for part in ("weights", "embedding", "state"))
    assert card["memory"]["there"] == configs()["u50"].window_bytes
    assert card["pace"]["live_streams"] == 4096  # it has no more slots
    assert facts["pieces"] == {"normal": 254, "unknown": 1} and facts["step_ms"] == 60


def test_prefixes_and_symbols(tmp_path: Path) -> None:
    facts = told(checkpoint(tmp_path, 1), "hardware checkpoint", True, f"{VALID[-1]}; default {DEFAULT}", "<EOS>")
    assert facts["symbols"] == list(SYMBOLS) and facts["pieces"]["user_defined"] == len(SYMBOLS)
    assert facts["prefixes"]["pattern"] == PATTERN
    path = tmp_path / "m.gprog"
    (tmp_path / "recordings").mkdir()
    shutil.copy(SHORT, tmp_path / "recordings")
    compile_model(tmp_path / "changed.hw.pt", "tiny", tmp_path / "recordings").write(path)
    made = describe(path)
    assert made.good and made.facts["symbols"] == list(SYMBOLS)
    assert made.facts["prefixes"] == facts["prefixes"]
    assert made.facts["sentencepiece_sha256"] == facts["sentencepiece_sha256"]
    for part in (f"default {DEFAULT}", "48 tokens", "user-defined", "on chip", "one needs"):
        assert part in made.text


def test_a_program_for_a_card_tells_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.gprog"
    made = compile_model(demo_model(), "u50")
    made.write(path)
    found = describe(path)
    with Driver(open_emulator(made.config), made) as driver:
        assert driver.plan.state is not None
        assert found.facts["memory"]["state"] == driver.plan.state.size
    assert "4,096 at most" in found.text and "all slots" in found.text


def test_a_training_checkpoint_says_how_to_export_it(tmp_path: Path) -> None:
    top = demo()
    path = tmp_path / "training.pt"
    state = {f"module.{name}": tensor for name, tensor in top["state_dict"].items()}
    whole = {"ema_state_dict": state, "state_dict": state, "optimizer": {}, "step": 9, "logmel_norm_weight": 0.5}
    torch.save(whole, path)
    facts = told(path, "training checkpoint", True, "269,120", f"gharial export --ckpt {path}", "0.5, not yet 1")
    assert (facts["step"], facts["vocabulary"], facts["melstats"]) == (9, 255, False)
    for weight in (float("inf"), torch.tensor(float("nan"))):
        torch.save(whole | {"logmel_norm_weight": weight}, path)
        facts = told(path, "training checkpoint", True, f"{float(weight):g}, not yet 1")
        assert facts["logmel_norm_weight"] is None
    odd = tmp_path / "$(touch gone) it's.pt"
    torch.save(whole, odd)
    told(odd, "training checkpoint", True, f"gharial export --ckpt {shlex.quote(str(odd))} ")
    torch.save(whole | {"prefix_spec": {"valid_prefix": 3}}, path)
    told(path, "training checkpoint", False, "prefix_spec: valid_prefix has a value")
    del state["module.joint_enc.bias"]
    torch.save(whole, path)
    told(path, "training checkpoint", False, "joint_enc.bias")


def test_a_sentencepiece_model(tmp_path: Path) -> None:
    path = tmp_path / "en.model"
    path.write_bytes(vocabulary())
    facts = told(path, "SentencePiece model", True, "models of 49 classes", "<lang_en>")
    assert facts["sentencepiece_sha256"] == facts["sha256"] and sum(facts["pieces"].values()) == 48
    path.write_bytes(vocabulary()[:-9])
    told(path, "unknown", False)


def test_an_ngram(tmp_path: Path) -> None:
    facts = told(copy(tmp_path), "n-gram", True, "not marked")
    assert facts["order"] > 1
    (tmp_path / "words.arpa").write_text("\\data\\\n")
    told(tmp_path / "words.arpa", "n-gram", False, "ARPA file", "gharial ngram build")


def test_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(CONFIGURATION)
    facts = told(path, "training configuration", True, "240 inputs, 2 + 6 LSTM layers of 1024", "--config", "en.model")
    assert facts["inference"]["rnnt"]["enc_n_hid"] == 1024
    (tmp_path / "train.txt").write_text(CONFIGURATION)
    told(tmp_path / "train.txt", "training configuration", True)
    odd = tmp_path / "two words; true.yaml"
    odd.write_text(CONFIGURATION)
    told(odd, "training configuration", True, f"--config {shlex.quote(str(odd))} -o")
    path.write_text(CONFIGURATION.replace("enc_n_hid: 1024", "enc_n_hid: wide"))
    told(path, "YAML file", False, "enc_n_hid")
    path.write_text("a: [1")
    told(path, "YAML file", False)


@pytest.mark.parametrize(
    "spec", ["2020-01-01", ".nan", "&a [*a]", "!!set {a}", "!!binary aGVs", "{2020-01-01: a}", "*b8"]
)
def test_a_configuration_with_odd_prefixes(tmp_path: Path, spec: str) -> None:
    """What YAML can say and JSON cannot, or what would be gigabytes of it."""
    path = tmp_path / "train.yaml"
    levels = [f"b{i}: &b{i} [{', '.join([f'*b{i - 1}'] * 9)}]" for i in range(1, 9)]
    path.write_text("\n".join([CONFIGURATION, "b0: &b0 [x]", *levels, f"prefix_spec: {spec}"]))
    told(path, "YAML file", False, "prefix_spec")
    path.write_text(CONFIGURATION + 'prefix_spec: {valid_prefix: "^<a>$", default_prefix: <a>, more: 2020-01-01}')
    facts = told(path, "training configuration", True)
    assert facts["prefix_spec"] == {"valid_prefix": "^<a>$", "default_prefix": "<a>"}


CONFIGURATION = """\
tokenizer: {sentpiece_model: /datasets/en.model, labels: [" ", a, b]}
input_val:
  filterbank_features: {dither: 0.00001, n_fft: 512, n_filt: 80, normalize: per_feature, sample_rate: 16000,
                        window: hann, window_size: 0.025, window_stride: 0.01}
  frame_splicing: {frame_stacking: 3, frame_subsampling: 3}
rnnt: {in_feats: 240, enc_n_hid: 1024, enc_pre_rnn_layers: 2, enc_post_rnn_layers: 6, enc_stack_time_factor: 2,
       pred_n_hid: 512, pred_rnn_layers: 2, joint_n_hid: 768}
"""


def test_a_trace(tmp_path: Path, program: Program) -> None:
    path = tmp_path / "t.npz"
    write_trace(path, trace_recording(program, SHORT))
    facts = told(path, "trace", True, "of 44 encoder steps")
    assert (facts["steps"], facts["prefix"], len(facts["tokens"])) == (44, [], 2)
    np.savez(path, a=np.zeros(3))
    told(path, "NumPy archive", False, "no trace")


def test_an_archive_that_unpacks_without_end(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, a=np.zeros(80 << 20, np.int8))
    assert path.stat().st_size < 1 << 20
    told(path, "NumPy archive", False, "unpacks to 83,886,")
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "|i1", "fortran_order": False, "shape": (1 << 50,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", head.getvalue())
    told(path, "NumPy archive", False, "no trace")


def test_the_state_of_a_slot(tmp_path: Path, program: Program) -> None:
    path = tmp_path / "slot.state"
    with Driver(open_emulator(program.config), program) as driver:
        driver.reset("prediction", [2])
        (image,) = driver.save("prediction", [2]).result()
    path.write_bytes(image.to_bytes())
    facts = told(path, "state of a slot", True, f"{program.program_id:#010x}")
    assert (facts["slot"], facts["program_id"]) == ("prediction", program.program_id)
    path.write_bytes(image.to_bytes()[:-1])
    told(path, "state of a slot", False, "damaged")


def written(folder: Path, data: bytes) -> Path:
    path = folder / "file.hw.pt"
    path.write_bytes(data)
    return path


LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 1337502\n".encode()
XILINX = bytes.fromhex("00090ff00ff00ff00ff000000161000574657374006200") + b"\x0excu50-fsvh2104\0c"
STAND_INS: dict[str, tuple[bytes, str, tuple[str, ...]]] = {
    "empty": (b"", "unknown", ("the file is empty", "copy or download")),
    "lfs": (LFS, "Git LFS pointer", ("1337502 bytes", "sha256:abab", "git lfs pull")),
    "annex": (b"/annex/objects/SHA256E-s1234--ab.pt\n", "git-annex pointer", ("1234 bytes", "git annex get")),
    "page": (b"<!DOCTYPE html>\n<html>Not found</html>", "web page", ("download the file itself",)),
    "ecp5": (b"\xff\0Lattice\0Part: LFE5U-85F-6CABGA381\0\xff\xff\xbd\xb3", "bitstream", ("LFE5U-85F-6CABGA381",)),
    "ecp5 bare": (b"\xff\xff\xbd\xb3" + bytes(99), "bitstream", ("Lattice",)),
    "xilinx": (XILINX, "bitstream", ("xcu50-fsvh2104",)),
    "xclbin": (b"xclbin2\0" + bytes(99), "bitstream", ("xclbin",)),
    "pickle": (b"\x80\x02}q\x00.", "unknown", ("a bare pickle", "save it again")),
    "text": (b"notes\n", "unknown", ("a text file that starts with 'notes", "a training configuration")),
    "bytes": (bytes(range(1, 99)), "unknown", ("bytes 01 02",)),
    "escape": (b"rnnt:\x1b[2J", "YAML file", ()),
}


@pytest.mark.parametrize("kind", STAND_INS)
def test_what_is_in_anothers_place(tmp_path: Path, kind: str) -> None:
    data, name, parts = STAND_INS[kind]
    facts = told(written(tmp_path, data), name, False, *parts)
    assert facts["bytes"] == len(data)


def test_links_that_lead_nowhere(tmp_path: Path, cli: Run) -> None:
    path = tmp_path / "model.hw.pt"
    path.symlink_to(".git/annex/objects/aa/bb/SHA256E-s5--cc.pt")
    told(path, "unknown", False, "no such file", "git annex get")
    cli("transcribe", "--model", path, SHORT).refused("no such file", "git annex get")
    path.unlink()
    path.symlink_to("elsewhere.pt")
    told(path, "unknown", False, "a link to elsewhere.pt")
    told(tmp_path, "unknown", False, "is a directory")


def test_pointers_are_refused_as_models(tmp_path: Path, cli: Run) -> None:
    for data, remedy in ((LFS, "git lfs pull"), (STAND_INS["annex"][0], "git annex get")):
        cli("transcribe", "--model", written(tmp_path, data), SHORT).refused("pointer", remedy)


@pytest.mark.parametrize(
    "change",
    [
        lambda top: top.update(melvars=torch.zeros(80)),
        lambda top: top.update(sentpiece_model=top["sentpiece_model"].replace(b"\x18\x02", b"\x18\x09")),
        lambda top: top["state_dict"].pop("joint_pred.bias"),
        lambda top: top["state_dict"].update({5: torch.zeros(1)}),
        lambda top: top.update(ngram={"binary": None, "scale_factor": float("inf")}),
        lambda top: top.update(prefix_spec={"valid_prefix": "^<none>$", "default_prefix": "<none>"}),
    ],
)
def test_bad_checkpoints_keep_size_and_hash(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    def edit(top: dict[str, Any]) -> None:
        change(top)

    facts = describe(saved(tmp_path, edit)).facts
    assert not facts["good"] and facts["bytes"] > 0 and len(facts["sha256"]) == 64


def test_any_head_gets_an_answer(tmp_path: Path, seed: int) -> None:
    """Beginnings of every kind with noise behind: one answer each, and no other exception."""
    random = np.random.default_rng(seed)
    heads = [
        b"",
        b"PK\3\4",
        b"GHARIAL\0",
        b"GHST",
        b"\x0a\x03",
        b"xclbin2\0",
        b"mmap lm http://kheafield.com/code",
        b"fLaC",
    ]
    for head in heads:
        for size in (1, 40, 700):
            found = describe(written(tmp_path, head + random.bytes(size)))
            assert all(key in found.facts for key in ALWAYS)


def test_on_the_command_line(cli: Run, tmp_path: Path) -> None:
    page = written(tmp_path, STAND_INS["page"][0])
    outcome = cli("inspect", "--json", DEMO, page)
    assert (outcome.code, outcome.err) == (2, "")
    first, second = (json.loads(line) for line in outcome.out.splitlines())
    assert first["configurations"][0]["config"] == "tiny" and second["kind"] == "web page"
    assert cli("inspect", DEMO).code == 0


def test_a_program_without_a_vocabulary(tmp_path: Path, program: Program) -> None:
    path = tmp_path / "m.gprog"
    Program(program.manifest, {k: v for k, v in program.sections.items() if k != "sentencepiece"}).write(path)
    found = describe(path)
    assert found.good and "vocabulary     none" in found.text
