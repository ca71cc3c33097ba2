#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.rpc in the shapes of its tutorials, with CPU tensors.

A parameter server that waits for all trainers before it updates (batch) or for
none (hogwild); readers of rows of a remote embedding; observers whose states
one policy answers as a batch. All are processes of one machine. Baton's
parameter_server, embedding_rows and rl do the same (beside_torch.py --shapes).
"""

import statistics
import threading
import time
import warnings

from common import flags, in_processes, parse, report, resnet50, words

import torch
from torch import nn
from torch.distributed import rpc

SERVER = "w0"
RATE = 0.01
OBSERVED = ACTIONS = 10


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.Conv2d(20, 50, 5), nn.Flatten(),
        nn.Linear(800, 128), nn.Linear(128, 10))


MODELS = {"lenet": lenet, "resnet50": resnet50}


def sizes(model):
    return [parameter.shape for parameter in MODELS[model]().parameters()]


class ParameterServer:
    def __init__(self, model, trainers):
        self.parameters = [torch.zeros(size) for size in sizes(model)]
        self.sums = [torch.zeros(size) for size in sizes(model)]
        self.trainers = trainers
        self.missing = trainers
        self.lock = threading.Lock()
        self.round = torch.futures.Future()

    @staticmethod
    @rpc.functions.async_execution
    def batch(handle, gradients):
        self = handle.local_value()
        with self.lock:
            answer = self.round
            for total, gradient in zip(self.sums, gradients):
                total += gradient
            self.missing -= 1
            if self.missing == 0:
                for parameter, total in zip(self.parameters, self.sums):
                    parameter.sub_(total, alpha=RATE / self.trainers)
                    total.zero_()
                self.missing = self.trainers
                self.round = torch.futures.Future()
                answer.set_result(self.parameters)
        return answer

    @staticmethod
    def hogwild(handle, gradients):
        self = handle.local_value()
        for parameter, gradient in zip(self.parameters, gradients):
            parameter.sub_(gradient, alpha=RATE)
        return self.parameters


def push(handle, model, mode, count):
    """A trainer; gives its pushes per second."""
    method = getattr(ParameterServer, mode)
    gradients = [torch.ones(size) for size in sizes(model)]
    for _ in range(2):
        rpc.rpc_sync(SERVER, method, (handle, gradients))
    begin = time.perf_counter()
    for _ in range(count):
        rpc.rpc_sync(SERVER, method, (handle, gradients))
    return count / (time.perf_counter() - begin)


class Table:
    def __init__(self, rows, width):
        self.rows = rows
        self.bags = nn.EmbeddingBag(rows, width, mode="sum")

    @staticmethod
    def look_up(handle, ids, offsets):
        with torch.no_grad():
            return handle.local_value().bags(ids, offsets)


def read(handle, rows, count, batch):
    """A reader; gives its rows per second."""
    offsets = torch.arange(batch)
    draws = torch.Generator().manual_seed(rpc.get_worker_info().id)
    begin = time.perf_counter()
    for _ in range(count):
        ids = torch.randint(0, rows, (batch,), generator=draws)
        rpc.rpc_sync(SERVER, Table.look_up, (handle, ids, offsets))
    return count * batch / (time.perf_counter() - begin)


class Policy:
    def __init__(self, observers):
        widths = [OBSERVED, 20, 20, 20, 20]
        layers = []
        for before, after in zip(widths, widths[1:]):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.network = nn.Sequential(*layers, nn.Linear(20, ACTIONS))
        self.observers = observers
        self.lock = threading.Lock()
        self.begin()

    def begin(self):
        self.states = []
        self.chosen = torch.futures.Future()

    @staticmethod
    @rpc.functions.async_execution
    def act(handle, state):
        self = handle.local_value()
        with self.lock:
            place = len(self.states)
            self.states.append(state)
            answer = self.chosen.then(lambda all_: all_.wait()[place].item())
            if len(self.states) == self.observers:
                with torch.no_grad():
                    scores = self.network(torch.stack(self.states))
                full = self.chosen
                self.begin()
                full.set_result(scores.argmax(1))
        return answer


def observe(handle, count):
    """An observer; gives its requests per second and their median time."""
    state = torch.randn(OBSERVED)
    taken = []
    begin = time.perf_counter()
    for _ in range(count):
        asked = time.perf_counter()
        rpc.rpc_sync(SERVER, Policy.act, (handle, state))
        taken.append(time.perf_counter() - asked)
    return count / (time.perf_counter() - begin), statistics.median(taken)


def at_all(count, function, *arguments):
    """What `count` other processes give, each called at the same time."""
    return torch.futures.wait_all([
        rpc.rpc_async(f"w{number + 1}", function, arguments)
        for number in range(count)])


def measure_pushes(quick):
    pushes = {"lenet": 3, "resnet50": 1} if quick else {"lenet": 300,
                                                        "resnet50": 24}
    for model, count in pushes.items():
        for trainers in (2,) if quick else (2, 4, 8):
            for mode in ("batch", "hogwild"):
                server = rpc.RRef(ParameterServer(model, trainers))
                rates = at_all(trainers, push, server, model, mode, count)
                report(what=f"parameter server, {mode}", model=model,
                       trainers=trainers, pushes_per_s=round(sum(rates), 1))


def measure_rows(quick):
    rows, count, batch = (1000, 3, 64) if quick else (1_000_000, 200, 4096)
    table = rpc.RRef(Table(rows, 64))
    for readers in (2,) if quick else (1, 4, 8):
        rates = at_all(readers, read, table, rows, count, batch)
        report(what="rows of an embedding", readers=readers,
               rows_per_s=round(sum(rates)))


def measure_inference(quick):
    for observers in (2,) if quick else (8, 16):
        policy = rpc.RRef(Policy(observers))
        results = at_all(observers, observe, policy, 5 if quick else 300)
        rates, medians = zip(*results)
        report(what="batched inference", observers=observers,
               requests_per_s=round(sum(rates)),
               median_us=round(statistics.median(medians) * 1e6, 1))


SHAPES = {"push": measure_pushes, "rows": measure_rows,
          "inference": measure_inference}


def run(rank, args, processes):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(2)
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=32,
                                              rpc_timeout=120)
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=processes,
                 rpc_backend_options=options)
    if rank == 0:
        for shape in args.shapes:
            SHAPES[shape](args.quick)
    rpc.shutdown()


def main():
    parser = flags(__doc__, device="cpu")
    parser.add_argument("--shapes", type=words, default=list(SHAPES),
                        help="of " + ",".join(SHAPES))
    args = parse(parser)
    processes = 3 if args.quick else 17
    in_processes(processes, run, args, processes)


if __name__ == "__main__":
    main()
