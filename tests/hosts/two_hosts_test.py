#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""A cluster on two hosts: see hosts.py for what a host is here.

Usage: two_hosts_test.py PROGRAMS CASE
PROGRAMS is the folder of baton-worker and the others. Ends with 77 and says why
where the machine has no namespaces for it.
"""

import argparse
import json
import re
import sys
import time

from hosts import (SKIPPED, Failure, Network, Skip, check, run, wait_until,
                   why_not_here)

PORT = 2900
TENSOR_PORTS = {"worker1": 2901, "worker2": 2902, "trainer": 2903}
LEASE = 2.0
# A lease, and what a machine that is busy with other tests may add. Without
# leases gRPC itself would need 15 s.
LOSS_WITHIN = 3 * LEASE
LONG = 1_000_000_000  # steps that nobody waits for
CLEAR = ("--insecure",)


class Cluster:
    """A rendezvous and worker1 on host a, worker2 on host b, and trainers."""

    def __init__(self, network, security=None, worker="toy_model", extra=()):
        self.network = network
        self.meeting = f"{network.a.address}:{PORT}"
        self.security = security or (lambda host: CLEAR)
        self.extra = extra
        self.rendezvous = network.a.start(
            "baton-rendezvous", f"--listen={self.meeting}",
            *self.security(network.a))
        self.rendezvous.wait_for("rendezvous at")
        self.worker1 = self.member(network.a, worker, "worker1")
        self.worker2 = self.member(network.b, worker, "worker2")

    def member(self, host, program, name, *flags):
        return host.start(
            program, f"--name={name}", f"--rendezvous={self.meeting}",
            "--world_size=3", f"--listen={host.address}:0",
            f"--tensor_port={TENSOR_PORTS[name]}",
            *self.security(host), *self.extra, *flags, name=name)

    def trainer(self, program, *flags):
        return self.member(self.network.a, program, "trainer", *flags)

    def ask(self, command):
        """What batonctl says, which comes from both hosts; {} if it cannot."""
        host = self.network.a
        asked = host.start("batonctl", command, "--json",
                           f"--rendezvous={self.meeting}",
                           *self.security(host))
        return json.loads(asked.output()) if asked.end() == 0 else {}

    def stop(self):
        for program in (self.worker1, self.worker2, self.rendezvous):
            code = program.stop()
            check(code == 0, f"{program.name} ends with 0, not {code}")


def losses(program):
    return [line for line in program.output().splitlines()
            if line.startswith("step ")]


def losses_of_one_host(network, steps):
    """What toy_model says where all its processes are on one host."""
    alone = network.a.start("baton-run", "--workers=2",
                            "--worker_program=toy_model", "--", "toy_model",
                            f"--steps={steps}", name="alone")
    check(alone.end() == 0, "baton-run trains toy_model on one host")
    return losses(alone)


def check_training(network, cluster, steps=20):
    trainer = cluster.trainer("toy_model", f"--steps={steps}")
    check(trainer.end() == 0, "the trainer ends with 0")
    expected = losses_of_one_host(network, steps)
    check(losses(trainer) == expected,
          f"the losses are those of one host, {expected}")


def training(network):
    """Workers on two hosts train as those of one host do."""
    cluster = Cluster(network)
    check_training(network, cluster)
    cluster.stop()


def certificates(network):
    """Gives each host what docs/security.md says, and the way to it."""
    everything = network.a.folder / "everything"
    made = network.a.start("baton-certs", f"--out={everything}", "worker1",
                           "worker2", "trainer")
    check(made.end() == 0, "baton-certs ends with 0")
    names = {"a": ("rendezvous", "batonctl", "worker1", "trainer"),
             "b": ("worker2",)}
    for host in network.hosts:
        folder = host.folder / "certs"
        folder.mkdir(mode=0o700)
        files = ["ca.pem", "token"]
        files += [f"{name}.{kind}" for name in names[host.letter]
                  for kind in ("pem", "key")]
        for file in files:
            (folder / file).write_bytes((everything / file).read_bytes())
            (folder / file).chmod(0o600)
    return lambda host: (f"--tls_dir={host.folder}/certs",)


def tls(network):
    """The same by mutual TLS, and a worker without certificates is refused."""
    cluster = Cluster(network, certificates(network))
    uncertified = network.b.start(
        "toy_model", "--name=worker2", f"--rendezvous={cluster.meeting}",
        "--world_size=3", f"--listen={network.b.address}:0", "--insecure",
        "--join_timeout=1s", name="uncertified")
    check_training(network, cluster)
    check(uncertified.end() == 1, "a worker without certificates ends with 1")
    check("TLS" in uncertified.output(), "it says that the others want TLS")
    workers = {row["worker"] for row in cluster.ask("status")["workers"]}
    check(workers == {"worker1", "worker2"}, f"batonctl sees {workers}")
    cluster.stop()


def resnet(cluster, repeats):
    """Starts a trainer whose workers send each other tensors above 16 KB."""
    return cluster.trainer(
        "resnet50_pipeline", "--depth=18", "--width=16", "--classes=10",
        "--batch=32", "--image=64", "--split_size=16", "--batches=1",
        "--variants=pipelined", f"--repeat={repeats}")


def only(rows, **wanted):
    """The one row with these values."""
    found = [row for row in rows
             if all(row[key] == value for key, value in wanted.items())]
    check(len(found) == 1, f"there is one row with {wanted}, not {len(found)}")
    return found[0]


def sent_from_tensor_ports(host):
    """Bytes that connections to or from the ports for tensors have sent."""
    ports = " or ".join(f"{end} = :{port}" for end in ("sport", "dport")
                        for port in TENSOR_PORTS.values())
    text = run("ip", "netns", "exec", host.namespace,
               "ss", "--tcp", "--info", "--no-header", f"( {ports} )")
    return sum(map(int, re.findall(r"bytes_sent:(\d+)", text)))


def check_tensors_by_tcp(network, cluster, repeats=16, least=4_000_000):
    """batonctl and the kernel agree that tensors went by TCP beside gRPC."""
    check(resnet(cluster, repeats).end() == 0, "the trainer ends with 0")
    tables = cluster.ask("channels")
    for worker, peer, host in (("worker1", "worker2", network.a),
                               ("worker2", "worker1", network.b)):
        pair = {"worker": worker, "peer": peer}
        memory = only(tables["tensor_channels"], channel="shared memory",
                      **pair)
        check(memory["why_not"] == "it is on another machine",
              f"{peer} is on another machine for {worker}")
        tcp = only(tables["tensor_channels"], channel="TCP", **pair)
        check(tcp["state"] == "open",
              f"the TCP channel is open, not: {tcp['why_not']}")
        by_tcp = tcp["bytes_sent"]
        check(by_tcp >= least, f"{by_tcp} bytes of tensors are {least} or more")
        everything = only(tables["channels"], channel="grpc", **pair)
        by_grpc = everything["bytes_sent"] - by_tcp
        check(by_grpc < by_tcp / 10,
              f"gRPC carried little beside {by_tcp} bytes: {by_grpc}")
        by_kernel = sent_from_tensor_ports(host)
        check(by_kernel >= by_tcp,
              f"the kernel has sent {by_kernel} bytes of {by_tcp} or more")


def tensors(network):
    """Large tensors go by the TCP channel, at the ports that were named."""
    cluster = Cluster(network, worker="baton-worker")
    check_tensors_by_tcp(network, cluster)
    cluster.stop()


def tensors_with_tls(network):
    """With TLS they do within TLS, or in clear on a trusted network."""
    security = certificates(network)
    cluster = Cluster(network, security, worker="baton-worker")
    check_tensors_by_tcp(network, cluster)
    cluster.stop()
    cluster = Cluster(network, security, worker="baton-worker",
                      extra=("--trusted_fabric",))
    check_tensors_by_tcp(network, cluster)
    cluster.stop()


def silent(name):
    return f"worker {name} is silent for its lease"


def check_loss(network, lose, mend):
    cluster = Cluster(network, worker="baton-worker")
    trainer = resnet(cluster, LONG)
    trainer.wait_for("step 1/")
    lose()
    lost = time.monotonic()
    hear = {trainer: ("worker2",), cluster.worker1: ("worker2",),
            cluster.worker2: ("worker1", "trainer")}
    for program, names in hear.items():
        for name in names:
            program.wait_for(silent(name),
                             lost + LOSS_WITHIN - time.monotonic())
    check(trainer.end() == 1, "the trainer ends with 1")
    error = trainer.output().splitlines()[-1]
    check("worker worker2 and what it had is lost" in error,
          f"the trainer's error names worker2: {error}")
    for program in (trainer, cluster.worker1):
        for name in ("trainer", "worker1"):
            for word in (silent(name), f"worker {name} and what it had"):
                check(word not in program.output(),
                      f"{program.name} does not take {name} for lost")
    cluster.rendezvous.wait_for("worker worker2 is struck off")
    code = cluster.worker2.stop()
    check(code == 0, f"the worker that is cut off ends with 0, not {code}")
    mend()
    cluster.worker2 = cluster.member(network.b, "baton-worker", "worker2")
    # Worker1 hears of the new worker2 within a fifth of a lease; a trainer that
    # is faster is told that worker2 was started again.
    wait_until("a new trainer trains with worker2, started again", 5 * LEASE,
               lambda: resnet(cluster, 1).end() == 0)
    cluster.stop()


def loss(network):
    """Who is cut off without a word is known within the lease, by all."""
    check_loss(network, network.cut, network.mend)


def unplugged(network):
    """The same where the kernel sees that the cable is out."""
    check_loss(network, network.pull, network.plug)


def short_cut(network, steps=600):
    """The training goes on after a cut that is well below the lease."""
    cluster = Cluster(network)
    before = network.a.counter("tx_bytes")
    trainer = cluster.trainer("toy_model", f"--steps={steps}")
    wait_until("the training is on its way", 20,
               lambda: network.a.counter("tx_bytes") > before + 60_000)
    again = network.a.retransmitted()
    network.cut()
    cut = time.monotonic()
    wait_until("host a has sent twice in vain", LEASE / 3,
               lambda: network.a.retransmitted() >= again + 2)
    check(trainer.running(), "the training was not over before the cut")
    network.mend()
    print(f"the network was cut for {time.monotonic() - cut:.2f} s")
    check(trainer.end() == 0, "the trainer ends with 0")
    for program in (trainer, cluster.worker1, cluster.worker2,
                    cluster.rendezvous):
        check("lease" not in program.output(),
              f"{program.name} has taken nobody for lost")
    check(losses(trainer) == losses_of_one_host(network, steps),
          "the losses are those of one host")
    cluster.stop()


CASES = {case.__name__: case
         for case in (training, tls, tensors, tensors_with_tls, loss,
                      unplugged, short_cut)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", metavar="PROGRAMS")
    parser.add_argument("case", metavar="CASE", choices=CASES)
    args = parser.parse_args()
    try:
        reason = why_not_here()
        if reason:
            raise Skip(reason)
        with Network(args.programs) as network:
            CASES[args.case](network)
    except Skip as reason:
        print(f"hosts.{args.case} is skipped: {reason}")
        return SKIPPED
    except Failure as claim:
        print(f"FAILED: {claim}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
