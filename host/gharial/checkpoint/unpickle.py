# SPDX-License-Identifier: Apache-2.0
"""The pickle inside a torch checkpoint, interpreted without the pickle module.

A pickle is a program for a stack machine whose REDUCE calls whatever the file names. Only the instructions that
`torch.save` needs for dicts, lists, numbers, text, bytes and tensors are known here (pickle protocols 2 to 5), and the
names a file may use are a fixed table that stands for data, never for an importable object. Tensors come out as
`TensorRef`.

Bounds, all checked before memory is taken: instructions (`MAX_INSTRUCTIONS`), every length against the bytes left,
nesting (`MAX_DEPTH`), and the size of the result as a tree (`MAX_NODES` and its text): instructions that fetch an
earlier object can make a few bytes stand for 2**n nodes, which only hurts whoever walks the result. Dict keys are text
or small integers, because hashing nested tuples of such an object would take as long.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from gharial.checkpoint.rebuild import GLOBALS, Global, Rebuilder, StorageCheck
from gharial.checkpoint.tensors import StorageRef, TensorRef
from gharial.checkpoint.text import shown
from gharial.errors import BadInput

MAX_INSTRUCTIONS = 200_000
"""A tensor takes about 30; a training checkpoint of the large model some 20 000 in all."""

MAX_DEPTH = 64
MAX_NODES = 500_000
_MAX_KEY = 1 << 63
_MAX_NAME = 256

_CALLS = {
    0x69: "INST",
    0x6F: "OBJ",
    0x81: "NEWOBJ",
    0x92: "NEWOBJ_EX",
    0x82: "EXT1",
    0x83: "EXT2",
    0x84: "EXT4",
}
"""Instructions that always make an instance of a class, or look one up in a registry."""

_UNTRUSTED = "do not open it with pickle or torch.load; export the checkpoint again, or get it from someone you trust"
_DAMAGED = "copy or download the file again: it is damaged"
_EXPECTED = "a pickle as torch.save writes it of plain data and tensors"


def unpickle(data: bytes, where: str, check_storage: StorageCheck) -> Any:
    """The object that `data` describes: dict, OrderedDict, list, tuple, str, bytes, int, float, bool, None, TensorRef.

    Args:
        data: pickle of protocol 2 to 5.
        where: name of file and member, for messages.
        check_storage: called with each `StorageRef`; raises BadInput if the archive has no such storage.

    Raises:
        BadInput: the pickle would run code, is damaged, uses what no checkpoint needs, or exceeds a bound.
    """
    machine = _Machine(data, where, check_storage)
    root = machine.run()
    _TreeCheck(where, 4 * len(data) + (1 << 20)).check(root)
    return root


class _Machine:
    """One run of the stack machine over one pickle."""

    def __init__(self, data: bytes, where: str, check_storage: StorageCheck) -> None:
        self._data = data
        self._where = where
        self._at = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        # A dict, not a list: BINPUT may name any index up to 2**32.
        self._memo: dict[int, Any] = {}
        self._rebuild = Rebuilder(self._fail, check_storage, len(data))

    def run(self) -> Any:
        if self._data[:1] != b"\x80":
            raise self._fail("does not start as a pickle of protocol 2 or later", shown(self._data[:1]), "byte 0x80")
        for _ in range(MAX_INSTRUCTIONS):
            at = self._at
            code = self._byte()
            if code == 0x2E:  # STOP
                return self._stop()
            handler = _HANDLERS.get(code)
            if handler is None:
                self._at = at
                if code in _CALLS:
                    raise self._code(f"its instruction {_CALLS[code]} makes an object of a class")
                raise self._fail("uses a pickle instruction that no checkpoint needs", f"0x{code:02x}")
            handler(self)
        raise self._fail("is too long", f"over {MAX_INSTRUCTIONS} instructions", remedy=_UNTRUSTED)

    # Errors

    def _fail(self, what: str, found: object = None, expected: object = None, remedy: str = _DAMAGED) -> BadInput:
        if found is None:
            found = f"bytes {self._data[max(self._at - 8, 0) : self._at].hex(' ')}"
        return BadInput(f"pickle {what}", f"{self._where} byte {self._at}", found, expected or _EXPECTED, remedy)

    def _code(self, what: str, found: object = None, expected: object = None) -> BadInput:
        return self._fail(f"would run code: {what}", found, expected, _UNTRUSTED)

    # Reading

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise self._fail("is cut short", f"{len(self._data) - self._at} bytes left", f"{size} bytes")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def _byte(self) -> int:
        return self._take(1)[0]

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _text(self, size: int) -> str:
        try:
            return self._take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise self._fail("holds text that is not UTF-8") from None

    def _line(self) -> str:
        end = self._data.find(b"\n", self._at, self._at + _MAX_NAME)
        if end < 0:
            raise self._fail("names something without an end of line", remedy=_UNTRUSTED)
        text = self._text(end - self._at)
        self._at = end + 1
        return text

    # Stack

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        # What lies below a mark belongs to an outer instruction.
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise self._fail("takes more from its stack than it put there")
        return self._stack.pop()

    def _top(self) -> Any:
        value = self._pop()
        self._stack.append(value)
        return value

    def _pop_mark(self) -> list[Any]:
        if not self._marks:
            raise self._fail("lacks the mark of a group")
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _stop(self) -> Any:
        if len(self._stack) != 1 or self._marks:
            raise self._fail("ends with an unfinished value", f"{len(self._stack)} values", "1")
        if self._at != len(self._data):
            raise self._fail("has bytes after its end", f"{len(self._data) - self._at} bytes", "0")
        return self._stack[0]

    # Instructions

    def _proto(self) -> None:
        protocol = self._byte()
        if self._at != 2 or not 2 <= protocol <= 5:
            raise self._fail("has an unknown protocol", protocol, "2 to 5", "save the checkpoint with a current torch")

    def _frame(self) -> None:
        size = self._number(8)
        if size > len(self._data) - self._at:
            raise self._fail("is cut short", f"{len(self._data) - self._at} bytes left", f"a frame of {size}")

    def _long1(self) -> None:
        self._push(int.from_bytes(self._take(self._byte()), "little", signed=True))

    def _float(self) -> None:
        (value,) = struct.unpack(">d", self._take(8))
        self._push(value)

    def _tuple(self, count: int) -> None:
        items = [self._pop() for _ in range(count)]
        self._push(tuple(reversed(items)))

    def _append(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not list:
            raise self._fail("appends to what is no list", shown(target))
        target.extend(items)

    def _set(self, items: list[Any]) -> None:
        target = self._top()
        if not isinstance(target, dict):
            raise self._fail("sets items of what is no dict", shown(target))
        if len(items) % 2:
            raise self._fail("has a dict key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) is not str and not (type(key) is int and -_MAX_KEY <= key < _MAX_KEY):
                raise self._fail("has a dict key that is neither text nor an integer", shown(key), "str or int")
            if key in target:
                raise self._fail(f"sets the key {shown(key)} of a dict twice")
            target[key] = value

    def _set_item(self) -> None:
        value = self._pop()
        key = self._pop()
        self._set([key, value])

    def _memoise(self, index: int) -> None:
        self._memo[index] = self._top()

    def _recall(self, index: int) -> None:
        if index not in self._memo:
            raise self._fail("recalls an object that it never stored", f"index {index}")
        self._push(self._memo[index])

    def _named(self, module: object, name: object) -> None:
        if type(module) is not str or type(name) is not str:
            raise self._code("it looks up a name that it computes", f"{shown(module)} and {shown(name)}")
        known = GLOBALS.get((module, name))
        if known is None:
            full = shown(f"{module}.{name}", 120)
            if module == "torch" and name.endswith("Storage"):
                raise self._fail(
                    "holds a tensor of an element type that is not supported",
                    full,
                    "float, integer or bool",
                    "convert the tensors to float32 and save again",
                )
            raise self._code(f"it names {full}", full, "only the names that tensors and dicts need")
        self._push(known)

    def _global(self) -> None:
        module = self._line()
        self._named(module, self._line())

    def _stack_global(self) -> None:
        name = self._pop()
        self._named(self._pop(), name)

    def _reduce(self) -> None:
        arguments = self._pop()
        function = self._pop()
        if not isinstance(function, Global):
            raise self._code("it calls an object", shown(function))
        if type(arguments) is not tuple:
            raise self._fail("calls with what is no tuple", shown(arguments))
        self._push(self._rebuild.call(function, arguments))

    def _build(self) -> None:
        # An OrderedDict carries attributes when it is a module's state_dict: `_metadata`, the version number of each
        # layer type. They say nothing about the weights and are dropped.
        state = self._pop()
        if type(self._top()) is not OrderedDict or not isinstance(state, dict):
            raise self._code("its instruction BUILD sets attributes of an object", shown(self._top()))

    def _persistent(self) -> None:
        self._push(self._rebuild.storage(self._pop()))


_HANDLERS: dict[int, Callable[[_Machine], None]] = {
    0x80: _Machine._proto,
    0x95: _Machine._frame,
    ord("("): lambda m: m._marks.append(len(m._stack)),
    ord("N"): lambda m: m._push(None),
    0x88: lambda m: m._push(True),
    0x89: lambda m: m._push(False),
    ord("J"): lambda m: m._push(int.from_bytes(m._take(4), "little", signed=True)),
    ord("K"): lambda m: m._push(m._byte()),
    ord("M"): lambda m: m._push(m._number(2)),
    0x8A: _Machine._long1,
    ord("G"): _Machine._float,
    ord("X"): lambda m: m._push(m._text(m._number(4))),
    0x8C: lambda m: m._push(m._text(m._byte())),
    0x8D: lambda m: m._push(m._text(m._number(8))),
    ord("B"): lambda m: m._push(m._take(m._number(4))),
    ord("C"): lambda m: m._push(m._take(m._byte())),
    0x8E: lambda m: m._push(m._take(m._number(8))),
    ord("]"): lambda m: m._push([]),
    ord("}"): lambda m: m._push({}),
    ord(")"): lambda m: m._push(()),
    ord("t"): lambda m: m._push(tuple(m._pop_mark())),
    0x85: lambda m: m._tuple(1),
    0x86: lambda m: m._tuple(2),
    0x87: lambda m: m._tuple(3),
    ord("a"): lambda m: m._append([m._pop()]),
    ord("e"): lambda m: m._append(m._pop_mark()),
    ord("s"): _Machine._set_item,
    ord("u"): lambda m: m._set(m._pop_mark()),
    ord("h"): lambda m: m._recall(m._byte()),
    ord("j"): lambda m: m._recall(m._number(4)),
    ord("q"): lambda m: m._memoise(m._byte()),
    ord("r"): lambda m: m._memoise(m._number(4)),
    0x94: lambda m: m._memoise(len(m._memo)),
    ord("c"): _Machine._global,
    0x93: _Machine._stack_global,
    ord("R"): _Machine._reduce,
    ord("b"): _Machine._build,
    ord("Q"): _Machine._persistent,
}


class _TreeCheck:
    """Size and shape of a result that is used as a tree although objects may be shared in it."""

    def __init__(self, where: str, max_text: int) -> None:
        self._where = where
        self._max_text = max_text
        # Object id to (nodes, characters of text, height) of its whole expansion. The root keeps every object alive.
        self._known: dict[int, tuple[int, int, int]] = {}
        self._open: set[int] = set()

    def check(self, root: Any) -> None:
        self._weigh(root, 0)

    def _fail(self, what: str, found: str) -> BadInput:
        return BadInput(f"pickle {what}", self._where, found, _EXPECTED, _UNTRUSTED)

    def _weigh(self, value: Any, depth: int) -> tuple[int, int, int]:
        kind = type(value)
        if kind is str or kind is bytes:
            return 1, len(value), 0
        if value is None or kind in (bool, int, float, TensorRef):
            return 1, 0, 0
        if kind in (Global, StorageRef):
            raise self._fail("leaves a class or a bare storage in its result", shown(value))
        known = self._known.get(id(value))
        # Recursion stays within MAX_DEPTH calls.
        if depth + (known[2] if known else 0) > MAX_DEPTH:
            raise self._fail(f"nests deeper than {MAX_DEPTH} levels", "more levels")
        if known is not None:
            return known
        if id(value) in self._open:
            raise self._fail("holds an object that contains itself", shown(value))
        self._open.add(id(value))
        nodes, text, height = 1, 0, 0
        children = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        for child in children:
            more_nodes, more_text, below = self._weigh(child, depth + 1)
            nodes += more_nodes
            text += more_text
            height = max(height, below + 1)
            if nodes > MAX_NODES or text > self._max_text:
                raise self._fail(
                    "repeats its parts until the result is far larger than the file", f"over {nodes:,} parts"
                )
        self._open.remove(id(value))
        self._known[id(value)] = (nodes, text, height)
        return nodes, text, height
