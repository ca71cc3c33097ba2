#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""ResNet50 as a pipeline over two workers by torch.distributed.rpc.

PyTorch's RPC pipeline tutorial at its best: a trainer drives two workers that
hold a half each, distributed autograd and the distributed optimizer do the
rest, and with device maps GPU tensors go from worker to worker.
"""

import sys
import threading
import warnings

from common import (allow_tf32, flags, idle, image_flags, images,
                    in_processes, labels, numbers, parse, report_images,
                    resnet50_parts, times)

import torch
from torch.distributed import autograd, rpc
from torch.distributed.optim import DistributedOptimizer

NAMES = ("trainer", "front", "back")


class Half(torch.nn.Module):
    """One part of the model, at the worker that has made it."""

    def __init__(self, number, device):
        super().__init__()
        self.part = resnet50_parts()[number].to(device)
        self.device = device
        self.lock = threading.Lock()  # batch norm counts what it sees

    def forward(self, source):
        x = source.to_here().to(self.device)
        with self.lock:
            return self.part(x)

    def parameter_handles(self):
        return [rpc.RRef(parameter) for parameter in self.part.parameters()]


class Pipeline:
    def __init__(self, split, devices):
        self.split = split
        self.halves = [rpc.remote(name, Half, (number, devices[number]))
                       for number, name in enumerate(NAMES[1:])]

    def __call__(self, x):
        front, back = self.halves
        results = []
        for part in x.split(self.split):
            hidden = front.remote().forward(rpc.RRef(part))
            results.append(back.rpc_async().forward(hidden))
        return torch.cat(torch.futures.wait_all(results))

    def parameters(self):
        return [handle for half in self.halves
                for handle in half.rpc_sync().parameter_handles()]


def measure(args, devices, split):
    model = Pipeline(split, devices)
    optimizer = DistributedOptimizer(torch.optim.SGD, model.parameters(),
                                     lr=0.001)
    at = devices if args.gpu_trainer else ("cpu", "cpu")
    data = [(images(args.batch, args.image, at[0]),
             labels(args.batch, at[1])) for _ in range(args.batches)]

    def train():
        for x, y in data:
            with autograd.context() as context:
                output = model(x)
                loss = torch.nn.functional.mse_loss(output, y.to(output.device))
                autograd.backward(context, [loss])
                optimizer.step(context)

    def everybody_idle():
        for name in NAMES[1:]:
            rpc.rpc_sync(name, idle)
        idle()

    seconds = times(train, args.repeat, warm=2, settle=everybody_idle)
    report_images(seconds, args.batch * args.batches, variant="rpc pipeline",
                  split_size=split, batch=args.batch, image=args.image,
                  device=args.device, gpu_trainer=args.gpu_trainer)


def run(rank, args):
    warnings.filterwarnings("ignore")
    allow_tf32()
    if args.device == "cpu":
        torch.set_num_threads(args.threads)
    devices = ("cpu", "cpu")
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=128,
                                              rpc_timeout=300)
    if args.device == "cuda":
        devices = ("cuda:0", "cuda:1")
        for name in NAMES:
            # A half's tensors come to the GPU of the other half.
            between = {NAMES[rank], name} == set(NAMES[1:])
            same, crossed = {0: 0, 1: 1}, {0: 1, 1: 0}
            if name != NAMES[rank]:
                options.set_device_map(name, crossed if between else same)
    rpc.init_rpc(NAMES[rank], rank=rank, world_size=3,
                 rpc_backend_options=options)
    if rank == 0:
        for split in args.split_size:
            measure(args, devices, split)
    rpc.shutdown()


def main():
    parser = flags(__doc__)
    image_flags(parser)
    parser.add_argument("--batches", type=int, default=3,
                        help="batches of one repeat")
    parser.add_argument("--split_size", type=numbers,
                        default=[12, 20, 40, 60, 120])
    parser.add_argument("--gpu_trainer", action="store_true",
                        help="keep the trainer's images and labels on the GPUs")
    parser.add_argument("--threads", type=int, default=1,
                        help="compute threads of each process on the CPU")
    args = parse(parser, batch=4, image=32, split_size=[2])
    if args.device == "cpu":
        args.gpu_trainer = False
    elif torch.cuda.device_count() < 2:
        sys.exit("this needs two GPUs; --device=cpu --quick tries it without")
    in_processes(3, run, args)


if __name__ == "__main__":
    main()
