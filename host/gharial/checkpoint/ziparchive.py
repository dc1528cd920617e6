# SPDX-License-Identifier: Apache-2.0
"""The zip container of a torch checkpoint: a directory of stored (uncompressed) members.

Why not `zipfile`: it builds its whole directory, some ten times the size of the records, before a caller can look at
a number; it takes members that overlap or appear twice; and it raises half a dozen unrelated exception types on bad
input. torch writes a narrow subset (stored members, zip64 end records, no comment), so that subset is all that is
read, and each number is compared with the file's size before it is used. Format: PKWARE APPNOTE 6.3.

Member names are only compared, never used as paths.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from dataclasses import dataclass
from typing import BinaryIO

from gharial.checkpoint.text import shown
from gharial.errors import BadInput

MAX_MEMBERS = 16384
"""Members of one archive; a training checkpoint of the large model has about 500."""

MAX_DIRECTORY_BYTES = 8 << 20
"""Size of the central directory; MAX_MEMBERS of them with long names stay below it."""

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_LOCATOR64 = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQ2H2I4Q")

_DAMAGED = "copy or download the file again: it is damaged or was cut short"
_RESAVE = "save it again with torch.save, which stores members uncompressed"


@dataclass(frozen=True)
class Member:
    """One stored member.

    Attributes:
        name: name as the directory gives it.
        offset: position of the first data byte in the file.
        size: number of data bytes.
        crc: CRC-32 of the data.
        closed: why it cannot be read (compressed, encrypted), or None. Only reading it is an error, since a TorchScript
            archive has such members and deserves a better answer.
    """

    name: str
    offset: int
    size: int
    crc: int
    closed: str | None


class ZipArchive:
    """Directory of an open zip file, checked as a whole.

    Args:
        file: a seekable binary file.
        size: its size in bytes.
        path: how messages name it.

    Raises:
        BadInput: no end record at the end of the file, too many members, a member that is named twice, lies outside the
            file or overlaps another.
    """

    def __init__(self, file: BinaryIO, size: int, path: str) -> None:
        self._file = file
        self._size = size
        self._path = path
        count, start, length = self._end_record()
        self.members: dict[str, Member] = self._directory(count, start, length)

    def read(self, name: str) -> bytes:
        """Data of member `name`, its CRC-32 checked. Raises BadInput when absent, damaged, compressed or encrypted."""
        member = self.members.get(name)
        if member is None:
            found = f"{len(self.members)} others"
            raise BadInput("a member is missing", f"{self._path}: {shown(name)}", found, "the member", _DAMAGED)
        if member.closed is not None:
            what = f"member {shown(name)} is {member.closed}"
            raise self._fail(what, member.closed, "a stored member", _RESAVE)
        data = self._read_at(member.offset, member.size)
        crc = zlib.crc32(data)
        if crc != member.crc:
            raise BadInput(
                "the member's data is damaged",
                f"{self._path}: {shown(name)}",
                f"CRC-32 {crc:08x}",
                f"{member.crc:08x}",
                _DAMAGED,
            )
        return data

    def _fail(self, what: str, found: object = None, expected: object = None, remedy: str = _DAMAGED) -> BadInput:
        found = f"a file of {self._size} bytes" if found is None else found
        expected = "a zip file as torch.save writes it" if expected is None else expected
        return BadInput(what, f"{self._path}: zip directory", found, expected, remedy)

    def _read_at(self, offset: int, size: int) -> bytes:
        # The caller has compared offset + size with the file's size; a shorter answer means the file changed since.
        self._file.seek(offset)
        data = self._file.read(size)
        if len(data) != size:
            raise self._fail("the file shrank while it was read", f"{len(data)} bytes", f"{size} bytes")
        return data

    def _end_record(self) -> tuple[int, int, int]:
        """(number of members, directory offset, directory size) out of the end record or its zip64 form."""
        if self._size < _END.size:
            raise self._fail("the file is too short for a zip", f"{self._size} bytes", f"at least {_END.size}")
        end_at = self._size - _END.size
        signature, disk, first_disk, here, count, length, start, comment = _END.unpack(self._read_at(end_at, _END.size))
        if signature != b"PK\5\6":
            raise self._fail("no end record at the end of the file: it was cut short, or something was appended")
        if comment or disk not in (0, 0xFFFF) or first_disk not in (0, 0xFFFF) or here != count:
            raise self._fail("comment or several disks in the end record")
        directory_end = end_at
        locator_at = end_at - _LOCATOR64.size
        if locator_at >= 0:
            mark, _, end64_at, _ = _LOCATOR64.unpack(self._read_at(locator_at, _LOCATOR64.size))
            if mark == b"PK\6\7":
                if end64_at != locator_at - _END64.size:
                    raise self._fail("zip64 end record is not where its locator must find it", end64_at)
                signature, _, _, _, _, _, here, count, length, start = _END64.unpack(
                    self._read_at(end64_at, _END64.size)
                )
                if signature != b"PK\6\6" or here != count:
                    raise self._fail("zip64 end record is damaged")
                directory_end = end64_at
        if count > MAX_MEMBERS or length > MAX_DIRECTORY_BYTES:
            raise self._fail(
                "too many members",
                f"{count} members, directory of {length} bytes",
                f"at most {MAX_MEMBERS} members and {MAX_DIRECTORY_BYTES} bytes",
                "this is no checkpoint that torch.save wrote",
            )
        if start + length != directory_end:
            raise self._fail("directory does not end at the end record", start + length, directory_end)
        return count, start, length

    def _directory(self, count: int, start: int, length: int) -> dict[str, Member]:
        records = self._read_at(start, length)
        members: dict[str, Member] = {}
        # (header offset, end of data) of every member, for the overlap check.
        extents: list[tuple[int, int]] = []
        at = 0
        for _ in range(count):
            name, flags, method, crc, packed, size, header_at, at = self._central(records, at)
            if name in members:
                raise self._fail(f"two members have the name {shown(name)}", remedy="save the checkpoint again")
            closed = "encrypted" if flags & 0x41 else f"compressed (method {method})" if method != 0 else None
            if closed is None and packed != size:
                raise self._fail(f"stored member {shown(name)} has two sizes", f"{packed} bytes", f"{size} bytes")
            offset = self._local(name, flags, method, header_at, start)
            if offset + packed > start:
                raise self._fail(
                    f"member {shown(name)} reaches beyond the data", f"{packed} bytes at {offset}", f"an end by {start}"
                )
            members[name] = Member(name, offset, size, crc, closed)
            extents.append((header_at, offset + packed))
        if at != length:
            raise self._fail("directory has bytes left over", length - at, 0)
        extents.sort()
        for (_, end), (following, _) in itertools.pairwise(extents):
            if following < end:
                raise self._fail("two members overlap", remedy="this is no checkpoint that torch.save wrote")
        return members

    def _central(self, records: bytes, at: int) -> tuple[str, int, int, int, int, int, int, int]:
        """One central directory record: name, flags, method, crc, packed size, size, header offset, next position."""
        if at + _CENTRAL.size > len(records):
            raise self._fail("directory is cut short")
        fields = _CENTRAL.unpack_from(records, at)
        signature, _, _, flags, method, _, _, crc, packed, size, name_len, extra_len, comment_len = fields[:13]
        header_at = fields[16]
        name_at = at + _CENTRAL.size
        extra_at = name_at + name_len
        following = extra_at + extra_len + comment_len
        if signature != b"PK\1\2" or following > len(records):
            raise self._fail("directory record is damaged", f"at byte {at}")
        try:
            name = records[name_at:extra_at].decode("utf-8")
        except UnicodeDecodeError:
            raise self._fail("member name is not UTF-8", shown(records[name_at:extra_at])) from None
        if 0xFFFFFFFF in (packed, size, header_at):
            extra = records[extra_at : extra_at + extra_len]
            size, packed, header_at = self._zip64_extra(extra, (size, packed, header_at))
        return name, flags, method, crc, packed, size, header_at, following

    def _zip64_extra(self, extra: bytes, values: tuple[int, int, int]) -> tuple[int, ...]:
        """The values (size, packed size, header offset) with each 0xFFFFFFFF replaced by its 64-bit one, in order."""
        at = 0
        while at + 4 <= len(extra):
            kind, length = struct.unpack_from("<HH", extra, at)
            at += 4
            if kind == 1:
                need = [i for i, value in enumerate(values) if value == 0xFFFFFFFF]
                if 8 * len(need) > length or at + length > len(extra):
                    break
                wide = list(values)
                for position, i in enumerate(need):
                    (wide[i],) = struct.unpack_from("<Q", extra, at + 8 * position)
                return tuple(wide)
            at += length
        raise self._fail("zip64 sizes are missing")

    def _local(self, name: str, flags: int, method: int, header_at: int, limit: int) -> int:
        """Offset of the data behind the local header at `header_at`, which must name the same member."""
        if header_at + _LOCAL.size > limit:
            raise self._fail(f"header of member {shown(name)} lies outside the data", header_at, f"below {limit}")
        fields = _LOCAL.unpack(self._read_at(header_at, _LOCAL.size))
        signature, local_flags, local_method = fields[0], fields[2], fields[3]
        name_len, extra_len = fields[9], fields[10]
        offset = header_at + _LOCAL.size + name_len + extra_len
        encoded = name.encode("utf-8")
        if signature != b"PK\3\4" or offset > limit or name_len != len(encoded):
            raise self._fail(f"header of member {shown(name)} is damaged", f"at byte {header_at}")
        # Two readers must not see two different members: one by the directory, one by the headers.
        same = local_method == method and (local_flags ^ flags) & 0x41 == 0
        if not same or self._read_at(header_at + _LOCAL.size, name_len) != encoded:
            raise self._fail(f"header of member {shown(name)} contradicts the directory", f"at byte {header_at}")
        return offset
