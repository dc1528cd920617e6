# SPDX-License-Identifier: Apache-2.0
"""A YAML file as plain data, within bounds: no objects are made, and no few lines grow into gigabytes."""

from __future__ import annotations

import os
from typing import Any

import yaml

from gharial.checkpoint.text import shown
from gharial.errors import BadInput
from gharial.files import open_regular

MAX_BYTES = 1 << 20
"""Largest file; a training configuration has 4 kB."""

_MAX_MERGED = 100_000  # keys in all; a training configuration merges twenty or so
_EXPECTED = "the YAML configuration that the model was trained with"
_GIVE = "give the file that training was given (--model_config)"


class _Loader(yaml.SafeLoader):
    """SafeLoader with a bound on `<<`, which copies what it merges: a megabyte of it can stand for gigabytes."""

    merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # Counted before it is done: one list of merges can stand for gigabytes by itself.
        for key, value in list(node.value):
            if key.tag == "tag:yaml.org,2002:merge":
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(part, yaml.MappingNode):
                        self.merged += len(part.value)
                        self._check(node)
                        self.flatten_mapping(part)
        before = len(node.value)
        super().flatten_mapping(node)
        self.merged += max(len(node.value) - before, 0)
        self._check(node)

    def _check(self, node: yaml.MappingNode) -> None:
        if self.merged > _MAX_MERGED:
            raise yaml.constructor.ConstructorError(None, None, "merges far more than it holds", node.start_mark)


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """The data of a YAML file: dict, list, str, int, float, bool, None, dates.

    Raises:
        BadInput: no such file, too large, no UTF-8, no YAML, or YAML that asks for objects of a class.
    """
    name = os.fspath(path)
    with open_regular(name, "a YAML file", _GIVE) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise BadInput("the file is too large", name, f"over {MAX_BYTES:,} bytes", _EXPECTED, _GIVE)
    try:
        return yaml.load(data.decode("utf-8"), _Loader)
    except UnicodeDecodeError as error:
        raise BadInput("this is no text in UTF-8", name, f"byte {error.start}", _EXPECTED, _GIVE) from None
    except yaml.MarkedYAMLError as error:
        at = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        problem = shown(f"{at}{error.problem or error.context}", 160)
        raise BadInput("this is no YAML that can be read", name, problem, _EXPECTED, _GIVE) from None
    except (yaml.YAMLError, ValueError, TypeError) as error:  # ValueError: a date or number of no meaning
        raise BadInput("this is no YAML that can be read", name, shown(str(error), 160), _EXPECTED, _GIVE) from None
    except RecursionError:
        raise BadInput("this YAML nests too deep", name, "more levels than can be read", _EXPECTED, _GIVE) from None
