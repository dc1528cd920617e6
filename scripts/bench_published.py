#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LSTMs that others trained, in float and through converter, compiler and emulator.

`python -m scripts.bench_published` prints a table, and writes docs/measured/published.json with the commit that it was
taken at. The weights and recordings are looked for in the folder that GHARIAL_DATA names, else in shared/data beside
the checkout; three minutes, one core.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gharial
from scripts.bench import data_folder, markdown
from scripts.bench_batches import MEASURED, commit
from scripts.convert import arm_kws, dtln, recordings

KWS = {"kws-s": "arm_kws_basic_lstm_s.pb", "kws-m": "arm_kws_basic_lstm_m.pb"}
NOISE_DB = 5.0


def compiled(checkpoint: Path, folder: Path) -> gharial.Program:
    """The program of a converted checkpoint, for the smallest configuration, calibrated on the vectors beside it."""
    return gharial.compile_model(checkpoint, None, folder)


def spot(graph: Path, clips: Sequence[tuple[np.ndarray, int]], calibration: Sequence[np.ndarray]) -> dict[str, Any]:
    """A keyword spotter on clips of known class.

    Args:
        graph: the published weights.
        clips: samples of a second and the class of each.
        calibration: samples of other clips.

    Returns:
        Clips, how many float and int8 class right, and how many both class the same.
    """
    lstm, head = arm_kws.read_kws(graph)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "kws.hw.pt"
        program = compiled(file, arm_kws.convert(graph, file, calibration))
    inputs = [arm_kws.mfcc(samples) for samples, _ in clips]
    in_float = np.array([head.run(lstm.run(x)[-1:])[0] for x in inputs])
    with gharial.Encoder(program) as encoder:
        in_int8 = np.array([outputs[-1] for outputs in encoder.run(inputs)])
    truth = np.array([label for _, label in clips])
    chosen_float, chosen_int8 = in_float.argmax(axis=1), in_int8.argmax(axis=1)
    return {
        "config": program.config.name,
        "hidden": lstm.hidden,
        "clips": len(clips),
        "calibration_clips": len(calibration),
        "right_float": int((chosen_float == truth).sum()),
        "right_int8": int((chosen_int8 == truth).sum()),
        "same_class": int((chosen_float == chosen_int8).sum()),
        "outputs_snr_db": _ratio_db(in_float, in_int8),
    }


def suppress(
    models: tuple[Path, Path], pairs: Sequence[tuple[np.ndarray, np.ndarray]], calibration: Sequence[np.ndarray]
) -> dict[str, Any]:
    """The noise suppressor on noisy speech.

    Args:
        models: the published weights of both halves.
        pairs: clean and noisy samples of each recording.
        calibration: noisy samples of other recordings.

    Returns:
        SI-SDR in dB of each recording as given, cleaned in float, cleaned in int8; and of int8 against float.
    """
    first, second = dtln.read_first(models[0]), dtln.read_second(models[1])
    noisy = [given for _, given in pairs]
    in_float = dtln.suppress(noisy, first.run, second.run, second)
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / "dtln"
        folders = dtln.convert(*models, output, calibration)
        programs = [compiled(Path(place) / f"dtln_{half}.hw.pt", folders[half - 1]) for half in (1, 2)]
    with gharial.Encoder(programs[0]) as one, gharial.Encoder(programs[1]) as two:
        in_int8 = dtln.suppress(noisy, one.run, two.run, second)
    return {
        "config": programs[0].config.name,
        "calibration_recordings": len(calibration),
        "given_db": [si_sdr(clean, given) for clean, given in pairs],
        "float_db": [si_sdr(clean, found) for (clean, _), found in zip(pairs, in_float, strict=True)],
        "int8_db": [si_sdr(clean, found) for (clean, _), found in zip(pairs, in_int8, strict=True)],
        "int8_to_float_db": [si_sdr(a, b) for a, b in zip(in_float, in_int8, strict=True)],
    }


