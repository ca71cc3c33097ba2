#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Usage: live_screen_test.py BATONCTL BATON_WORKER

batonctl --watch on a pseudo-terminal draws in place, shows rates, and leaves the
terminal as it was, by q and by SIGINT; also while a worker, or the rendezvous, does
not answer.
"""

import os
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time

PAGE, BACK = b"\033[?1049h\033[?25l", b"\033[?25h\033[?1049l"
DRAWN = [PAGE, b"\033[H\033[1mworkers\033[0m: 1", b"a_second\033[0m: 1"]


def read_until(terminal, wanted, seconds=20):
    seen, end = b"", time.monotonic() + seconds
    while not all(part in seen for part in wanted):
        left = end - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            sys.exit(f"did not come: {wanted} in {seen.decode()}")
        try:
            seen += os.read(terminal, 65536)
        except OSError:  # its other end is closed
            sys.exit(f"ended before {wanted}: {seen.decode()}")
    return seen


def watch(command, end, wanted=DRAWN):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave)
    try:
        read_until(master, wanted)
        end(master, child)
        read_until(master, [BACK])
        if child.wait(timeout=20) != 0:
            sys.exit(f"ended with {child.returncode}")
    finally:
        child.kill()
    if termios.tcgetattr(slave) != before:
        sys.exit("the terminal is not as it was")


def press_q(terminal, _):
    os.write(terminal, b"q")


def main():
    batonctl, worker = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/alice"
        served = subprocess.Popen([worker, "--name=alice",
                                   f"--peers=alice={address}"])
        try:
            command = [batonctl, "status", f"--worker=alice={address}",
                       "--watch", "--interval=100ms"]
            watch(command, press_q)
            watch(command,
                  lambda master, child: child.send_signal(signal.SIGINT))
        finally:
            served.terminate()
            served.wait()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        for asked in (f"--worker=alice={address}", f"--rendezvous={address}"):
            watch([batonctl, "status", asked, "--watch", "--timeout=10m"],
                  press_q, [PAGE])
    print("drawn in place")


main()
