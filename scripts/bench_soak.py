#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of clients that do not behave, beside some that do: `python -m scripts.bench_soak`.

A server of two devices, which fail now and then under load, is met by short connections, half-open and abrupt ones,
slow readers, garbage, odd byte counts and clients faster than real time. After each tenth of it all go, and what
the server takes is compared: memory (2 % more at most at the end), file descriptors, threads, streams. The streams that
behave must get every message as from a recogniser without a server. Writes docs/measured/soak.json. Exit code 1 where
something grew or was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gharial.audio import open_audio, read_all
from gharial.recognise import StateResets, StreamOptions, load
from gharial.serve.protocol import Replies
from gharial.serve.settings import DEVICE
from scripts.bench_batches import MEASURED, commit
from scripts.soak.clients import Clients
from scripts.soak.server import Server, Taken, as_json

RECORDINGS = Path(__file__).resolve().parents[1] / "host" / "gharial" / "data" / "recordings"
GROWTH = 0.02
PARTS = 10
_AT_ONCE = 40

# Clients and server share this machine: that one of them is slow is no fault of either.
SETTINGS = [
    "--idle-s",
    "300",
    "--handshake-s",
    "300",
    "--unread-timeout-s",
    "2",
    "--max-unread",
    "20000",
    "--log-level",
    "error",
]
SETTINGS += ["--device", DEVICE, "--device", DEVICE]


def recordings(names: list[str] | None = None) -> dict[str, bytes]:
    """Shipped recordings as s16le."""
    found = {}
    for path in sorted(RECORDINGS.glob("*.flac")):
        if names is None or path.stem in names:
            with open_audio(path) as source:
                samples = read_all(source)
            found[path.stem] = samples.astype("<i2").tobytes()
    return found


def expected(audio: Mapping[str, bytes], decoder: str) -> dict[str, list[str]]:
    """The messages that the server must send for each."""
    options = StreamOptions(state_resets=StateResets())
    found = {}
    with load(device=DEVICE, decoder=decoder) as recogniser:
        for name, data in audio.items():
            replies = Replies(recogniser.step_s, decoder != "greedy")
            with recogniser.stream(options) as stream:
                stream.feed(data)
                stream.end()
                recogniser.run()
                steps = stream.steps()
                found[name] = [message for step in steps for message in replies.of(step, step is steps[-1])]
    return found


