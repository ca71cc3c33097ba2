#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the front page's figures anew, all on one machine at one commit.

  tests/bench/peers/measure_results.py build/release/bin --python=PYTHON \
      --machine="two H200s, 32 cores" [--only=WORDS ...] [--results=FILE] [--rounds=3]

Runs the commands of docs/performance/results.json, ours and the peer's in turn, and
writes both figures and their ratio into it after each row. So a run may be ended at any
time, and called again: it goes on with the rows that are not yet of this commit and this
machine. --only, which may be given several times, measures the rows that have its words,
and these in any case.

As long as the rows are not all of one commit and one machine, the measured ones say of
which they are, this script names the others, and cmake/write_results.py refuses the file.
When all are, the file says it once, and write_results.py makes the front page's table and
chart from it. A row that cannot be measured, because the GPUs that it needs are not there
or its command fails, stays as it was.
"""

import argparse
import datetime
import json
import os
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
PLACE = ("machine", "commit")  # what all rows have in common in the end


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
    parser.add_argument("--only", action="append", default=[], metavar="WORDS",
                        help="rows that have these words; may be given several times")
    parser.add_argument("--rounds", type=int, default=1, help="of both sides in turn")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS,
                        help="the file that is read and written")
    args = parser.parse_args()
    if args.commit is None:
        args.commit = run(["git", "rev-parse", "--short", "HEAD"]).strip()
    args.outputs = [{} for _ in range(args.rounds)]
    return args


def place_of(entry, results):
    measured = entry.get("measured", results)
    return tuple(measured[name] for name in PLACE)


def others(results, args):
    """The rows that are of another commit or machine."""
    here = (args.machine, args.commit)
    return [entry for entry in results["rows"] if place_of(entry, results) != here]


def wanted(results, args):
    """The rows that are to be measured."""
    if not args.only:
        return others(results, args)
    return [entry for entry in results["rows"]
            if any(words in entry["what"] for words in args.only)]


def keep(results, entry, args):
    """Writes the file with what was measured of this row."""
    entry["measured"] = {"machine": args.machine, "commit": args.commit,
                         "date": datetime.date.today().isoformat()}
    if not others(results, args):
        dates = [row.pop("measured", results)["date"] for row in results["rows"]]
        results |= {"machine": args.machine, "commit": args.commit, "date": max(dates)}
    part = args.results.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n")
    os.replace(part, args.results)


def main():
    args = parsed()
    results = json.loads(args.results.read_text())
    rows = wanted(results, args)
    args.torch = (torch_version(args.python)
                  if any("PyTorch" in entry["peer"] for entry in rows) else None)
    gpus, failed = gpus_here(), 0
    for entry in rows:
        try:
            measure(entry, args, gpus)
            keep(results, entry, args)
            print(f"{entry['what']}: {entry['baton']} {entry['unit']}, "
                  f"{entry['peer']} {entry['beside']}: {entry['ratio']}", flush=True)
        except (ValueError, OSError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"{entry['what']}: not measured: {error}", file=sys.stderr, flush=True)
    for entry in others(results, args):
        machine, commit = place_of(entry, results)
        print(f"{entry['what']}: still of {commit} on {machine}", file=sys.stderr)
    if not rows:
        print("no row was measured: " +
              ("none has these words" if args.only else
               "all are of this commit and machine; --only measures some again"),
              file=sys.stderr)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