def si_sdr(clean: np.ndarray, found: np.ndarray) -> float:
    """Scale-invariant signal-to-distortion ratio in dB, over the common length."""
    length = min(len(clean), len(found))
    clean, found = clean[:length] - clean[:length].mean(), found[:length] - found[:length].mean()
    target = clean * (found @ clean / (clean @ clean))
    return _ratio_db(target, found)


def with_noise(clean: np.ndarray, seed: int = 5) -> np.ndarray:
    """Samples with white noise 5 dB below them."""
    noise = np.random.default_rng(seed).standard_normal(len(clean))
    return clean + noise * np.sqrt(np.square(clean).sum() / np.square(noise).sum() / 10 ** (NOISE_DB / 10))


def _ratio_db(wanted: np.ndarray, found: np.ndarray) -> float:
    return float(10 * np.log10(np.square(wanted).sum() / np.square(found - wanted).sum()))


def keyword_clips(data: Path, every: int = 1) -> list[tuple[np.ndarray, int]]:
    """Samples and class of the keyword recordings; every so-manieth of each class."""
    return [
        (recordings.samples(path), label)
        for label, word in enumerate(arm_kws.LABELS)
        for path in sorted((data / "speech_commands" / word).glob("*.flac"))[::every]
    ]


def shipped_seconds() -> list[np.ndarray]:
    """The recordings that ship for calibration, in pieces of a second."""
    return [clip for recording in recordings.folder(None) for clip in arm_kws.seconds(recording)]


def measure(data: Path, every: int) -> dict[str, Any]:
    """All networks, by name."""
    weights = data / "published_weights"
    clips = keyword_clips(data, every)
    found: dict[str, Any] = {name: spot(weights / file, clips, shipped_seconds()) for name, file in KWS.items()}
    speech = [recordings.samples(path) for path in sorted((data / "ljspeech").glob("*.flac"))]
    pairs = [(clean, with_noise(clean)) for clean in speech]
    models = weights / "dtln_1.onnx", weights / "dtln_2.onnx"
    return found | {"dtln": suppress(models, pairs[:-2], [noisy for _, noisy in pairs[-2:]])}


def rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """The results as a table with a head."""
    table: list[tuple[str, ...]] = [("network", "judged by", "float", "int8", "difference", "the two compared")]
    for name in KWS:
        f = found[name]
        right = [100 * f[key] / f["clips"] for key in ("right_float", "right_int8")]
        table.append(
            (
                name,
                f"classes right of {f['clips']} clips",
                f"{right[0]:.2f} %",
                f"{right[1]:.2f} %",
                f"{right[1] - right[0]:+.2f} points",
                f"{100 * f['same_class'] / f['clips']:.2f} % the same class",
            )
        )
    f = found["dtln"]
    given, in_float, in_int8 = (np.array(f[key]) for key in ("given_db", "float_db", "int8_db"))
    worst = (in_int8 - in_float)[np.argmax(np.abs(in_int8 - in_float))]
    table.append(
        (
            "dtln",
            f"SI-SDR gain, mean of {len(given)} recordings",
            f"{(in_float - given).mean():.2f} dB",
            f"{(in_int8 - given).mean():.2f} dB",
            f"{(in_int8 - in_float).mean():+.2f} dB, {worst:+.2f} dB at most",
            f"{min(f['int8_to_float_db']):.1f} dB SI-SDR or more",
        )
    )
    return table


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 measured, or nothing there to measure; 1 failed, 2 bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--every", metavar="N", type=int, default=1, help="only every Nth keyword recording; writes no file"
    )
    args = parser.parse_args(argv)
    data = data_folder()
    if data is None or not (data / "published_weights").is_dir():
        print("bench_published: no published weights: set GHARIAL_DATA to the folder that has them", file=sys.stderr)
        return 0
    found = measure(data, args.every)
    print(markdown(rows(found)))
    if args.every == 1:
        MEASURED.mkdir(exist_ok=True)
        (MEASURED / "published.json").write_text(json.dumps({"commit": commit(), **found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except gharial.GharialError as error:
        print(f"bench_published: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
