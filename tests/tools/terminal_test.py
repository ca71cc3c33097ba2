#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Usage: terminal_test.py BATON_RUN

baton-run tells a terminal where its cluster meets, as its trainer is told, and
leaves files and pipes to the programs that it runs.
"""

import os
import pty
import re
import subprocess
import sys

TRAINER = ["sh", "-c", 'echo "trainer: $BATON_RENDEZVOUS"']


def run_at_terminal(command):
    master, slave = pty.openpty()
    with subprocess.Popen(command, stdout=slave, stderr=slave) as child:
        os.close(slave)
        seen = b""
        try:
            while part := os.read(master, 65536):
                seen += part
        except OSError:  # its other end is closed
            pass
        if child.wait(timeout=20) != 0:
            sys.exit(f"ended with {child.returncode}: {seen.decode()}")
    return seen.decode()


def main():
    command = [sys.argv[1], "--workers=1", "--", *TRAINER]
    shown = run_at_terminal(command)
    told = re.search(r"baton-run: the workers meet at (\S+); see them with "
                     r"batonctl status", shown)
    got = re.search(r"trainer: (\S+)", shown)
    if told is None or got is None or told[1] != got[1]:
        sys.exit(f"does not tell where the workers meet: {shown}")
    piped = subprocess.run(command, capture_output=True, text=True, check=True,
                           timeout=20)
    if piped.stderr or not piped.stdout.startswith("trainer: "):
        sys.exit(f"a pipe got more: {piped.stdout}{piped.stderr}")
    print("tells it to a terminal alone")


main()
