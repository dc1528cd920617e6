#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of export and of reading a checkpoint, at the sizes that CAIMAN-ASR trains, with random weights.

Exits 1 if reading takes more memory than BOUND times the file's size.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gharial.bench.random_model import SHAPES
from gharial.checkpoint import ModelDims
from gharial.checkpoint.weights import size_keys
from gharial.export.zipping import checkpoint_pieces
from gharial.files import write_atomically

BOUND = 2.5

_MEASURED = """
import json, re, sys, time
from pathlib import Path
from gharial.checkpoint import load_hardware
from gharial.export import export_checkpoint
def peak():  # not ru_maxrss, which begins with the parent's
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
before, begun = peak(), time.monotonic()
{call}
print(json.dumps([time.monotonic() - begun, peak() - before]))
"""


def measured(call: str, *files: Path) -> tuple[float, float]:
    """Seconds and MB that a call takes in a process of its own, beyond what the process has before it."""
    command = [sys.executable, "-c", _MEASURED.format(call=call), *map(str, files)]
    seconds, kib = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return seconds, kib * 1024 / 1e6


def write_training(folder: Path, dims: ModelDims) -> tuple[Path, Path]:
    """A training checkpoint without optimiser, its configuration, and what that names."""
    random = np.random.default_rng(0)
    averaged = OrderedDict(
        (f"module.{name}", random.standard_normal(shape, np.float32)) for name, shape in dims.shapes().items()
    )
    (folder / "spm.model").write_bytes(b"\x0a\x03\x0a\x01a" * dims.vocabulary)  # so many pieces of one letter
    for name, array in (("melmeans", np.zeros(80, np.float32)), ("melvars", np.ones(80, np.float32))):
        write_atomically(folder / f"{name}.pt", checkpoint_pieces(array, name))
    tree: dict[str, Any] = {"epoch": 1, "step": 1, "best_wer": 1.0, "logmel_norm_weight": 1.0}
    tree |= {"ema_state_dict": averaged, "state_dict": {name: -array for name, array in averaged.items()}}
    checkpoint, config = folder / "train.pt", folder / "config.yaml"
    write_atomically(checkpoint, checkpoint_pieces(tree, checkpoint))
    bank = {"dither": 1e-5, "n_fft": 512, "n_filt": 80, "normalize": "per_feature", "sample_rate": 16000}
    bank |= {"window": "hann", "window_size": 0.025, "window_stride": 0.01, "stats_path": str(folder)}
    rnnt = size_keys(dims)
    splicing = {"frame_stacking": 3, "frame_subsampling": 3}
    tokenizer = {"labels": ["a"], "sentpiece_model": str(folder / "spm.model")}
    settings = {"input_val": {"filterbank_features": bank, "frame_splicing": splicing}}
    config.write_text(yaml.safe_dump(settings | {"rnnt": rnnt, "tokenizer": tokenizer}), encoding="utf-8")
    return checkpoint, config


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 within the bound, 1 not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="*", choices=[*SHAPES, []], help="which models (default: base and large)")
    args = parser.parse_args(argv)
    within = True
    print("model    export s  peak MB  file MB  read s  peak MB  peak/file")
    for name in args.model or ("base", "large"):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            checkpoint, config = write_training(folder, SHAPES[name])
            output = folder / "model.hw.pt"
            call = "export_checkpoint(*sys.argv[1:], skip_ngram=True)"
            export_s, export_mb = measured(call, checkpoint, config, output)
            size = output.stat().st_size / 1e6
            read_s, read_mb = measured("load_hardware(sys.argv[1])", output)
        within = within and read_mb <= BOUND * size
        row = f"{export_s:8.1f}  {export_mb:7.0f}  {size:7.0f}  {read_s:6.1f}  {read_mb:7.0f}  {read_mb / size:9.2f}"
        print(f"{name:<8} {row}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
