#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures calls of Baton and of torch.distributed in turn, in one table.

  tests/bench/peers/beside_torch.py build/release/bin/bench_rpc \
      --python=/usr/bin/python3 [--python=...] [--rounds=3]
  tests/bench/peers/beside_torch.py build/release/bin/collectives_bench \
      --script=all_reduce.py --python=...

The script (rpc_calls.py) is run by each Python that is named and prints JSON
lines as ours does: "what", and "median_us" or "calls_per_s". A round is one run
of ours, and for each Python one run as it is and one with its allocator mended
(glibc keeps large blocks, so that the receiver takes no page faults).
Cells are medians over the rounds; a ratio above 1 says by how much Baton is
better.
"""

import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Large blocks stay with the process, and all threads share one heap of them.
MENDED = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(2000 << 20),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_ARENA_MAX": "1",
}
MEMCPY = "limit: memcpy "


class Column:
    """One program: its name, how it is run, and what it said in each round."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.command = command
        self.environment = {**os.environ, **(environment or {})}
        self.figures = collections.defaultdict(list)  # (what, unit) -> values

    def run(self, timeout):
        done = subprocess.run(
            self.command, env=self.environment, timeout=timeout,
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(self.command)} failed:\n{done.stderr[-2000:]}")
        for line in done.stdout.splitlines():
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            for unit in ("median_us", "calls_per_s"):
                if unit in row:
                    self.figures[row["what"], unit].append(row[unit])

    def median(self, key):
        values = self.figures.get(key)
        return statistics.median(values) if values else None


def torch_version(python):
    """What common.py says of it, which names the remedy where there is none."""
    asked = subprocess.run([python, HERE / "common.py"], text=True,
                           stdout=subprocess.PIPE, check=False)
    if asked.returncode != 0:
        sys.exit(asked.returncode)
    return asked.stdout.strip()


def columns(args):
    result = [Column("Baton", [args.bench, "1"])]
    for python in args.python:
        name = f"PyTorch {torch_version(python)}"
        command = [python, str(HERE / args.script)]
        if args.device == "cuda":
            command.append("--device=cuda")
        result.append(Column(name, command))
        result.append(Column(f"{name}, mended", command, MENDED))
    return result


def text(value, unit):
    if unit == "calls_per_s":
        return f"{value:,.0f}/s"
    return f"{value:.0f} us" if value < 1000 else f"{value / 1000:.2f} ms"


def of_memcpy(ours, what, value):
    """What part of memcpy's speed that is, where tensors of a CPU are sent."""
    if not what.startswith("rpc_sync send ") or not what.endswith("cpu"):
        return ""
    copied = ours.median((MEMCPY + what.split()[2], "median_us"))
    return f"{copied / value:.0%}" if copied else ""


def rows(all_columns):
    ours, peers = all_columns[0], all_columns[1:]
    for what, unit in ours.figures:
        if all(peer.median((what, unit)) is None for peer in peers):
            continue
        value = ours.median((what, unit))
        cells = [what, text(value, unit), of_memcpy(ours, what, value)]
        for peer in peers:
            other = peer.median((what, unit))
            if other is None:
                cells += ["", ""]
                continue
            ratio = value / other if unit == "calls_per_s" else other / value
            cells += [text(other, unit), f"{ratio:.1f}"]
        yield cells


def table(all_columns):
    head = ["row", "Baton", "of memcpy"]
    for peer in all_columns[1:]:
        head += [peer.name, "ratio"]
    lines = [head, ["---"] * len(head), *rows(all_columns)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", help="the path of ours")
    parser.add_argument("--script", default="rpc_calls.py",
                        help="the peer's, of this folder")
    parser.add_argument("--python", action="append",
                        help="one that has torch; may be given again; default "
                             "the one that runs this")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cpu",
                        help="cuda: also tensors from GPU to GPU")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=300,
                        help="seconds that one run may take")
    args = parser.parse_args()
    args.python = args.python or [sys.executable]
    all_columns = columns(args)
    for number in range(args.rounds):
        for column in all_columns:
            column.run(args.timeout)
            load = os.getloadavg()[0]
            print(f"round {number + 1} of {args.rounds}: {column.name}, "
                  f"load {load:.1f}", file=sys.stderr)
    print(table(all_columns))


if __name__ == "__main__":
    main()
