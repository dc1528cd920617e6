# SPDX-License-Identifier: Apache-2.0
"""Files that are no models: what a model is made from and used with, and what stands in another file's place."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from gharial.checkpoint.prefix_spec import parse_prefix_spec
from gharial.checkpoint.recognise import ANNEX_POINTER, WEB_PAGE, refusal
from gharial.checkpoint.text import listed, shown
from gharial.errors import BadInput
from gharial.files import LFS_POINTER, open_regular
from gharial.inspect.bitstreams import bitstream_kind
from gharial.inspect.description import Description, bad, good

_MAX_SENTENCEPIECE = 64 << 20
_MAX_STATE = 16 << 20
_STATE_MAGIC = b"GHST"
_SHOWN = 12


def stand_in(file: str, head: bytes, size: int) -> Description | None:
    """An empty file, a pointer of Git LFS or git-annex, a web page."""
    refused = refusal(head, size, file)
    if refused is None:
        return None
    if size == 0:
        return bad(file, "unknown", BadInput("the file is empty", file, "0 bytes", None, refused.remedy), bytes=0)
    found = refused.found
    if head.startswith(LFS_POINTER):
        kind = "Git LFS pointer"
        identity = re.search(rb"^oid (\S{1,100})\s*$", head, re.MULTILINE)
        found = found if identity is None else f"{found}, {shown(identity[1], 100)}"
    elif head.startswith(ANNEX_POINTER):
        kind = "git-annex pointer"
    elif found == WEB_PAGE:
        kind, found = "web page", f"a page of {size} bytes"
    else:
        return None
    error = BadInput(f"this is a {kind}, not the file itself", file, found, None, refused.remedy)
    return bad(file, kind, error, bytes=size)


def ngram(file: str, head: bytes) -> Description | None:
    """An n-gram file, as `gharial ngram info` tells of it."""
    from gharial.ngram import inspect as described

    if not described.recognised(head):
        return None
    facts = described.describe(file)
    return Description(facts, described.format_description(facts))


def slot_state(file: str, head: bytes, size: int) -> Description | None:
    """The saved state of a slot (gharial.driver.SlotImage)."""
    if not head.startswith(_STATE_MAGIC):
        return None
    from gharial.driver import SlotImage

    try:
        if size > _MAX_STATE:
            raise BadInput("the file is too large", file, f"{size} bytes", f"at most {_MAX_STATE}")
        image = SlotImage.from_bytes(Path(file).read_bytes())
    except BadInput as error:
        return bad(file, "state of a slot", BadInput(error.what, file, error.found, error.expected, error.remedy))
    facts = {"slot": image.kind, "program_id": image.program_id, "layout_id": image.layout_id, "state": len(image.data)}
    rows = [
        ("slot", f"{image.kind}, {len(image.data):,} bytes of state"),
        ("for", f"program {image.program_id:#010x}, code {image.layout_id:#010x}, and no other"),
    ]
    return good(file, "state of a slot", facts, rows)


def bitstream(file: str, head: bytes, size: int) -> Description | None:
    """An image for an FPGA: good where its report is beside it and says so (docs/bitstream.md)."""
    from gharial.flash.image import REPORT, read_image

    found = bitstream_kind(head)
    if found is None:
        return None
    if not Path(file).with_name(REPORT).is_file():
        what = "an image without its report, so there is no telling whether it is good"
        remedy = "gharial's own are in bitstreams/BOARD, made by make bitstream"
        return bad(file, "bitstream", BadInput(what, file, found, f"{REPORT} beside it", remedy), bytes=size)
    try:
        report = read_image(Path(file)).report
    except BadInput as error:
        return bad(file, "bitstream", error, bytes=size)
    kept = ("board", "part", "config", "interface_version", "fmax_mhz", "multipliers", "source_hash")
    facts = {key: report[key] for key in kept if key in report}
    rows = [
        ("for", f"{report['board']} ({report['part']}), configuration {report['config']}"),
        ("interface", report["interface_version"]),
        ("load it", f"gharial flash {report['board']}"),
    ]
    return good(file, "bitstream", facts, rows)


def sentencepiece(file: str, head: bytes, size: int) -> Description | None:
    """A loose SentencePiece model."""
    from gharial.inspect.models import pieces_facts

    if not head.startswith(b"\x0a") or size > _MAX_SENTENCEPIECE:
        return None
    with open_regular(file, "a file") as opened:
        model = opened.read(_MAX_SENTENCEPIECE)
    try:
        facts = pieces_facts(model, file)
    except BadInput:
        return None
    count = sum(facts["pieces"].values())
    kinds = ", ".join(f"{number:,} {kind.replace('_', '-')}" for kind, number in facts["pieces"].items())
    rows = [
        ("pieces", f"{count:,} ({kinds})"),
        ("symbols", listed(map(shown, facts["symbols"]), _SHOWN) or "none that are user-defined"),
        ("for", f"models of {count + 1:,} classes, the last of them blank"),
    ]
    return good(file, "SentencePiece model", facts, rows)


def configuration(file: str, head: bytes, size: int) -> Description | None:
    """A YAML file; of use is a training configuration."""
    if not file.endswith((".yaml", ".yml")) and not re.search(rb"^(input_val|rnnt)\s*:", head, re.MULTILINE):
        return None
    from gharial.export.configuration import read_config

    try:
        found = read_config(file)
        spec = parse_prefix_spec(found.prefix_spec, f"{file}: prefix_spec")
    except BadInput as error:
        return bad(file, "YAML file", error, bytes=size)
    network, bank = found.inference["rnnt"], found.inference["input_val"]["filterbank_features"]
    facts = {
        "inference": found.inference,
        "sentencepiece_path": found.sentencepiece_path,
        "stats_path": found.stats_path,
        "ngram_path": found.ngram_path,
        "ngram_scale": found.ngram_scale,
        "batch_norm": list(found.batch_norm) if found.batch_norm is not None else None,
        "prefix_spec": None if spec is None else {"valid_prefix": spec.pattern, "default_prefix": spec.default},
    }
    rows = [
        (
            "encoder",
            f"{network['in_feats']} inputs, {network['enc_pre_rnn_layers']} + {network['enc_post_rnn_layers']} LSTM "
            f"layers of {network['enc_n_hid']}",
        ),
        ("prediction", f"{network['pred_rnn_layers']} of {network['pred_n_hid']}"),
        ("features", f"{bank['n_filt']} mel bins, window {1000 * bank['window_size']:g} ms"),
        ("tokeniser", shown(found.sentencepiece_path)),
        ("mel statistics", "not stated" if found.stats_path is None else shown(found.stats_path)),
        ("n-gram", "not stated" if found.ngram_path is None else shown(found.ngram_path)),
        ("to use it", f"gharial export --ckpt TRAIN.pt --config {shlex.quote(file)} -o MODEL.hw.pt"),
    ]
    return good(file, "training configuration", facts, rows)


def recording(file: str, head: bytes, size: int) -> Description | None:
    """An audio file."""
    from gharial.audio import open_audio

    try:
        with open_audio(file) as audio:
            for _ in audio.blocks():
                pass  # to the end: whether it is cut short or damaged shows only there
            rate, channels, seconds, notes = audio.source_rate, audio.channels, audio.duration_s or 0.0, audio.notes
    except BadInput:
        return None
    facts = {"sample_rate": rate, "channels": channels, "duration_s": round(seconds, 6), "notes": list(notes)}
    many = "s" if channels > 1 else ""
    rows = [("audio", f"{seconds:.2f} s, {rate} Hz, {channels} channel{many}"), *(("note", note) for note in notes)]
    return good(file, "recording", facts, rows)
