#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""A ResNet by DistributedDataParallel with Gloo on the CPU, as resnet50_ddp
trains it: processes with a core each, random images drawn once."""

import os

import common
import torch
import torch.distributed as dist
from torch import nn


def train(parallel, optimizer, images, labels):
    optimizer.zero_grad()
    nn.functional.cross_entropy(parallel(images), labels).backward()
    optimizer.step()


def member(rank, args):
    os.sched_setaffinity(0, {rank})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.members)
    torch.manual_seed(rank)
    layout = torch.channels_last if args.channels_last else \
        torch.contiguous_format
    model = getattr(common.torchvision_models(), f"resnet{args.depth}")(
        num_classes=common.CLASSES).train().to(memory_format=layout)
    parallel = nn.parallel.DistributedDataParallel(
        model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = common.images(args.batch, args.image).to(memory_format=layout)
    labels = torch.randint(common.CLASSES, (args.batch,))
    seconds = common.times(
        lambda: train(parallel, optimizer, images, labels), args.repeat, warm=2)
    if rank == 0:
        common.report_images(
            seconds, args.batch * args.members, variant="ddp gloo",
            depth=args.depth, channels_last=args.channels_last,
            min_s=round(min(seconds), 6))
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = common.flags(__doc__, device="cpu")
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--batch", type=int, default=32,
                        help="images of a step at each")
    parser.add_argument("--image", type=int, default=128)
    parser.add_argument("--channels_last", action="store_true")
    args = common.parse(parser, depth=18, batch=2, image=32)
    common.in_processes(args.members, member, args)


if __name__ == "__main__":
    main()
