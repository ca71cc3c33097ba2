#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""What a call costs between two processes by torch.distributed.rpc.

TensorPipe with its default transports. The rows have the names of those of
Baton's bench_rpc that do the same; beside_torch.py puts both into one table.
With two GPUs tensors also go from the one to the other.
"""

import statistics
from functools import partial

from common import flags, in_processes, parse, report, report_calls, times

import torch
from torch.distributed import rpc

NAMES = ("caller", "callee")
MEGABYTE = 1 << 20


def nothing():
    pass


def small_answer(_):
    return torch.zeros(1)


def tensor(size, device="cpu"):
    return torch.zeros(size // 4, device=device)


def call(*arguments):
    rpc.rpc_sync("callee", small_answer if arguments else nothing, arguments)


def burst(count, argument):
    torch.futures.wait_all([
        rpc.rpc_async("callee", small_answer, (argument,))
        for _ in range(count)])


def measure(args, name, run, repeat, warm=20, moved=0):
    if args.quick:
        repeat, warm = 5, 1
    report_calls(name, times(run, repeat, warm), moved)


def measure_bursts(args, count, repeat):
    argument = tensor(64)
    seconds = times(lambda: burst(count, argument), 2 if args.quick else repeat)
    report(what=f"rpc_async 64B in flight {count}",
           calls_per_s=round(count / statistics.median(seconds)))


def measure_sends(args, device, megabytes):
    kind = torch.device(device).type
    small = partial(call, tensor(64, device))
    measure(args, f"rpc_sync 64B {kind}", small, 2000 if kind == "cpu" else 500)
    for count in megabytes[:1] if args.quick else megabytes:
        size = count * MEGABYTE
        large = partial(call, tensor(size, device))
        measure(args, f"rpc_sync send {count}MB {kind}", large, 20, warm=3,
                moved=size)


def create_and_fetch():
    rpc.remote("callee", small_answer, (torch.zeros(16),)).to_here()


def run(rank, args, gpus):
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16,
                                              rpc_timeout=60)
    if gpus:
        options.set_device_map(NAMES[1 - rank], {rank: 1 - rank})
    rpc.init_rpc(NAMES[rank], rank=rank, world_size=2,
                 rpc_backend_options=options)
    if rank == 0:
        measure(args, "rpc_sync nop none", call, 2000)
        measure_sends(args, "cpu", (1, 16, 64, 256))
        measure_bursts(args, 256, 20)
        measure_bursts(args, 32, 100)
        measure(args, "remote + to_here", create_and_fetch, 500)
        if gpus:
            measure_sends(args, "cuda:0", (1, 16, 64, 256, 1024))
    rpc.shutdown()


def main():
    args = parse(flags(__doc__, device="cpu"))
    in_processes(2, run, args, args.device == "cuda"
                 and torch.cuda.device_count() > 1)


if __name__ == "__main__":
    main()
