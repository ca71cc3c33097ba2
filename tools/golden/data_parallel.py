#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/data_parallel.safetensors: what PyTorch's DistributedDataParallel does in two processes that Gloo
connects, in float64. Run with a Python that has torch and numpy. For each case NAME:
  NAME.state.*   parameters at first        NAME.x.R.I, .labels.R.I  batch I of rank R
  NAME.grad.*    gradients in the end       NAME.after.*             parameters in the end
  no_sync: batches add up, and only the last one's backward reduces.
  unused: rank 1's loss does not reach `b`, and no loss reaches `c`; two steps.
  uneven: rank 0 takes three steps, rank 1 one; the mean is over those that take a step.
sync_batch_norm has what its documentation says, BatchNorm2d over the rows of all ranks (CPUs have no SyncBatchNorm):
  x.R, dy.R, y.R, dx.R of each rank; state.*, grad.* (sums over the ranks) and after.*, running statistics too.
"""
import pathlib
import tempfile

import torch
from torch import distributed, multiprocessing, nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

import safetensors_file

OUT = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'golden' / 'data_parallel.safetensors'
RANKS = 2
STEPS = {'no_sync': [3, 3], 'unused': [2, 2], 'uneven': [3, 1]}


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(5, 4), nn.Linear(5, 4), nn.Linear(5, 4)

    def forward(self, x, with_b):
        return self.a(x) + self.b(x) if with_b else self.a(x)


def model(case):
    torch.manual_seed(7)
    return (Branches() if case == 'unused' else nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4))).double()


def batch(rank, step):
    generator = torch.Generator().manual_seed(100 * rank + step)
    x = torch.randn(3, 5, dtype=torch.float64, generator=generator)
    return x, torch.randint(0, 4, (3,), generator=generator)


def loss_of(module, case, rank, step):
    x, labels = batch(rank, step)
    y = module(x, rank == 0) if case == 'unused' else module(x)
    return nn.functional.cross_entropy(y, labels)


def take(case, rank, parallel, optimizer):
    steps = STEPS[case][rank]
    if case == 'no_sync':
        with parallel.no_sync():
            for step in range(steps - 1):
                loss_of(parallel, case, rank, step).backward()
        loss_of(parallel, case, rank, steps - 1).backward()
        return
    with Join([parallel], enable=case == 'uneven', divide_by_initial_world_size=False):
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(parallel, case, rank, step).backward()
            optimizer.step()


def run(rank, folder):
    distributed.init_process_group('gloo', init_method=f'file://{folder}/meeting', rank=rank, world_size=RANKS)
    arrays = {}
    for case in STEPS:
        module = model(case)
        state = {f'{case}.state.{name}': value.clone() for name, value in module.state_dict().items()}
        parallel = DistributedDataParallel(module, find_unused_parameters=case == 'unused')
        take(case, rank, parallel, torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9))
        arrays.update(state)
        arrays.update({f'{case}.after.{name}': value for name, value in module.state_dict().items()})
        arrays.update({f'{case}.grad.{name}': value.grad for name, value in module.named_parameters()
                       if value.grad is not None})
    if rank == 0:
        torch.save(arrays, f'{folder}/arrays')
    distributed.destroy_process_group()


def sync_batch_norm():
    torch.manual_seed(11)
    module = nn.BatchNorm2d(4).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    rows = [2, 5]
    arrays = {f'state.{name}': value.clone() for name, value in module.state_dict().items()}
    x = torch.randn(sum(rows), 4, 3, 2, dtype=torch.float64, requires_grad=True)
    y = module(x)
    dy = torch.randn_like(y)
    y.backward(dy)
    for name, value in {'x': x, 'y': y, 'dy': dy, 'dx': x.grad}.items():
        arrays.update({f'{name}.{rank}': part for rank, part in enumerate(value.split(rows))})
    arrays.update({f'grad.{name}': value.grad for name, value in module.named_parameters()})
    arrays.update({f'after.{name}': value for name, value in module.state_dict().items()})
    return {f'sync_batch_norm.{name}': value for name, value in arrays.items()}


def main():
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(run, args=(folder,), nprocs=RANKS)
        arrays = torch.load(f'{folder}/arrays')
    for case, steps in STEPS.items():
        for rank in range(RANKS):
            for step in range(steps[rank]):
                x, labels = batch(rank, step)
                arrays.update({f'{case}.x.{rank}.{step}': x, f'{case}.labels.{rank}.{step}': labels})
    arrays.update(sync_batch_norm())
    safetensors_file.write(OUT, {name: value.detach().contiguous().numpy() for name, value in arrays.items()})


if __name__ == '__main__':
    main()
