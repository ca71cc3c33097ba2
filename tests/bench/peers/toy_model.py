#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a model of two layers, each in a process of its own.

The program of examples/toy_model.cc by torch.distributed.rpc.
"""

import argparse
import os
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.multiprocessing as mp
from torch import nn
from torch.distributed import rpc
from torch.distributed.nn import RemoteModule
from torch.distributed.optim import DistributedOptimizer
from torch.utils.tensorboard import SummaryWriter

NAMES = ["trainer", "worker1", "worker2"]


class Layer(nn.Module):
    def __init__(self, seed, inputs, outputs):
        super().__init__()
        torch.manual_seed(seed)
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return torch.tanh(self.linear(x))


def train(args):
    front = RemoteModule("worker1", Layer, (1, 10, 16))
    back = RemoteModule("worker2", Layer, (2, 16, 5))
    parameters = front.remote_parameters() + back.remote_parameters()
    sgd = DistributedOptimizer(torch.optim.SGD, parameters, lr=0.5)
    torch.manual_seed(3)
    inputs = torch.randn(20, 10)
    targets = 2 * torch.rand(20, 5) - 1
    log = SummaryWriter(args.tensorboard) if args.tensorboard else None
    for step in range(1, args.steps + 1):
        began = time.perf_counter()
        with dist_autograd.context() as context:
            loss = nn.functional.mse_loss(back(front(inputs)), targets)
            dist_autograd.backward(context, [loss])
            sgd.step(context)
        print(f"step {step}: loss {loss.item():.5f}", flush=True)
        if log:
            log.add_scalar("loss", loss.item(), step)
            log.add_scalar("rate", 0.5, step)
            rows = len(inputs) / (time.perf_counter() - began)
            log.add_scalar("rows per second", rows, step)
    if log:
        log.close()


def run(rank, args):
    rpc.init_rpc(NAMES[rank], rank=rank, world_size=len(NAMES))
    if NAMES[rank] == "trainer":
        train(args)
    rpc.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="training steps")
    parser.add_argument("--tensorboard", help="write TensorBoard's files here")
    args = parser.parse_args()
    if args.steps < 1:
        parser.error("--steps must be at least 1")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    mp.spawn(run, args=(args,), nprocs=len(NAMES))


if __name__ == "__main__":
    main()
