# SPDX-License-Identifier: Apache-2.0
"""Error types: exit codes, and texts of one to three lines."""

from __future__ import annotations

import pickle

import pytest

from gharial.errors import BadInput, DeviceError, GharialError


def test_exit_codes() -> None:
    assert [kind.exit_code for kind in (GharialError, BadInput, DeviceError)] == [1, 2, 1]
    assert issubclass(BadInput, GharialError) and issubclass(DeviceError, GharialError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (BadInput("not a checkpoint"), "not a checkpoint"),
        (BadInput("not a checkpoint", where="a.pt"), "a.pt: not a checkpoint"),
        (BadInput("bad rate", found=8000), "bad rate\nfound 8000"),
        (BadInput("bad rate", found=0, expected=16000), "bad rate\nfound 0, expected 16000"),
        (
            BadInput("bad rate", where="a.wav", found=8000, expected=16000, remedy="resample it"),
            "a.wav: bad rate\nfound 8000, expected 16000\nresample it",
        ),
        (BadInput("bad", where="line\n3", found="a\n\nb", remedy="try\nagain"), "line 3: bad\nfound a b\ntry again"),
        (DeviceError("no answer"), "no answer"),
        (
            DeviceError("bad opcode", code=3, unit="sequencer", detail=0x40),
            "sequencer: bad opcode\ncode 0x3, detail 0x40",
        ),
        (DeviceError("halted", code=0, detail="slot\n5"), "halted\ncode 0x0, detail slot 5"),
    ],
)
def test_text(error: GharialError, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize(
    "error",
    [BadInput("what", where="w", found=1, expected=2, remedy="r"), DeviceError("what", code=1, unit="dma", detail=2)],
)
def test_survives_a_process_boundary(error: GharialError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)
