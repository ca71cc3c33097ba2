#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures Baton and torch.distributed in turn, in one table.

  tests/bench/peers/beside_torch.py build/release/bin/bench_rpc \
      --python=/usr/bin/python3 [--python=...] [--rounds=3]
  tests/bench/peers/beside_torch.py build/release/bin/collectives_bench \
      --script=all_reduce.py --python=...
  tests/bench/peers/beside_torch.py build/release/bin --shapes=push,rows

The script (rpc_calls.py) is run by each Python that is named and prints JSON
lines as ours does: "what", and "median_us" or "calls_per_s". With the folder of
the programs, what --shapes names, in the shapes of PyTorch's tutorials:
rpc_shapes.py beside the examples. A round is one run of ours, and for each
Python one run as it is and one with its allocator tuned (glibc keeps large
blocks, so that the receiver takes no page faults). Cells are medians over the
rounds; a ratio above 1 says by how much Baton is better.
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
TUNED = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(2000 << 20),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_ARENA_MAX": "1",
}
MEMCPY = "limit: memcpy "


def calls_of(row):
    for unit in ("median_us", "calls_per_s"):
        if unit in row:
            yield (row["what"], unit), row[unit]


# How the examples' variants are called by rpc_shapes.py, and what follows.
SHAPES = {"bsp": "parameter server, batch", "async": "parameter server, hogwild",
          "batch": "parameter server, batch, made of calls",
          "read": "rows of an embedding", "update": "rows, updated",
          "batched": "batched inference"}
# What is of ours alone, beside what is the same at PyTorch's.
OURS = ", made of calls"
COUNTS = ("trainers", "clients", "readers", "observers")
RATES = ("pushes_per_s", "rows_per_s", "requests_per_s")


def shapes_of(row):
    """Of either side: what is done, by how many, and how often a second."""
    what = row.get("what")
    if what is None:
        words = row["variant"].split()
        what = SHAPES[words[0]]
        if words[0] in ("bsp", "async", "batch"):
            row["model"] = words[1]
    count = next(row[name] for name in COUNTS if name in row)
    what = " ".join([what, *([row["model"]] if "model" in row else []),
                     f"by {count}"])
    for unit in RATES:
        if unit in row:
            yield (what, unit), row[unit]


class Column:
    """A side: its name, how it is run, and what it said in each round."""

    def __init__(self, name, commands, figures_of, environment=None):
        self.name = name
        self.commands = commands
        self.figures_of = figures_of
        self.environment = {**os.environ, **(environment or {})}
        self.figures = collections.defaultdict(list)  # (what, unit) -> values

    def run(self, timeout):
        for command in self.commands:
            self.run_one(command, timeout)

    def run_one(self, command, timeout):
        done = subprocess.run(
            command, env=self.environment, timeout=timeout,
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        for line in done.stdout.splitlines():
            if not line.startswith("{"):
                continue
            for key, value in self.figures_of(json.loads(line)):
                self.figures[key].append(value)

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


def programs(folder, shapes):
    """The examples' command lines that do what these shapes are."""

    def run(program, workers, *flags):
        path = os.path.join(folder, program)
        return [os.path.join(folder, "baton-run"), f"--workers={workers}",
                f"--worker_program={path}", "--", path, *flags, "--json=-"]

    result = []
    if "push" in shapes:
        for model, pushes in (("lenet", 300), ("resnet50", 24)):
            result += [run("parameter_server", trainers + 1,
                           f"--gradients={model}", f"--pushes={pushes}",
                           "--mode=bsp,async") for trainers in (2, 4, 8)]
        # As the peer's server, without momentum.
        result += [run("parameter_server_batch", trainers + 1, "--pushes=24",
                       "--depth=50", "--width=64", "--momentum=0")
                   for trainers in (2, 4, 8)]
    if "rows" in shapes:
        result.append(run("embedding_rows", 9, "--skew=0", "--clients=1,4,8",
                          "--load=read,update"))
    if "inference" in shapes:
        # The peer's hidden layers; so many requests take less time than its.
        result.append(run("rl", 16, "--inference=batched", "--observers=8,16",
                          "--requests=3000", "--hidden=20,20,20,20"))
    return result


def columns(args):
    if args.shapes:
        ours = programs(args.bench, args.shapes.split(","))
        script, flags = "rpc_shapes.py", [f"--shapes={args.shapes}"]
        figures_of = shapes_of
    else:
        ours = [[args.bench, "1"]]
        script = args.script
        flags = ["--device=cuda"] if args.device == "cuda" else []
        figures_of = calls_of
    result = [Column("Baton", ours, figures_of)]
    for python in args.python:
        name = f"PyTorch {torch_version(python)}"
        theirs = [[python, str(HERE / script), *flags]]
        result.append(Column(name, theirs, figures_of))
        if not args.plain:
            result.append(Column(f"{name}, tuned", theirs, figures_of, TUNED))
    return result


def text(value, unit):
    if unit != "median_us":
        return f"{value:,.0f}/s" if value >= 100 else f"{value:.1f}/s"
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
        theirs = (what.replace(OURS, ""), unit)
        if unit not in RATES and all(
                peer.median(theirs) is None for peer in peers):
            continue
        value = ours.median((what, unit))
        cells = [what, text(value, unit), of_memcpy(ours, what, value)]
        for peer in peers:
            other = peer.median(theirs)
            if other is None:
                cells += ["", ""]
                continue
            ratio = other / value if unit == "median_us" else value / other
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
    parser.add_argument("bench", help="the path of ours, or of the folder of all "
                                      "programs")
    parser.add_argument("--script", default="rpc_calls.py",
                        help="the peer's, of this folder")
    parser.add_argument("--shapes", default="",
                        help="some of push, rows, inference: measure these, "
                             "not calls")
    parser.add_argument("--python", action="append",
                        help="one that has torch; may be given again; default "
                             "the one that runs this")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cpu",
                        help="cuda: also tensors from GPU to GPU")
    parser.add_argument("--plain", action="store_true",
                        help="leave out the runs with a tuned allocator")
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
