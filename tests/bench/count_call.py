#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""What a call of 64 B crosses: classes of rpc, locks and source files.

Builds tests/bench/count_call.cc in build/count_call, with a hook in each function
of rpc and in pthread_mutex_lock, and counts over 1,000 calls after as many that warm
up, at the caller and at the callee together. A class is crossed if a call runs one
of its member functions, other than constructors, destructors and assignments. What
fewer than every second call runs, such as timers and heartbeats, does not count.

  tests/bench/count_call.py [--list] [--most_classes=N] [--most_locks=N]

Exits with 1 above a limit. The default ones are what a call keeps to today.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/count_call"
MOST_CLASSES, MOST_LOCKS = 36, 35
NAMESPACES = {"baton", "rpc", "internal", "bench", "(anonymous namespace)"}


def build():
    def run(*command):
        subprocess.run(command, check=True, cwd=ROOT, stdout=sys.stderr)

    run("cmake", "--preset", "gate", "-B", BUILD, "-DBATON_COUNT_CALL=ON")
    run("ninja", "-C", BUILD, "count_call")
    return BUILD / "bin/count_call"


def entered(program):
    """Yields what each function is: its scopes, its source file ("" of others'
    code), how often a call enters it, and how many locks it takes."""
    rows = [line.split() for line in
            subprocess.check_output([program], text=True).splitlines()]
    named = subprocess.run(["addr2line", "-f", "-e", program],
                           input="\n".join(row[0] for row in rows), text=True,
                           capture_output=True, check=True).stdout.splitlines()
    names = subprocess.run(["c++filt", "-p"], input="\n".join(named[::2]),
                           text=True, capture_output=True,
                           check=True).stdout.splitlines()
    for (_, times, locks), name, where in zip(rows, names, named[1::2]):
        path = pathlib.Path(where.rsplit(":", 1)[0])
        ours = path.is_relative_to(ROOT)
        yield (scopes(name), str(path.relative_to(ROOT)) if ours else "",
               float(times), float(locks))


def scopes(name):
    """['baton', 'rpc', 'Agent', 'Async'] of "baton::rpc::Agent::Async<...>"."""
    name = name.replace("(anonymous namespace)", "@")
    while (bare := re.sub(r"<[^<>]*>|\([^()]*\)|\[[^][]*\]", "", name)) != name:
        name = bare
    name = name.replace("@", "(anonymous namespace)")
    return name.split("{")[0].rstrip(":").split("::")


def crossed_class(names):
    if names[:2] != ["baton", "rpc"]:
        return None
    outer = [each for each in names[:-1] if each not in NAMESPACES]
    made = bool(outer) and names[-1].lstrip("~") == outer[-1]
    return None if not outer or made or names[-1] == "operator=" else outer[0]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true",
                        help="name the classes, the functions that take locks, "
                             "and the files")
    parser.add_argument("--most_classes", type=int, default=MOST_CLASSES)
    parser.add_argument("--most_locks", type=float, default=MOST_LOCKS)
    flags = parser.parse_args()
    classes, files, locks, functions = set(), set(), {}, 0
    for names, path, times, taken in entered(build()):
        if taken:
            where = "::".join(names) if path else "threads of core"
            locks[where] = locks.get(where, 0) + taken
        if times and path.startswith("rpc/"):
            files.add(path)
            functions += times
        if times and (name := crossed_class(names)):
            classes.add(name)
    all_locks = sum(locks.values())
    print(f"{len(classes):6} classes of rpc\n{all_locks:6.1f} locks of all\n"
          f"{len(files):6} files of rpc\n{functions:6.0f} functions of rpc run")
    if flags.list:
        print("classes:", *sorted(classes), sep="\n  ")
        print("locks:", *(f"{taken:4.1f} {where}" for where, taken in
                          sorted(locks.items())), sep="\n  ")
        print("files:", *sorted(files), sep="\n  ")
    return 1 if (len(classes) > flags.most_classes or
                 all_locks > flags.most_locks) else 0


if __name__ == "__main__":
    sys.exit(main())
