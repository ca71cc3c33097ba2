#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""What an all_reduce takes by torch.distributed with Gloo, in the rows of
collectives_bench: processes of this machine with a core each."""

import os

import common
import torch
import torch.distributed as dist

SIZES = (8, 4096, 65536, 1 << 20, 16 << 20, 64 << 20)
BYTES_OF_A_ROW = 1 << 30


def member(rank, args):
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
