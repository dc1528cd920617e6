# SPDX-License-Identifier: Apache-2.0
"""`gharial serve`: live transcripts for many clients (docs/serving.md, docs/operating.md)."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gharial.cli import terminal
from gharial.cli.decoding import Decoding, add_decoding, decoding
from gharial.errors import BadInput
from gharial.files import open_regular
from gharial.serve.configuration import Configured, Setting, add_flags, configured, settings_of
from gharial.serve.settings import DEVICE, ModelSettings, Settings

NAME = "serve"

_EPILOG = """\
examples:
  gharial serve
  gharial serve --model model.hw.pt --device emulator:u50 --host 0.0.0.0 --port 3030
  gharial serve --decoder greedy --no-state-resets
  gharial serve --ngram words.ngram --keywords names.json --compat
  gharial serve --config serve.toml --log-file serve.log
  gharial serve --config serve.toml --check
  gharial serve --config serve.toml --ready
  gharial serve --tls-certificate server.pem --tls-key server.key --api-keys keys
  gharial serve --new-key desk >> keys
  gharial serve --show unit > gharial.service

Clients speak CAIMAN-ASR's WebSocket API, ws://HOST:PORT/asr/v0.1/stream: 16 kHz mono s16le in, text out every 60 ms.
Every option can stand in the file as well (max_connections = 100), or in the environment
(GHARIAL_SERVE_MAX_CONNECTIONS=100); a flag goes before the environment, that before the file. Several models stand in
the file, each in a table [[models]]; SIGHUP has models read again. SIGTERM or Ctrl-C lets the streams finish, a second
one stops at once.
docs/serving.md says what clients may ask for, docs/operating.md how to run it.
"""

_MODEL = (
    Setting("checkpoint (.hw.pt) or program (.gprog); default: the demo model", "model", metavar="M", name="model"),
    Setting(f"device ({DEVICE}); several times for several devices", "model", metavar="D", name="device", kind=tuple),
)
_NAMES = (
    Setting("", name="name", default="general"),
    Setting("", name="version", default="1"),
    Setting("", name="languages", kind=tuple, default=("en",)),
)
_SHOWN = {"unit": "gharial.service", "container": "Containerfile", "config": "serve.toml"}
_WITHOUT = ("alternatives",)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        NAME,
        help="serve live transcripts to many clients",
        usage="%(prog)s [OPTION]...",
        description="Serve live transcripts to many clients over WebSockets.",
        epilog=_EPILOG,
    )
    parser.add_argument("--config", metavar="F", help="file of settings, TOML; or GHARIAL_SERVE_CONFIG=F")
    parser.add_argument("--check", action="store_true", help="look at all settings and files, and end")
    parser.add_argument("--ready", action="store_true", help="ask the server that runs with these settings, and end")
    parser.add_argument("--show", choices=_SHOWN, help="print a unit for systemd, a file for containers, or settings")
    parser.add_argument("--new-key", metavar="NAME", help="make an API key, print its line for the file, and end")
    add_flags(parser, _MODEL)
    add_flags(parser, settings_of(Settings))
    add_decoding(parser, decoder="beam", resets=True, without=_WITHOUT)
    parser.add_argument("--ngram-binary-path", metavar="F", dest="ngram_alias", help="the same as --ngram")
    parser.set_defaults(run=run, **dict.fromkeys(rule.name for rule in _decoding_rules()))


def run(args: argparse.Namespace) -> int:
    """Serve."""
    if args.show is not None:
        return _show(args.show)
    if args.new_key is not None:
        return _new_key(args.new_key)
    if args.ngram_alias is not None:
        if args.ngram is not None:
            raise BadInput("given twice", "--ngram-binary-path", "--ngram", "one of them", "leave one of them out")
        args.ngram = args.ngram_alias
    found, aliases = _configured(args)
    with found.named(aliases):
        own = [rule.name for rule in settings_of(Settings) if rule.name in found.values]
        settings = Settings(models=_models(found, aliases), **{name: found.values[name] for name in own})
        if args.ready:
            return _ready(settings)
        return _serve(settings, args)


def _configured(args: argparse.Namespace) -> tuple[Configured, Mapping[str, str]]:
    """What file, environment and flags say, and the flags by which errors know settings."""
    rules = _decoding_rules()
    tables = Setting("", name="models", kind=dict, table=(*_NAMES, *_MODEL, *rules))
    found = configured((*_MODEL, *settings_of(Settings), *rules, tables), vars(args), os.environ, args.config)
    return found, {rule.flag: rule.name for rule in (*_MODEL, *rules)}


def _serve(settings: Settings, args: argparse.Namespace) -> int:
    import asyncio

    from gharial.devices import boards
    from gharial.devices.open import device_config
    from gharial.serve import Server
    from gharial.serve.operation import Operation
    from gharial.serve.running import run

    for model in settings.models if args.check else ():
        if model.model is not None:
            open_regular(model.model, "a checkpoint (.hw.pt) or program (.gprog)").close()
        for device in model.devices:
            if device.partition(":")[0] not in boards.KINDS:  # which would be asked
                device_config(device)
    operation = Operation(settings, lambda sentence: terminal.say(f"gharial: {sentence}"))
    try:
        if args.check:
            terminal.say("gharial: nothing wrong was found")
            return 0
        server = Server(settings, watcher=operation, note=terminal.note)
        operation.attach(server)
        scheme = "ws" if operation.tls is None else "wss"

        def listening() -> None:
            terminal.emit(f"listening on {scheme}://{_bracketed(settings.host)}:{server.port}")

        def models() -> tuple[ModelSettings, ...]:
            found, aliases = _configured(args)
            with found.named(aliases):
                return replace(settings, models=_models(found, aliases)).models

        return asyncio.run(run(server, operation, listening, models))
    finally:
        operation.close()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _show(what: str) -> int:
    from importlib.resources import files

    terminal.emit(files("gharial").joinpath("data", "serve", _SHOWN[what]).read_text(encoding="utf-8"), end="")
    return 0


def _ready(settings: Settings) -> int:
    from gharial.serve.probe import probe

    probe(settings)
    terminal.emit("ready")
    return 0


def _new_key(name: str) -> int:
    from gharial.serve.keys import new_key

    key, line = new_key(name)
    terminal.say(f"the key, which is not kept anywhere: {key}")
    terminal.emit(line)
    return 0


def _decoding_rules() -> tuple[Setting, ...]:
    """The options of decoding as settings."""
    parser = argparse.ArgumentParser(add_help=False)
    add_decoding(parser, decoder="beam", resets=True, without=_WITHOUT)
    rules = []
    for action in parser._actions:
        kind: type = action.type if isinstance(action.type, type) else str
        if action.nargs == 0:
            kind = bool
        choices = tuple(action.choices or ())
        rules.append(Setting(str(action.help), choices=choices, name=action.dest, kind=kind))
    return tuple(rules)


def _models(found: Configured, aliases: Mapping[str, str]) -> tuple[ModelSettings, ...]:
    """The models that are served: those of the file's tables, or one."""
    tables = found.values.get("models")
    if not tables:
        return (_model(found.values),)
    for name in ("model", "device"):
        if name in found.values:
            what = "there are tables [[models]] as well"
            raise BadInput(what, name, found.values[name], "one of both", "leave one of them out")
    models = []
    for index, table in enumerate(tables):
        where = f"{found.sources['models']}[{index}]"
        own = Configured(table, {name: f"{where}.{name}" for name in table})
        with own.named(aliases):
            models.append(_model({**found.values, **table}))
    return tuple(models)


def _model(values: Mapping[str, Any]) -> ModelSettings:
    names = {rule.name: values.get(rule.name, rule.default) for rule in _NAMES}
    return ModelSettings(
        model=values.get("model"), devices=values.get("device") or (DEVICE,), decoding=_decoding(values), **names
    )


def _decoding(values: Mapping[str, Any]) -> Decoding:
    parser = argparse.ArgumentParser(add_help=False)
    add_decoding(parser, decoder="beam", resets=True, without=_WITHOUT)
    args = parser.parse_args([])
    for rule in _decoding_rules():
        if rule.name in values:
            # A switch that only turns something on is None where it is off.
            off = rule.kind is bool and getattr(args, rule.name) is None
            setattr(args, rule.name, (values[rule.name] or None) if off else values[rule.name])
    return decoding(args)
