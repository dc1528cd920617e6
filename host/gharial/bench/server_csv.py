# SPDX-License-Identifier: Apache-2.0
"""A run as a line of CSV, with the columns that CAIMAN-ASR's own benchmark writes.

Its latencies are user-perceived ones, in seconds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gharial.errors import BadInput
from gharial.files import output_path, write_atomically

COLUMNS = (
    "Run name",
    "Timestamp",
    "Total utts",
    "Processed utts",
    "Mean Latency",
    "50th Percentile Latency",
    "90th Percentile Latency",
    "99th Percentile Latency",
    "WER %",
    "Total words",
    "Errors",
    "Provider",
)
PROVIDER = "GHARIAL"

_LATENCIES = {"Mean": "upl_mean_ms", "50th Percentile": "upl_p50_ms", "90th Percentile": "upl_p90_ms"}
_LATENCIES |= {"99th Percentile": "upl_p99_ms"}


def check(path: Path) -> str:
    """What is in the file so far; empty where there is none.

    Raises:
        BadInput: there is something else than such lines in it, or it cannot be written.
    """
    target = output_path(path)
    if not target.exists():
        return ""
    text = target.read_text(encoding="utf-8", errors="replace")
    first = next(csv.reader(io.StringIO(text)), None)
    if first != list(COLUMNS):
        found = ",".join(first or [])[:60]
        raise BadInput("holds other columns", f"--csv {path}", found, ",".join(COLUMNS), "name another file")
    return text if text.endswith("\n") else text + "\n"


def append(path: Path, found: Mapping[str, Any], name: str, now: datetime | None = None) -> None:
    """Put a line behind those of the file, or begin one.

    Args:
        path: the file.
        found: as of `bench_server`.
        name: of the run.
        now: for the timestamp.
    """
    before = check(path)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if not before:
        writer.writerow(COLUMNS)
    moment = (now or datetime.now(UTC)).astimezone().replace(microsecond=0).isoformat()
    wer = found["wer"]
    values = {
        "Run name": name,
        "Timestamp": moment,
        "Total utts": found["set_utterances"],
        "Processed utts": found["utterances"] - found["failed"],
        **{f"{what} Latency": _seconds(found[key]) for what, key in _LATENCIES.items()},
        "WER %": "" if wer is None else round(100 * wer, 4),
        "Total words": found["words"],
        "Errors": found["errors"],
        "Provider": PROVIDER,
    }
    writer.writerow([values[column] for column in COLUMNS])
    write_atomically(path, iter([(before + text.getvalue()).encode()]))


def _seconds(milliseconds: float | None) -> float | str:
    return "" if milliseconds is None else round(milliseconds / 1e3, 6)
