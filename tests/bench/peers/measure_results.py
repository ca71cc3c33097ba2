#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the front page's figures anew, all on one machine at one commit.

  tests/bench/peers/measure_results.py build/release/bin --python=PYTHON \
      --machine="two H200s, 32 cores" [--only=WORDS] [--results=FILE] [--rounds=3]

Runs the commands of docs/performance/results.json, ours and the peer's in turn, and
writes both figures, their ratios, the date, the commit and the machine into it. It
writes nothing where a row cannot be measured, because the GPUs that it needs are not
there or its command fails, or where --only asks for some rows: the file's figures are of
one run. cmake/write_results.py then makes the front page's table and chart from the file.
"""

import argparse
import datetime
import json
import pathlib
import re
import shlex
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
RESULTS = ROOT / "docs/performance/results.json"
LONGEST_S = 300


def gpus_here():
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True,
                                check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())


def command_line(text, folder, python):
    """A command of results.json with its programs' paths: ours are in `folder`, the
    peers' are beside this script."""
    words = []
    for word in shlex.split(text):
        if (folder / word).is_file():
            word = str(folder / word)
        elif (HERE / word).is_file():
            words.append(python)
            word = str(HERE / word)
        words.append(word)
    return words


def pick(output, figure):
    """The figure in the last JSON line that has what `where` says."""
    found = None
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        if all(row.get(key) == value for key, value in figure["where"].items()):
            found = row.get(figure["key"], found)
    if found is None:
        raise ValueError(f"no line of its output has {figure}")
    return found * figure.get("times", 1)


def run(words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST_S,
                          check=False, cwd=ROOT)
    if done.returncode != 0:
        raise ValueError(f"{shlex.join(words)} ended with {done.returncode}:\n"
                         f"{done.stderr[-1000:]}")
    return done.stdout


def shown(value):
    """Four digits, and thousands parted."""
    return f"{value:,.{max(0, 4 - len(str(int(value))))}f}"


def torch_version(python):
    said = run([python, "-c", "import torch; print(torch.__version__)"])
    return re.match(r"[0-9]+[.][0-9]+", said).group()


def measure(entry, args, gpus):
    if entry.get("gpus", 0) > gpus:
        raise ValueError(f"it needs {entry['gpus']} GPUs, and {gpus} are here")
    ours, theirs = [], []
    for outputs in args.outputs:
        for name, figures in (("", ours), ("peer_", theirs)):
            command = entry.get(name + "command", entry["command"])
            if command not in outputs:  # rows may share a peer's command
                outputs[command] = run(command_line(command, args.folder, args.python))
            figures.append(pick(outputs[command], entry[name + "figure"]))
    entry["baton"], entry["beside"] = (shown(statistics.median(side))
                                       for side in (ours, theirs))
    baton, beside = (float(entry[name].replace(",", "")) for name in ("baton", "beside"))
    ratio = beside / baton if entry.get("lower_is_better") else baton / beside
    entry["ratio"] = round(ratio, 2) if ratio < 4 else round(ratio, 1)
    if "PyTorch" in entry["peer"]:
        entry["peer"] = re.sub(r"PyTorch [0-9.]+", f"PyTorch {args.torch}", entry["peer"])


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: pathlib.Path(text).resolve(),
                        help="of Baton's programs")
    parser.add_argument("--python", default=sys.executable, help="one that has PyTorch")
    parser.add_argument("--machine", required=True, help="what it is, in words")
    parser.add_argument("--commit", help="default the checkout's")
    parser.add_argument("--only", default="", help="rows with these words alone")
    parser.add_argument("--rounds", type=int, default=1, help="of both sides in turn")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS,
                        help="the file that is read and written")
    args = parser.parse_args()
    if args.commit is None:
        args.commit = run(["git", "rev-parse", "--short", "HEAD"]).strip()
    args.outputs = [{} for _ in range(args.rounds)]
    return args


def main():
    args = parsed()
    results = json.loads(args.results.read_text())
    rows = [entry for entry in results["rows"] if args.only in entry["what"]]
    args.torch = (torch_version(args.python)
                  if any("PyTorch" in entry["peer"] for entry in rows) else None)
    gpus, failed = gpus_here(), 0
    for entry in rows:
        try:
            measure(entry, args, gpus)
            print(f"{entry['what']}: {entry['baton']} {entry['unit']}, "
                  f"{entry['peer']} {entry['beside']}: {entry['ratio']}", flush=True)
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"{entry['what']}: not measured: {error}", file=sys.stderr, flush=True)
    if failed or args.only:
        print(f"{args.results} stays as it was", file=sys.stderr)
        return 1 if failed else 0
    results |= {"machine": args.machine, "commit": args.commit,
                "date": datetime.date.today().isoformat()}
    args.results.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
