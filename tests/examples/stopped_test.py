#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Stops a run whose workers serve a call that would take hours: they give it up,
because who made it is gone, and baton-run has to kill none of them.

Usage: stopped_test.py BIN
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(sys.argv[1])
# The long call, and the program with flags for which it is made.
RUNS = {
    "GradientPusher::Run": ["parameter_server", "--gradients=lenet",
                            "--mode=bsp", "--pushes=1000000000"],
    "ReportPusher::Run": ["parameter_server_batch", "--depth=18", "--width=4",
                          "--pushes=1000000000"],
    "RowClient::Run": ["embedding_rows", "--rows=1000", "--load=read",
                       "--batches=1000000000"],
}


def calls_of(folder):
    """The methods under way in the one cluster whose workers are in `folder`."""
    asked = subprocess.run([BIN / "batonctl", "status", "--json"], text=True,
                           capture_output=True, check=False, timeout=30,
                           env={**os.environ, "TMPDIR": folder})
    if asked.returncode != 0:  # it has not met yet
        return []
    return re.findall(r'"method": ?"([^"]*)"', asked.stdout)


def stop(call, program):
    with tempfile.TemporaryDirectory(prefix="baton_stopped_") as folder:
        run = subprocess.Popen(
            [BIN / "baton-run", "--workers=3", f"--worker_program={program[0]}",
             "--", *program], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": folder})
        limit = time.monotonic() + 60
        while call not in calls_of(folder):
            if run.poll() is not None or time.monotonic() > limit:
                run.terminate()
                sys.exit(f"{program[0]} made no {call}: {run.communicate()[0]}")
        run.terminate()
        said = run.communicate(timeout=60)[0]
        if "did not end" in said or run.returncode != 143:
            sys.exit(f"{program[0]} ended with {run.returncode}: {said}")


for a_call, a_program in RUNS.items():
    stop(a_call, a_program)
print("runs that are stopped end by themselves")
