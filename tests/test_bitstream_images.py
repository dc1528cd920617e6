# SPDX-License-Identifier: Apache-2.0
"""The images in bitstreams/: each is the one that its report tells of, right, and made from today's sources."""

import hashlib
import json

import pytest
from scripts.board import build, hashes, report, route
from scripts.board.boards import board, boards

KEPT = [key for key in boards() if (build.IMAGES / key).is_dir()]
if not KEPT:
    pytest.skip("no image is kept yet: make bitstream BOARD=ulx3s-85f", allow_module_level=True)


@pytest.mark.parametrize("key", KEPT)
def test_image_and_report_belong_together(key):
    told = build.kept_report(board(key))
    folder = build.IMAGES / key
    assert (folder / build.SUMS).read_text() == f"{told['image_sha256']}  {route.IMAGE}\n"
    assert told["image_sha256"] == hashlib.sha256((folder / route.IMAGE).read_bytes()).hexdigest()
    assert told["source_hash"] == hashes.source_hash(hashes.read_listing(folder / report.LISTING))


@pytest.mark.parametrize("key", KEPT)
def test_image_is_right(key):
    wanted = board(key)
    told = json.loads((build.IMAGES / key / report.FILE).read_text())
    assert report.faults(wanted, told, report.wanted_rates(wanted)) == []
    assert (told["board"], told["part"], told["config"]) == (key, wanted.part, wanted.config)
    assert (told["clock_mhz"], told["seed"]) == (wanted.clock_mhz, wanted.seed)


@pytest.mark.parametrize("key", KEPT)
def test_image_is_of_todays_sources(key):
    changed = build.stale(board(key))
    assert not changed, "\n".join(
        [f"the image for {key} is stale (make bitstream BOARD={key} makes it anew):", *changed]
    )
