# SPDX-License-Identifier: Apache-2.0
"""Settings from a file, from the environment and from flags: read and checked the same way from all three.

A rule says what a setting is called and may be; fields of a dataclass that are made by `setting` bring theirs along.
What comes later wins: defaults, file, environment, flags. Every error names where the value came from.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import math
import tomllib
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from gharial.errors import BadInput
from gharial.files import open_regular

PREFIX = "GHARIAL_SERVE_"
"""What the names of environment variables begin with."""

CONFIG = "config"
"""The flag, and behind the prefix the variable, that names the file."""

_KEY = "setting"
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Rule:
    """What a setting may be.

    Attributes:
        help: what it is for, as `--help` says it.
        group: heading that it stands under there.
        least, most: range of a number, both included.
        choices: texts that it may be; empty for any.
        metavar: what stands for the value in `--help`.
    """

    help: str
    group: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    metavar: str = "X"


@dataclass(frozen=True)
class Setting(Rule):
    """A rule with the name and the type of its field.

    Attributes:
        name: as in a file.
        kind: str, int, float, bool, tuple for a list of texts, dict for a list of tables, which only a file can have.
        default: where nobody says anything.
        table: of a list of tables, what is in each.
    """

    name: str = ""
    kind: type = str
    default: Any = None
    table: tuple[Setting, ...] = ()

    @property
    def flag(self) -> str:
        """On the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """In the environment."""
        return PREFIX + self.name.upper()

    @property
    def expected(self) -> str:
        """What would have been taken."""
        if self.choices:
            return ("a list of " if self.kind is tuple else "") + ", ".join(self.choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "a text"
        if self.kind is tuple:
            return "a list of texts"
        if self.kind is dict:
            return f"tables that begin [[{self.name}]]"
        noun = "a whole number" if self.kind is int else "a number"
        if self.least is not None and self.most is not None:
            return f"{noun} from {self.least:,g} to {self.most:,g}"
        return noun if self.least is None else f"{noun}, {self.least:,g} or more"


def setting(default: Any, help: str, **rule: Any) -> Any:
    """A field of a dataclass of settings; the other arguments are those of `Rule`."""
    return dataclasses.field(default=default, metadata={_KEY: Rule(help, **rule)})


def settings_of(kind: type) -> tuple[Setting, ...]:
    """The settings of a dataclass, in its order. Fields that were not made by `setting` are none."""
    hints = get_type_hints(kind)
    found = []
    for field in dataclasses.fields(kind):
        if _KEY in field.metadata:
            rule = {at.name: getattr(field.metadata[_KEY], at.name) for at in dataclasses.fields(Rule)}
            found.append(Setting(**rule, name=field.name, kind=_plain(hints[field.name]), default=field.default))
    return tuple(found)


def _plain(hint: Any) -> type:
    """The type of a setting by its annotation: of `X | None` X, of a tuple of texts tuple."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    return get_origin(hint) or hint


def checked(rule: Setting, value: object, where: str) -> Any:
    """A value as the setting takes it.

    Args:
        rule: the setting.
        value: of any type, as a file or a caller gives it.
        where: where it came from.

    Raises:
        BadInput: it is of another type, out of range, or none of the choices.
    """
    kinds = {float: int | float, tuple: list | tuple, dict: list}.get(rule.kind, rule.kind)
    if not isinstance(value, kinds) or (isinstance(value, bool) and rule.kind is not bool):
        raise _wrong_type(rule, value, where)
    if isinstance(value, list | tuple):
        if rule.kind is dict:
            return [_table(rule, item, f"{where}[{index}]") for index, item in enumerate(value)]
        return tuple(_text(rule, item, where) for item in value)
    if rule.kind is str:
        return _text(rule, value, where)
    if rule.kind in (int, float) and isinstance(value, int | float):
        low, high = rule.least, rule.most
        if not _finite(value) or (low is not None and value < low) or (high is not None and value > high):
            raise BadInput("is out of range", where, value, rule.expected)
        return rule.kind(value)
    return value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def _table(rule: Setting, value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong_type(rule, value, where)
    rules = {part.name: part for part in rule.table}
    for name in value:
        if name not in rules:
            raise _unknown("no such setting", f"{where}.{name}", name, rules)
    return {name: checked(rules[name], part, f"{where}.{name}") for name, part in value.items()}


def _text(rule: Setting, value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong_type(rule, value, where)
    if "\0" in value:
        raise BadInput("holds a zero byte", where, repr(value), rule.expected)
    _choose(rule, value, where)
    return value


def _wrong_type(rule: Setting, value: object, where: str) -> BadInput:
    shown = f"{value!r}" if isinstance(value, str | int | float) else ""
    return BadInput("is of the wrong type", where, f"{shown} ({_kind(value)})".strip(), rule.expected)


def _choose(rule: Setting, value: str, where: str) -> None:
    if rule.choices and value not in rule.choices:
        raise BadInput("is none of the choices", where, value, rule.expected, _near(value, rule.choices))


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list"}
    return names.get(type(value), "a table" if isinstance(value, dict) else type(value).__name__)


def parsed(rule: Setting, text: str, where: str) -> Any:
    """A value from text, as the environment and the command line have it; lists are separated by commas.

    Raises:
        BadInput: as for `checked`.
    """
    value: object = text
    if rule.kind is bool:
        word = text.strip().lower()
        value = True if word in _TRUE else False if word in _FALSE else text
    elif rule.kind is tuple:
        value = [part.strip() for part in text.split(",") if part.strip()]
    elif rule.kind in (int, float):
        try:
            value = rule.kind(text)
        except ValueError:
            raise BadInput("is no number", where, text, rule.expected) from None
    return checked(rule, value, where)


@dataclass(frozen=True)
class Configured:
    """Settings that somebody made, and where each came from.

    Attributes:
        values: by name.
        sources: "--port", "GHARIAL_SERVE_PORT" or "serve.toml: port", by name.
    """

    values: Mapping[str, Any]
    sources: Mapping[str, str]

    @contextmanager
    def named(self, aliases: Mapping[str, str] | None = None) -> Iterator[None]:
        """Have errors about a setting name where it came from.

        Args:
            aliases: further names under which errors know a setting ("--ngram"), each with the setting's.
        """
        try:
            yield
        except BadInput as error:
            where = "" if error.where is None else str(error.where)
            for alias, name in {**{name: name for name in self.sources}, **(aliases or {})}.items():
                if name in self.sources and (where == alias or where.startswith((f"{alias} ", f"{alias}: "))):
                    moved = self.sources[name] + where.removeprefix(alias)
                    raise BadInput(error.what, moved, error.found, error.expected, error.remedy) from None
            raise


def configured(
    settings: Sequence[Setting], flags: Mapping[str, Any], environ: Mapping[str, str], file: str | None = None
) -> Configured:
    """What the file, the environment and the flags say.

    Args:
        settings: what there is.
        flags: text, or the value itself, by name of the setting; None where it was not given; those of other names are
            passed over.
        environ: the environment.
        file: a configuration file; None for the one that the environment names, or none.

    Raises:
        BadInput: a name that is no setting's, a value that a setting does not take, a file that cannot be used.
    """
    rules = {rule.name: rule for rule in settings}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    file = file if file is not None else environ.get(PREFIX + CONFIG.upper())
    if file is not None:
        for name, value in _read(file).items():
            where = f"{file}: {name}"
            if name not in rules:
                raise _unknown("no such setting", where, name, rules)
            values[name], sources[name] = checked(rules[name], value, where), where
    variables = {rule.variable: rule for rule in settings if rule.kind is not dict}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        if variable == PREFIX + CONFIG.upper():
            continue
        if variable not in variables:
            raise _unknown("no such setting in the environment", variable, variable, variables)
        rule = variables[variable]
        values[rule.name], sources[rule.name] = parsed(rule, environ[variable], variable), variable
    for name, given in flags.items():
        if given is not None and name in rules:
            rule = rules[name]
            read = parsed if isinstance(given, str) else checked
            values[name], sources[name] = read(rule, given, rule.flag), rule.flag
    return Configured(values, sources)


def _read(file: str) -> dict[str, Any]:
    with open_regular(file, "a configuration file in TOML") as opened:
        data = opened.read()
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        found = f"byte {data[error.start]:#04x} at {error.start}"
        raise BadInput("is no text", file, found, "TOML in UTF-8") from None
    except (ValueError, RecursionError) as error:  # the latter, and a plain ValueError, of what is far too long
        raise BadInput("is not TOML", file, error, "lines such as: port = 3030", "put texts in quotes") from None


def _unknown(what: str, where: str, name: str, known: Iterable[str]) -> BadInput:
    known = sorted(known)
    remedy = _near(name, known) or f"there are {', '.join(known)}"
    return BadInput(what, where, remedy=remedy)


def _near(name: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]}?" if near else None


def add_flags(parser: argparse.ArgumentParser, settings: Iterable[Setting]) -> None:
    """Add a flag for each setting; all of them are text, or None, for `configured` to look at."""
    groups: dict[str, Any] = {}
    for rule in settings:
        if rule.kind is dict:
            continue
        if rule.group not in groups:
            groups[rule.group] = parser.add_argument_group(rule.group or None)
        how: dict[str, Any] = {"dest": rule.name, "default": None, "help": _help(rule)}
        if rule.kind is bool:
            yes, no = rule.flag, "--no-" + rule.flag[2:]
            one = groups[rule.group].add_mutually_exclusive_group()
            one.add_argument(yes, action="store_const", const="true", **how)
            one.add_argument(no, action="store_const", const="false", dest=rule.name, help=argparse.SUPPRESS)
        elif rule.kind is tuple:
            groups[rule.group].add_argument(rule.flag, action="append", metavar=rule.metavar, **how)
        else:
            metavar = "{" + ",".join(rule.choices) + "}" if rule.choices else rule.metavar
            groups[rule.group].add_argument(rule.flag, metavar=metavar, **how)


def _help(rule: Setting) -> str:
    default = rule.default
    if rule.kind is bool:
        shown = "on" if default else "off"
    elif default is None or default == ():
        return rule.help
    else:
        shown = ", ".join(default) if isinstance(default, tuple) else f"{default:g}" if rule.kind is float else default
    return f"{rule.help} ({shown})".replace("%", "%%")
