# SPDX-License-Identifier: Apache-2.0
"""`gharial export`: everything that can be wrong is refused with file, field, what was found and what was expected, and
leaves nothing behind."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ngram_files
import pytest
import torch
import yaml
from checkpoint_files import PROTO5, STOP, complete, demo, group, integer, text
from checkpoint_variants import SPEC, with_symbols
from command import Run
from training_files import Training, training

import gharial
from gharial.checkpoint.unpickle import unpickle
from gharial.errors import BadInput
from gharial.export import exporter
from gharial.ngram import trailer

Tree = dict[str, Any]


def refused(cli: Run, run: Training, *parts: str, more: tuple[object, ...] = ()) -> None:
    """Asserts one refusal with all parts, exit code 2 and no new file."""
    before = sorted(run.folder.rglob("*"))
    outcome = cli(*run.words(run.folder / "out.hw.pt", *more))
    outcome.refused(*parts)
    lines = outcome.err.splitlines()
    assert ": " in lines[0]
    if "no such file" not in lines[0] and "is a directory" not in lines[0]:
        assert lines[1].startswith("found ")
        assert ", expected " in lines[1]
        assert lines[2]
    assert sorted(run.folder.rglob("*")) == before


def without(key: str) -> Callable[[Tree], None]:
    def change(tree: Tree) -> None:
        del tree[key]

    return change


def setting(*keys: str, to: Any) -> Callable[[Tree], None]:
    def change(tree: Tree) -> None:
        for key in keys[:-1]:
            tree = tree[key]
        tree[keys[-1]] = to

    return change


def dropping(*keys: str) -> Callable[[Tree], None]:
    def change(tree: Tree) -> None:
        for key in keys[:-1]:
            tree = tree[key]
        del tree[keys[-1]]

    return change


def averaged(name: str, tensor: Any) -> Callable[[Tree], None]:
    return setting("ema_state_dict", name, to=tensor)


CHECKPOINTS: list[tuple[Callable[[Tree], Any], tuple[str, ...]]] = [
    (lambda tree: [1], ("this is no training checkpoint", "found a list")),
    (lambda tree: {"epoch": 1}, ("this is no training checkpoint", "found epoch")),
    (lambda tree: demo(), ("this is a hardware checkpoint", "use it as it is")),
    (without("ema_state_dict"), ("ema_state_dict", "no averaged weights", "moving average")),
    (setting("ema_state_dict", to=None), ("ema_state_dict", "no averaged weights")),
    (setting("ema_state_dict", to={}), ("ema_state_dict", "must be a dict of tensors")),
    (
        dropping("ema_state_dict", "module.joint_pred.bias"),
        ("ema_state_dict", "missing: joint_pred.bias", "expected joint_pred.bias (64,)"),
    ),
    (averaged("module.extra", torch.ones(3)), ("ema_state_dict", "unexpected: extra", "found extra (3,)")),
    (
        averaged("module.joint_enc.bias", torch.ones(65)),
        ("misshapen: joint_enc.bias", "found joint_enc.bias (65,)", "expected joint_enc.bias (64,)"),
    ),
    (averaged("module.joint_enc.bias", torch.ones(64).half()), ("joint_enc.bias float16", "expected float32")),
    (averaged("module.joint_enc.bias", torch.full((64,), torch.nan)), ("joint_enc.bias holds NaN", "64 of 64")),
    (averaged("module.joint_fc.bias", torch.ones(256)), ("joint_fc.bias differs from joint_net.2.bias",)),
    (averaged("joint_enc.bias", torch.ones(64)), ("two tensors have the name joint_enc.bias",)),
    (setting("logmel_norm_weight", to=0.9999), ("logmel_norm_weight is not 1", "found 0.9999, expected 1.0")),
    (setting("logmel_norm_weight", to=0.75), ("logmel_norm_weight is not 1", "found 0.75, expected 1.0", "resume")),
    (
        setting("logmel_norm_weight", to=1 + 2**-24),
        ("logmel_norm_weight is not 1", "found 1.00000005960464", ", expected"),
    ),
    (without("logmel_norm_weight"), ("logmel_norm_weight is missing", "expected 1.0", "--melalpha 0.001")),
    (setting("logmel_norm_weight", to="1"), ("logmel_norm_weight has a value",)),
    (setting("epoch", to="7"), ("epoch has a value", "found the text '7', expected an integer")),
    (setting("step", to=torch.ones(2)), ("step has a value", "found a ndarray, expected an integer")),
    (setting("sentpiece_model", to=torch.ones(2)), ("sentpiece_model has a value", "expected bytes")),
    (setting("prefix_spec", to=torch.ones(2)), ("prefix_spec: this must be a dict",)),
    (setting("tokenizer_kw", to=[]), ("tokenizer_kw", "must be a dict")),
    (setting("tokenizer_kw", "labels", to=["a"]), ("CONFIG.yaml", "tokenizer.labels contradicts", "expected a")),
    (setting("sentpiece_model", to=b"no model"), ("TRAIN.pt: sentpiece_model", "no SentencePiece model")),
    (
        setting("sentpiece_model", to=b"\x0a\x03\x0a\x01a" * 254 + b"\x0a\x00"),
        ("TRAIN.pt: sentpiece_model", "found piece 254 of the bytes none"),
    ),
    (setting("melmeans", to=torch.ones(79)), ("TRAIN.pt: melmeans", "float32 (79,)", "float32 (80,)")),
    (setting("melmeans", to=torch.full((80,), torch.nan)), ("TRAIN.pt: melmeans", "melmeans holds NaN", "80 of 80")),
    (
        setting("melvars", to=torch.full((80,), 1e300, dtype=torch.float64)),
        ("TRAIN.pt: melvars", "melvars holds NaN or infinity"),
    ),
    (setting("melvars", to=torch.zeros(80)), ("TRAIN.pt: melvars", "must be above 0")),
    (setting("prefix_spec", to={"valid_prefix": "^a$", "default_prefix": "b"}), ("prefix_spec", "default prefix")),
    (setting("args", to={"valid_prefix": 3}), ("prefix_spec", "valid_prefix has a value")),
]


@pytest.mark.parametrize(("change", "parts"), CHECKPOINTS)
def test_checkpoint(cli: Run, tmp_path: Path, change: Callable[[Tree], Any], parts: tuple[str, ...]) -> None:
    refused(cli, training(tmp_path, change), *parts)


CONFIGS: list[tuple[Callable[[Tree], Any], tuple[str, ...]]] = [
    (lambda tree: "", ("CONFIG.yaml", "this is no training configuration", "found None")),
    (lambda tree: "- a\n- b\n", ("this is no training configuration", "found a list")),
    (lambda tree: "a: [1,\n", ("no YAML that can be read", "line 2")),
    (lambda tree: "a: !!python/object/apply:os.system [true]\n", ("no YAML that can be read", "python/object/apply")),
    (lambda tree: "a: 2026-13-45\n", ("no YAML that can be read",)),
    (lambda tree: "? [a]\n: b\n", ("no YAML that can be read", "unhashable")),
    (lambda tree: "a: " + "[" * 20000, ("CONFIG.yaml", "YAML")),
    (lambda tree: "a: b\n" * 300_000, ("too large",)),
    (dropping("rnnt"), ("CONFIG.yaml: rnnt", "the section is missing")),
    (setting("input_val", to=[1]), ("CONFIG.yaml: input_val", "must be a section", "found a list")),
    (dropping("input_val", "frame_splicing"), ("CONFIG.yaml: input_val.frame_splicing", "the section is missing")),
    (dropping("rnnt", "enc_n_hid"), ("CONFIG.yaml: rnnt", "enc_n_hid is missing", "expected an integer")),
    (setting("rnnt", "enc_n_hid", to=64.5), ("enc_n_hid has a value", "found 64.5, expected an integer")),
    (setting("rnnt", "enc_n_hid", to=True), ("enc_n_hid has a value", "found True")),
    (setting("rnnt", "enc_n_hid", to="many"), ("enc_n_hid has a value", "found many")),
    (setting("rnnt", "enc_n_hid", to=128), ("rnnt.enc_n_hid contradicts the tensors", "found 128, expected 64")),
    (setting("rnnt", "pred_rnn_layers", to=2), ("rnnt.pred_rnn_layers contradicts", "found 2, expected 1")),
    (setting("rnnt", "enc_batch_norm", to=True), ("rnnt.enc_batch_norm contradicts", "found True, expected False")),
    (setting("rnnt", "hard_activation_functions", to=2), ("rnnt", "hard_activation_functions has a value")),
    (
        setting("hard_activation_functions", to=True),
        ("CONFIG.yaml: hard_activation_functions", "outside the section rnnt", "found True"),
    ),
    (setting("tokenizer", "labels", to="abc"), ("labels has a value", "expected a list of texts")),
    (setting("tokenizer", "sentpiece_model", to=None), ("tokenizer", "sentpiece_model is missing")),
    (setting("tokenizer", "sentpiece_model", to="x" * 5000), ("CONFIG.yaml: a path in it", "File name too long")),
    (setting("ngram", "ngram_path", to="x/" * 3000), ("CONFIG.yaml: a path in it", "File name too long")),
    (setting("input_val", "filterbank_features", "dither", to=float("inf")), ("dither has a value", "found inf")),
    (setting("tokenizer", "sentpiece_model", to=3), ("tokenizer", "sentpiece_model has a value", "expected text")),
    (setting("tokenizer", "sentpiece_model", to=""), ("tokenizer", "sentpiece_model has a value", "found ''")),
    (lambda tree: yaml.safe_dump(tree).replace("- a\n", '- "\\ud800"\n', 1), ("tokenizer", "labels has a value")),
    (
        setting("tokenizer", "sentpiece_model", to="/no/such/spm.model"),
        ("CONFIG.yaml: tokenizer", "found no such file, expected /no/such/spm.model", "--sentpiece-model FILE"),
    ),
    (
        setting("input_val", "filterbank_features", "stats_path", to="/no/such/stats"),
        ("filterbank_features", "melmeans", "no such file, expected /no/such/stats/melmeans.pt", "--melmeans FILE"),
    ),
    (dropping("input_val", "filterbank_features", "stats_path"), ("stats_path is missing", "--melmeans FILE")),
    (setting("input_val", "filterbank_features", "window", to="hamming"), ("this window", "expected hann")),
    (setting("input_val", "filterbank_features", "n_filt", to=40), ("features do not fit", "CONFIG.yaml")),
    (dropping("ngram"), ("CONFIG.yaml: ngram", "ngram_path is missing", "--skip-ngram")),
    (setting("ngram", "scale_factor", to=-1), ("CONFIG.yaml: ngram", "scale_factor has a value", "found -1")),
    (setting("ngram", "ngram_path", to="/no/such"), ("no n-gram", "expected /no/such/ngram.binary", "--skip-ngram")),
    (setting("prefix_spec", to={"default_prefix": ""}), ("CONFIG.yaml: prefix_spec", "valid_prefix is missing")),
]


@pytest.mark.parametrize(("change", "parts"), CONFIGS)
def test_configuration(cli: Run, tmp_path: Path, change: Callable[[Tree], Any], parts: tuple[str, ...]) -> None:
    refused(cli, training(tmp_path, config=change), *parts)


def test_merges_that_grow_without_end(cli: Run, tmp_path: Path) -> None:
    """Twelve lines that could be 16^12 keys are not; 44 kB that would be 4 million are refused before they are made."""
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: 1" for n in range(16)) + "}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 16)}]}}" for n in range(1, 12)]
    refused(cli, training(tmp_path, config=lambda tree: "\n".join(lines)), "CONFIG.yaml: input_val", "is missing")
    lines = ["a: &a {" + ", ".join(f"k{n}: 1" for n in range(2000)) + "}"]
    lines += [f"b{n}: {{<<: *a}}" for n in range(2000)]
    (tmp_path / "again").mkdir()
    run = training(tmp_path / "again", config=lambda tree: "\n".join(lines))
    refused(cli, run, "no YAML that can be read", "merges far more than it holds", "line ")
    lines = [lines[0], f"b: {{<<: [{', '.join(['*a'] * 10_000)}]}}"]  # 20 million by one list
    (tmp_path / "list").mkdir()
    run = training(tmp_path / "list", config=lambda tree: "\n".join(lines))
    refused(cli, run, "no YAML that can be read", "merges far more than it holds", "line ")


def test_aliases_that_refer_to_themselves(cli: Run, tmp_path: Path) -> None:
    refused(cli, training(tmp_path, config=lambda tree: "rnnt: &a\n  rnnt: *a\ninput_val: *a\n"), "filterbank_features")


def test_files_that_are_not_there(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path)
    for name in ("checkpoint", "config"):
        file: Path = getattr(run, name)
        kept = file.read_bytes()
        file.unlink()
        refused(cli, run, f"{file}: no such file")
        file.mkdir()
        refused(cli, run, f"{file}: is a directory")
        file.rmdir()
        file.write_bytes(kept)
    run.checkpoint.write_bytes(kept)
    refused(cli, run, "TRAIN.pt: this is no torch checkpoint", "text file")
    run.config.write_bytes(b"\xff\xfe\0")
    refused(cli, run, "CONFIG.yaml: this is no text in UTF-8")


@pytest.mark.parametrize(
    ("ngram", "parts"),
    [
        (b"", ("KenLM binary",)),
        (ngram_files.ARPA.read_bytes(), ("this is an ARPA file", "gharial ngram build")),
        (ngram_files.binary().read_bytes()[:-600], ("truncated",)),
        (
            ngram_files.binary().read_bytes() + trailer.encode(ngram_files.OTHER),
            ("made for another SentencePiece model", hashlib.sha256(ngram_files.OTHER).hexdigest()),
        ),
    ],
)
def test_ngram(cli: Run, tmp_path: Path, ngram: bytes, parts: tuple[str, ...]) -> None:
    run = training(tmp_path)
    (tmp_path / "ngrams/ngram.binary").write_bytes(ngram)
    refused(cli, run, "ngram.binary", *parts)
    assert cli(*run.words(tmp_path / "out", "--skip_ngram")).code == 0


def test_only_the_binary_ngram_is_exported(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path)
    (tmp_path / "ngrams/ngram.binary").rename(tmp_path / "ngrams/ngram.arpa")
    refused(cli, run, "only the text form", "ngrams/ngram.arpa", "ngrams/ngram.binary", "gharial ngram build")


def test_options_that_contradict(cli: Run, tmp_path: Path) -> None:
    spec = SPEC
    model = demo()
    model["sentpiece_model"] = with_symbols(model["sentpiece_model"], SPEC["valid_prefix"])
    run = training(tmp_path, setting("prefix_spec", to=spec), source=model)
    file = tmp_path / "ngrams/ngram.binary"
    refused(cli, run, "--skip-ngram", "both left out and given", more=("--skip-ngram", "--override-ngram-path", file))
    refused(cli, run, "prefixes contradict --valid-prefix", "<lang_en>", more=("--valid-prefix", "^<pnc>$"))
    refused(cli, run, "--default-prefix", "without the prefixes", more=("--default-prefix", "<pnc>"))
    refused(cli, run, "--valid-prefix", "not made of", "<other>", "<pnc>", more=("--valid-prefix", "^<pnc>(<other>)?$"))
    refused(cli, run, "--melalpha", "contradicts the checkpoint", more=("--melalpha", "0.001"))
    refused(cli, run, "--melalpha", "no rate", more=("--melalpha", "1"))
    refused(cli, run, "--melalpha", "no rate", more=("--melalpha", "nan"))
    other = tmp_path / "other"
    other.mkdir()
    contradicted = training(
        other, setting("prefix_spec", to=spec), setting("prefix_spec", to=spec | {"default_prefix": None}), model
    )
    refused(cli, contradicted, "CONFIG.yaml: prefix_spec", "contradict", "TRAIN.pt")


def test_output_that_cannot_be_written(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = training(tmp_path)
    named = (
        run.folder / name for name in ("spm.model", "stats/melmeans.pt", "stats/melvars.pt", "ngrams/ngram.binary")
    )
    for name in (run.checkpoint, run.config, *named):
        kept = name.read_bytes()
        cli(*run.words(name, "--skip-ngram")).refused("would be written over what is read", str(name), "name another")
        assert name.read_bytes() == kept
    cli(*run.words(tmp_path)).refused("is a folder")
    cli(*run.words(tmp_path / "no/out")).refused("the folder does not exist")

    def full(tree: Any, where: Any) -> Any:
        yield b"the beginning"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporter, "checkpoint_pieces", full)
    before = sorted(tmp_path.rglob("*"))
    cli(*run.words(tmp_path / "out")).refused("cannot be written: No space left", "nothing was left behind", code=1)
    assert sorted(tmp_path.rglob("*")) == before


def test_output_over_input_from_python(tmp_path: Path) -> None:
    run = training(tmp_path)
    for name in (run.checkpoint, run.config):
        kept = name.read_bytes()
        with pytest.raises(BadInput, match="would be written over what is read") as caught:
            gharial.export_checkpoint(run.checkpoint, run.config, name)
        complete(caught.value)
        assert name.read_bytes() == kept


def test_a_checkpoint_cut_short(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path)
    whole = run.checkpoint.read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        run.checkpoint.write_bytes(whole[:size])
        refused(cli, run, "TRAIN.pt")


class Evil:
    """Makes a file when a careless reader unpickles it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.marker,)


