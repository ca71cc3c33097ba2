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
sync_batch_norm is of SyncBatchNorm, which PyTorch has for GPUs only, one of them for all ranks or each its own:
  x.R, dy.R, y.R, dx.R of each rank; state.*, grad.* (sums over the ranks) and after.*, running statistics too.
  Without a GPU it is what SyncBatchNorm's documentation says, BatchNorm2d over the rows of all ranks. With one, the
  two must be the same within rounding.
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
ROWS = [2, 5]  # of sync_batch_norm, by rank


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
    if torch.cuda.is_available():
        torch.save(sync_batch_norm(rank), f'{folder}/sync_batch_norm.{rank}')
    distributed.destroy_process_group()


def norm_case():
    """Returns a batch norm, the inputs of all ranks, and the gradients given for their outputs."""
    torch.manual_seed(11)
    module = nn.BatchNorm2d(4).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(sum(ROWS), 4, 3, 2, dtype=torch.float64)
    return module, x, torch.randn_like(x)


def of_module(module):
    arrays = {f'grad.{name}': value.grad for name, value in module.named_parameters()}
    arrays.update({f'after.{name}': value for name, value in module.state_dict().items()})
    return {name: value.detach().cpu() for name, value in arrays.items()}


def sync_batch_norm(rank):
    """Runs SyncBatchNorm at one rank, by NCCL if each rank has a GPU, else by Gloo."""
    group = None
    if torch.cuda.device_count() >= RANKS:
        group = distributed.new_group(backend='nccl')
    torch.cuda.set_device(rank % torch.cuda.device_count())
    module, x, dy = norm_case()
    module = nn.SyncBatchNorm.convert_sync_batchnorm(module, group).cuda()
    x = x.split(ROWS)[rank].cuda().requires_grad_()
    y = module(x)
    y.backward(dy.split(ROWS)[rank].cuda())
    for parameter in module.parameters():  # each rank has what its own rows give
        distributed.all_reduce(parameter.grad, group=group)
    return {f'y.{rank}': y.detach().cpu(), f'dx.{rank}': x.grad.cpu(), **of_module(module)}


def joint_batch_norm():
    """Runs BatchNorm2d over the rows of all ranks."""
    module, x, dy = norm_case()
    arrays = {f'state.{name}': value.clone() for name, value in module.state_dict().items()}
    x.requires_grad_()
    y = module(x)
    y.backward(dy)
    for name, value in {'x': x, 'y': y, 'dy': dy, 'dx': x.grad}.items():
        arrays.update({f'{name}.{rank}': part for rank, part in enumerate(value.split(ROWS))})
    return {**arrays, **of_module(module)}


def main():
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(run, args=(folder,), nprocs=RANKS)
        arrays = torch.load(f'{folder}/arrays')
        norms = joint_batch_norm()
        if torch.cuda.is_available():
            for rank in range(RANKS):
                for name, value in torch.load(f'{folder}/sync_batch_norm.{rank}').items():
                    torch.testing.assert_close(value, norms[name], rtol=1e-12, atol=1e-12)
                    norms[name] = value
            print('sync_batch_norm is that of', torch.cuda.get_device_name())
    for case, steps in STEPS.items():
        for rank in range(RANKS):
            for step in range(steps[rank]):
                x, labels = batch(rank, step)
                arrays.update({f'{case}.x.{rank}.{step}': x, f'{case}.labels.{rank}.{step}': labels})
    arrays.update({f'sync_batch_norm.{name}': value for name, value in norms.items()})
    safetensors_file.write(OUT, {name: value.detach().contiguous().numpy() for name, value in arrays.items()})


if __name__ == '__main__':
    main()
