# SPDX-License-Identifier: Apache-2.0
"""Every exception that gharial raises on purpose.

A caller (the command line above all) tells the cases apart by `exit_code`: 1 for a device, an input/output or a
check that failed, 2 for input or usage that was wrong from the start. `str(error)` is one to three short lines meant
for a person: what is wrong and where; what was found and what was expected; how to put it right.
"""

from __future__ import annotations


class GharialError(Exception):
    """Something failed although the input was good.

    Base class of every other exception here, so `except GharialError` catches all that gharial raises on purpose.
    """

    exit_code: int = 1


class BadInput(GharialError):
    """Input, an option or a file that cannot be used as it stands.

    Args:
        what: what is wrong, a clause without a full stop ("sample rate is not supported").
        where: file, option, tensor or line that holds the fault; put in front of `what`.
        found: the value met; shown with `str()`.
        expected: the values that would have been accepted; shown with `str()`.
        remedy: what the reader can do about it.
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        where: object = None,
        found: object = None,
        expected: object = None,
        remedy: str | None = None,
    ) -> None:
        # All parts go to Exception as well: that keeps the error picklable, which worker processes need.
        super().__init__(what, where, found, expected, remedy)
        self.what = what
        self.where = where
        self.found = found
        self.expected = expected
        self.remedy = remedy

    def __str__(self) -> str:
        lines = [self.what if self.where is None else f"{_one_line(self.where)}: {self.what}"]
        facts = [
            f"{label} {_one_line(value)}"
            for label, value in (("found", self.found), ("expected", self.expected))
            if value is not None
        ]
        if facts:
            lines.append(", ".join(facts))
        if self.remedy is not None:
            lines.append(self.remedy)
        return "\n".join(_one_line(line) for line in lines)


class DeviceError(GharialError):
    """A device reported an error, or did not answer within its limit.

    Args:
        what: what happened, a clause without a full stop.
        code: error code as the device's error register holds it, or None where the driver itself found the fault.
        unit: hardware unit that raised it ("dma", "sequencer", "link", ...), or None.
        detail: the code's further word (an address, a descriptor index), or None.
    """

    def __init__(
        self,
        what: str,
        code: int | None = None,
        unit: str | None = None,
        detail: int | str | None = None,
    ) -> None:
        super().__init__(what, code, unit, detail)
        self.what = what
        self.code = code
        self.unit = unit
        self.detail = detail

    def __str__(self) -> str:
        head = self.what if self.unit is None else f"{self.unit}: {self.what}"
        facts = []
        if self.code is not None:
            facts.append(f"code {self.code:#x}")
        if self.detail is not None:
            detail = f"{self.detail:#x}" if isinstance(self.detail, int) else _one_line(self.detail)
            facts.append(f"detail {detail}")
        return "\n".join([_one_line(head), ", ".join(facts)] if facts else [_one_line(head)])


class LinkError(DeviceError):
    """The way to the device does not work: it reads all ones or zeros, or what comes back contradicts itself."""


class DeviceTimeout(DeviceError):
    """A device did not get done within its limit. `unit` is what stands still, as status and counters show it."""


class CommandFailed(DeviceError):
    """A device refused a command, or failed in it.

    Args:
        what: what happened and what can be done about it.
        code: the fault's number (gharial.isa.faults.Fault).
        unit: hardware unit that saw it.
        detail: the fault's further word.
        fault: the fault's name.
        entry: index of the batch's entry at fault.
        lost_encoder: encoder slots that hold nothing any more, or may not; reset or restore them before use.
        lost_prediction: the same of prediction slots.
    """

    def __init__(
        self,
        what: str,
        code: int | None = None,
        unit: str | None = None,
        detail: int | str | None = None,
        *,
        fault: str = "",
        entry: int | None = None,
        lost_encoder: tuple[int, ...] = (),
        lost_prediction: tuple[int, ...] = (),
    ) -> None:
        super().__init__(what, code, unit, detail)
        self.fault = fault
        self.entry = entry
        self.lost_encoder = lost_encoder
        self.lost_prediction = lost_prediction


class Refused(GharialError):
    """A stream that a server does not take.

    Args:
        status: 400 if it was asked for wrongly, 503 if there is no place for it; as in HTTP.
        reason: why, for the client.
        logged: the same for a log, without what the client has sent; None where there is nothing of it in `reason`.
    """

    def __init__(self, status: int, reason: str, logged: str | None = None) -> None:
        super().__init__(status, reason, logged)
        self.status = status
        self.reason = reason
        self.logged = reason if logged is None else logged

    def __str__(self) -> str:
        return f"{self.status} {_one_line(self.reason)}"


class ServerError(GharialError):
    """A speech server did not answer, refused a stream, or ended one before it was complete.

    Args:
        what: what happened, a clause without a full stop.
        where: address of the server.
        code: status that the server gave, as HTTP numbers it (400, 401, 503), or None where it gave none.
        again: whether the same stream may well be taken later.
        remedy: what the reader can do about it.
    """

    def __init__(
        self,
        what: str,
        where: object = None,
        code: int | None = None,
        again: bool = False,
        remedy: str | None = None,
    ) -> None:
        super().__init__(what, where, code, again, remedy)
        self.what = what
        self.where = where
        self.code = code
        self.again = again
        self.remedy = remedy
        # What the server will never take as it stands is the caller's input.
        self.exit_code = BadInput.exit_code if code is not None and 400 <= code < 500 and not again else 1

    def __str__(self) -> str:
        lines = [self.what if self.where is None else f"{_one_line(self.where)}: {self.what}", self.remedy or ""]
        return "\n".join(_one_line(line) for line in lines if line)


class BadRequest(GharialError, ValueError):
    """A call that a device would refuse. It was found out before anything was sent, so nothing has changed."""


def _one_line(value: object) -> str:
    """Text of `value`, '' if empty, every run of white space made one space: an error stays within its three lines."""
    return " ".join(str(value).split()) or "''"