def test_code_in_any_of_the_files_does_not_run(cli: Run, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    stored = io.BytesIO()
    torch.save(Evil(marker), stored)
    torch.load(io.BytesIO(stored.getvalue()), weights_only=False)
    assert marker.exists(), "the exploit must work, or this test shows nothing"
    marker.unlink()
    run = training(tmp_path, setting("optimizer", to=Evil(marker)))
    refused(cli, run, "TRAIN.pt", "would run code")
    shutil.rmtree(tmp_path / "stats")
    shutil.rmtree(tmp_path / "ngrams")
    run = training(tmp_path)
    (tmp_path / "stats/melvars.pt").write_bytes(stored.getvalue())
    refused(cli, run, "melvars.pt", "would run code")
    assert not marker.exists()


def test_the_remedy_is_for_the_file_that_is_wrong(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path)
    for file in ("/dev/null", tmp_path / "CONFIG.yaml", tmp_path):
        refused(cli, run, str(file), "--melmeans FILE --melvars FILE", more=("--melmeans", file))
    for file, remedy in (("/dev/null", "write what comes out of it to a file"), (tmp_path / "stats", "check the name")):
        refused(cli, run, str(file), remedy, more=("--override-ngram-path", file))
    run.checkpoint.write_text("weights\n")
    refused(cli, run, "TRAIN.pt", "to export, the .pt file of the training")


def test_a_name_with_a_slash_at_its_end_is_no_file(cli: Run, tmp_path: Path) -> None:
    run = training(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    cli(*run.words(Path(tmp_path, "out.hw.pt"))[:-1], f"{tmp_path}/new/").refused("names a folder, not a file")
    assert sorted(tmp_path.rglob("*")) == before


def test_paths_inside_the_checkpoint_are_not_followed(cli: Run, tmp_path: Path) -> None:
    """The checkpoint names a model that is there, the configuration one that is not."""
    real = str(tmp_path / "spm.model")
    run = training(
        tmp_path,
        setting("tokenizer_kw", "sentpiece_model", to=real),
        setting("tokenizer", "sentpiece_model", to="/no/such/spm.model"),
    )
    refused(cli, run, "expected /no/such/spm.model")
    assert yaml.safe_load(run.config.read_text())["tokenizer"]["sentpiece_model"] == "/no/such/spm.model"


def test_enumeration_of_training_checkpoints() -> None:
    """CAIMAN-ASR 1.13 and later keep one in `tokenizer_kw`: its value is taken, and nothing else can be done."""

    def read(call: bytes, module: str = "caiman_asr_train.data.unk_handling") -> Any:
        name = text(module) + text("UnkHandling") + b"\x93"
        return unpickle(PROTO5 + name + call + STOP, "m.pt", lambda ref: None)

    assert read(text("FAIL") + b"\x85R") == "FAIL"
    for call in (b")R", integer(1) + b"\x85R", group(text("a"), text("b")) + b"R"):
        with pytest.raises(BadInput, match=r"calls caiman_asr_train.* with arguments") as caught:
            read(call)
        complete(caught.value)
    with pytest.raises(BadInput, match="leaves a class"):
        read(b"")
    with pytest.raises(BadInput, match="would run code"):
        read(text("FAIL") + b"\x85R", "caiman_asr_train.data")