async def soak(
    server: Server, clients: Clients, connections: int, seconds: float, behaved: int, faults: int, parts: int
) -> list[Taken]:
    """Run it; what the server takes after each part of it, when all clients have gone.

    What is taken at once is most in the first part, which begins with the greediest kinds all together: memory that was
    once needed is not all given back.
    """
    found: list[Taken] = []
    for part in range(parts):
        for kind in ("slow_reader", "fast", "slow_reader", "fast") if not part else ():
            many = min(_AT_ONCE, connections // parts)
            await asyncio.gather(*(clients.one(kind) for _ in range(many)))
        mine = connections * (part + 1) // parts - connections * part // parts
        failing = faults * (part + 1) // parts - faults * part // parts
        await _round(server, clients, mine, seconds / parts, behaved, failing)
        found.append(await server.settled(found[0].descriptors if found else None))
    return found


async def _round(server: Server, clients: Clients, connections: int, seconds: float, behaved: int, faults: int) -> None:
    """So many connections spread over so many seconds, with faults among them."""
    order, loop = clients.random, asyncio.get_running_loop()
    ends = loop.time() + seconds
    turns = order.sample(range(connections), min(faults, connections))
    room = asyncio.Semaphore(_AT_ONCE)
    running: set[asyncio.Task[None]] = set()
    kinds = sorted(clients.kinds())

    async def always() -> None:
        while loop.time() < ends:
            await clients.behaved()

    async def one(kind: str) -> None:
        async with room:
            await clients.one(kind)

    steady = [loop.create_task(always()) for _ in range(behaved)]
    for index in range(connections):
        if index in turns:
            server.fail()
        task = loop.create_task(one(order.choice(kinds)))
        running.add(task)
        task.add_done_callback(running.discard)
        left = max(0.0, ends - loop.time())
        await asyncio.sleep(order.uniform(0.0, 2 * left / (connections - index)))
        while len(running) > 2 * _AT_ONCE:
            await asyncio.sleep(0.01)
    await asyncio.gather(*running, *steady)


def judged(taken: list[Taken], clients: Clients, growth: float) -> list[str]:
    """What is not as it should be."""
    found = list(clients.wrong[:5])
    first, last = taken[0], taken[-1]
    grown = last.private_bytes / first.private_bytes - 1
    if grown > growth:
        found.append(f"memory grew by {grown:.1%}")
    if last.descriptors > first.descriptors:
        found.append(f"{last.descriptors - first.descriptors} file descriptors are left open")
    if last.threads > first.threads:
        found.append(f"{last.threads - first.threads} more threads")
    if left := max(one.streams for one in taken):
        found.append(f"{left} streams are left")
    return found


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 nothing grew and all was right, 1 not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--connections", type=int, default=5000, help="that do not behave (5000)")
    parser.add_argument("--seconds", type=float, default=600.0, help="at least (600)")
    parser.add_argument("--behaved", type=int, default=4, help="streams in real time beside them (4)")
    parser.add_argument("--faults", type=int, default=20, help="of devices (20)")
    parser.add_argument("--parts", type=int, default=PARTS, help="after each of which all go (10)")
    parser.add_argument("--decoder", choices=("greedy", "beam"), default="beam")
    parser.add_argument("--growth", type=float, default=GROWTH, help="of memory that is allowed (0.02)")
    parser.add_argument("--recording", action="append", help="one of them alone")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32), help="of what comes when")
    args = parser.parse_args(argv)
    print(f"seed {args.seed}")
    audio = recordings(args.recording)
    right = expected(audio, args.decoder)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "stderr"
        server = Server([*SETTINGS, "--decoder", args.decoder], log)
        try:
            clients = Clients(server.port, audio, right, random.Random(args.seed))
            began = time.monotonic()
            taken = asyncio.run(
                soak(server, clients, args.connections, args.seconds, args.behaved, args.faults, args.parts)
            )
            took, cpu = time.monotonic() - began, server.cpu_s()
            faults = server.counted("gharial_device_faults_total")
            moved = server.counted("gharial_streams_moved_total")
            code = server.stop()
        finally:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
        said = log.read_text()
    wrong = judged(taken, clients, args.growth)
    if args.faults and not faults:
        wrong.append("no device has failed, though it was made to")
    if code != 0:
        wrong.append(f"the server ended with {code}")
    print(f"{sum(clients.counts.values())} connections in {took:.0f} s ({dict(sorted(clients.counts.items()))})")
    print(f"devices failed {faults} times, {moved} streams went on elsewhere")
    memory = ", ".join(f"{one.private_bytes / 2**20:.1f}" for one in taken)
    print(f"server: {memory} MiB private; {cpu:.0f} s of CPU")
    print(f"        descriptors {[one.descriptors for one in taken]}, threads {[one.threads for one in taken]}")
    for sentence in wrong:
        print(f"WRONG: {sentence}")
    if wrong and said:
        print(said[-4000:])
    if not wrong and args.connections >= 5000 and args.seconds >= 600:
        _keep(args, clients, taken, took, {"server_cpu_s": round(cpu, 1), "faults": faults, "moved": moved})
    return 1 if wrong else 0


def _keep(args: argparse.Namespace, clients: Clients, taken: list[Taken], took: float, more: dict[str, Any]) -> None:
    found: dict[str, Any] = {
        "commit": commit(),
        "seed": args.seed,
        "seconds": round(took),
        "connections": dict(sorted(clients.counts.items())),
        "taken": [as_json(one) for one in taken],
        **more,
    }
    (MEASURED / "soak.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
