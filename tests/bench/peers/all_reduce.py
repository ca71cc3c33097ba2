#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""What an all_reduce takes by torch.distributed, in the rows of
collectives_bench: with Gloo between processes of this machine with a core each,
with NCCL between processes with a GPU each."""

import os
import statistics
import time

import common
import torch
import torch.distributed as dist

SIZES = (8, 4096, 65536, 1 << 20, 16 << 20, 64 << 20)
GPU_SIZES = (8, 4096, 65536, 1_000_000, 10_000_000, 100_000_000)
BYTES_OF_A_ROW = 1 << 30
REPEATS, CALLS_A_REPEAT = 11, 50


def on_cpu(rank, args):
    os.sched_setaffinity(0, {rank})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.members)
    for size in SIZES:
        x = torch.ones(size // 4)
        count = args.count or min(2000, BYTES_OF_A_ROW // size)
        seconds = common.times(
            lambda: dist.all_reduce(x, op=dist.ReduceOp.MAX), count,
            warm=count // 10 + 2)
        if rank == 0:
            common.report_calls(f"all_reduce {size}", seconds)


def on_gpus(rank, args):
    """A call is one of many that follow each other on the stream."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=args.members)
    for size in GPU_SIZES:
        x = torch.zeros(size // 4, device=f"cuda:{rank}")
        seconds = []
        for repeat in range(REPEATS + 2):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(CALLS_A_REPEAT):
                dist.all_reduce(x)
            torch.cuda.synchronize()
            if repeat >= 2:
                seconds.append((time.perf_counter() - begin) / CALLS_A_REPEAT)
        if rank == 0:
            common.report_calls(f"all_reduce {size}",
                                [statistics.median(seconds)])


def member(rank, args):
    (on_gpus if args.device == "cuda" else on_cpu)(rank, args)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = common.flags(__doc__, device="cpu")
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--count", type=int, default=0,
                        help="calls a row; 0: as collectives_bench")
    args = common.parse(parser, count=2)
    common.in_processes(args.members, member, args)


if __name__ == "__main__":
    main()
