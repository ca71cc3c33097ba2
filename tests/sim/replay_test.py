#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Shows that a seed of the simulator decides everything.

Usage: replay_test.py SIM

Runs a seed of each kind three times, once with --trace, and compares the digests
of their steps; another seed must have another digest. Ends with 77 where the
system does not allow a process to have the same addresses each time.
"""

import json
import subprocess
import sys

SEEDS = (7, 8)


def digest(simulator, seed, *flags):
    """Returns the digest of all steps of a seed."""
    run = subprocess.run([simulator, f"--seed={seed}", *flags], check=True,
                         capture_output=True, text=True)
    return json.loads(run.stdout.strip().splitlines()[-1])["digest"]


def main():
    """Replays seeds of each kind."""
    simulator = sys.argv[1]
    if subprocess.run(["setarch", "-R", "true"], check=False).returncode != 0:
        sys.exit(77)
    for kind in ([], ["--servers"], ["--pipelines"]):
        first, second = (digest(simulator, seed, *kind) for seed in SEEDS)
        if first == second:
            sys.exit(f"{kind}: two seeds have the digest {first}")
        for flags in ([], ["--trace"]):
            again = digest(simulator, SEEDS[0], *kind, *flags)
            if again != first:
                sys.exit(f"{kind} {flags}: {again}, and {first} before")


if __name__ == "__main__":
    main()
