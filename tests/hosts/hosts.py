# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Two hosts on one machine: network namespaces with a cable between them.

Each host has an address, a boot id and a folder for temporary files of its own
and does not see the other's folder: so programs there take each other for what
runs on another machine. The addresses are for documents (RFC 5737) and exist
inside the namespaces only. Whatever happens to the test, a process beside it
kills what runs in the namespaces and removes them.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

SKIPPED = 77
CABLE = "cable"
POLL = 0.02  # seconds between two looks

# Waits until the test has ended and its end of the pipe is closed.
GUARD = """
read -r ended
for name in "$@"; do
  ip netns pids "$name" | xargs -r kill -9
  ip netns delete "$name"
done 2>/dev/null
rm -rf "$FOLDER"
"""

# In a mount namespace that `ip netns exec` has just made for this process.
ENTER = """
mount --bind "$OWN/boot_id" /proc/sys/kernel/random/boot_id &&
mount --bind "$NOTHING" "$OTHER" || exit 77
exec "$@"
"""


class Skip(Exception):
    """This machine does not allow what the tests need."""


class Failure(Exception):
    """A claim of a test does not hold."""


def check(holds, claim):
    if not holds:
        raise Failure(claim)


def wait_until(claim, seconds, holds):
    """Gives what holds() gives once that is true; Failure after the time."""
    deadline = time.monotonic() + seconds
    while True:
        result = holds()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Failure(f"after {seconds:.1f} s it is not so that {claim}")
        time.sleep(POLL)


class Program:
    """A process on a host; its output goes to a file."""

    def __init__(self, name, command, log, environment):
        self.name = name
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env=environment)

    def output(self):
        return self.log.read_text(errors="replace")

    def running(self):
        return self.process.poll() is None

    def wait_for(self, sentence, seconds=20):
        def said():
            # In this order: what has ended has said everything.
            running = self.running()
            if sentence in self.output():
                return True
            check(running, f"{self.name} ended before it said '{sentence}'")
            return False
        wait_until(f"{self.name} says '{sentence}'", seconds, said)

    def end(self, seconds=20):
        """Waits for the end; gives the exit code."""
        wait_until(f"{self.name} has ended", seconds,
                   lambda: not self.running())
        return self.process.returncode

    def stop(self, seconds=20):
        """Asks it to end and gives the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.end(seconds)


class Host:
    """One namespace, with one end of the cable."""

    def __init__(self, letter, address, network):
        self.letter = letter
        self.address = address
        self.namespace = f"baton-{os.getpid()}-{letter}"
        self.folder = network.folder / letter
        self.network = network
        self.programs = []

    def prepare(self):
        self.folder.mkdir()
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")

    def ip(self, *words):
        return run("ip", "-n", self.namespace, *words)

    def enter(self, command):
        other = self.network.other(self)
        enter = ["ip", "netns", "exec", self.namespace, "env",
                 f"OWN={self.folder}", f"OTHER={other.folder}",
                 f"NOTHING={self.network.folder}/nothing",
                 "sh", "-c", ENTER, "sh"]
        return [*enter, *map(str, command)]

    def start(self, program, *flags, name=None):
        name = name or program
        number = len(self.programs)
        log = self.network.folder / f"{self.letter}.{number}.{name}.log"
        environment = {**os.environ, "TMPDIR": str(self.folder),
                       "OMP_WAIT_POLICY": "passive"}
        command = self.enter([self.network.programs / program, *flags])
        started = Program(f"{name} on host {self.letter}", command, log,
                          environment)
        self.programs.append(started)
        return started

    def counter(self, name):
        """A count of this end of the cable, as in tx_bytes."""
        text = run("ip", "netns", "exec", self.namespace, "cat",
                   f"/sys/class/net/{CABLE}/statistics/{name}")
        return int(text)

    def retransmitted(self):
        """TCP segments that this host has sent again."""
        text = run("ip", "netns", "exec", self.namespace, "cat",
                   "/proc/net/snmp")
        names, values = [line.split() for line in text.splitlines()
                         if line.startswith("Tcp:")]
        return int(values[names.index("RetransSegs")])


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    check(done.returncode == 0,
          f"'{' '.join(command)}' works; it says: {done.stderr.strip()}")
    return done.stdout


class Network:
    """Both hosts, a and b, with programs from a folder; a context manager."""

    def __init__(self, programs):
        self.programs = pathlib.Path(programs).resolve()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="baton-hosts-"))
        self.a = Host("a", "192.0.2.1", self)
        self.b = Host("b", "192.0.2.2", self)
        self.hosts = (self.a, self.b)
        self.guard = None

    def other(self, host):
        return self.b if host is self.a else self.a

    def __enter__(self):
        try:
            self.set_up()
        except Failure as failure:
            self.__exit__(None, None, None)
            raise Skip(f"it is not so that {failure}") from failure
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def set_up(self):
        self.start_guard()
        (self.folder / "nothing").mkdir()
        for host in self.hosts:
            host.prepare()
            run("ip", "netns", "add", host.namespace)
        self.a.ip("link", "add", CABLE, "type", "veth", "peer", "name", CABLE,
                  "netns", self.b.namespace)
        for host in self.hosts:
            host.ip("address", "add", f"{host.address}/24", "dev", CABLE)
            host.ip("link", "set", "lo", "up")
            host.ip("link", "set", CABLE, "up")
        for host in self.hosts:
            run(*host.enter(["true"]))

    def start_guard(self):
        names = [host.namespace for host in self.hosts]
        # In a session of its own: who kills the test and all its children
        # leaves this one.
        with subprocess.Popen(
                ["setsid", "--fork", "sh", "-c", GUARD, "sh", *names],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env={**os.environ, "FOLDER": str(self.folder)}) as starter:
            self.guard = (os.dup(starter.stdin.fileno()),
                          os.dup(starter.stdout.fileno()))

    def __exit__(self, kind, value, trace):
        if kind not in (None, Skip):
            self.show_logs()
        if self.guard is None:
            shutil.rmtree(self.folder)
            return
        os.close(self.guard[0])
        while os.read(self.guard[1], 4096):
            pass  # until it has ended
        for host in self.hosts:
            for program in host.programs:
                program.process.wait()

    def show_logs(self):
        for host in self.hosts:
            for program in host.programs:
                code = program.process.poll()
                state = "runs" if code is None else f"ended with {code}"
                said = program.output()
                if said and not (code == 0 and said.startswith("{")):
                    print(f"== {program.name} ({state})\n{said[-4000:]}")

    def cut(self):
        """Loses all packets from now on; neither host is told."""
        for host in self.hosts:
            host.ip("neighbour", "replace", self.other(host).address,
                    "lladdr", "02:00:00:00:00:99", "dev", CABLE,
                    "nud", "permanent")

    def mend(self):
        """Undoes cut."""
        for host in self.hosts:
            host.ip("neighbour", "delete", self.other(host).address,
                    "dev", CABLE)

    def pull(self):
        """Takes the cable out: both hosts see that."""
        self.b.ip("link", "set", CABLE, "down")

    def plug(self):
        """Puts it back."""
        self.b.ip("link", "set", CABLE, "up")


def why_not_here():
    """Why this machine has no namespaces for us, or nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "mount", "setsid"):
        if shutil.which(program) is None:
            return (f"there is no program '{program}'; "
                    "install iproute2 and util-linux")
    return ""
