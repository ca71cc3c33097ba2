#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/layers.safetensors: what PyTorch's layers compute, what autocast makes of a small net, and the
orders of its samplers. Run with a Python that has torch and numpy. In float64, for each layer NAME:
  NAME.state.*  parameters      NAME.x, .offsets, .weights  inputs
  NAME.y        result          NAME.dy                     gradient given for it
  NAME.grad.*   gradients of the parameters    NAME.dx, .dweights  and of the inputs
"""
import pathlib

import torch
from torch import nn
from torch.utils.data import DistributedSampler, RandomSampler

import safetensors_file

OUT = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'golden' / 'layers.safetensors'
DENSE = {
    'conv1d': (lambda: nn.Conv1d(4, 6, 3), (2, 4, 9)),
    'conv1d_strided': (lambda: nn.Conv1d(4, 6, 4, stride=2, padding=3, dilation=2, groups=2, bias=False), (3, 4, 11)),
    'conv_transpose2d': (lambda: nn.ConvTranspose2d(3, 5, (3, 2)), (2, 3, 4, 5)),
    'conv_transpose2d_strided': (lambda: nn.ConvTranspose2d(
        4, 6, (3, 4), stride=(2, 3), padding=(1, 2), output_padding=(1, 2), groups=2), (2, 4, 5, 3)),
    'conv_transpose2d_dilated': (lambda: nn.ConvTranspose2d(
        4, 2, 3, stride=1, padding=1, output_padding=(1, 2), dilation=3, bias=False), (1, 4, 4, 5)),
    'group_norm': (lambda: nn.GroupNorm(2, 6), (3, 6, 4, 5)),
    'group_norm_plain': (lambda: nn.GroupNorm(3, 6, eps=1e-3), (4, 6)),
    'group_norm_one': (lambda: nn.GroupNorm(1, 5), (2, 5, 7)),
    'leaky_relu': (lambda: nn.LeakyReLU(), (4, 7)),
    'leaky_relu_steep': (lambda: nn.LeakyReLU(1.5), (4, 7)),
}
OFFSETS = [0, 3, 3, 7]
BAGS = {
    'bag_mean': dict(),
    'bag_sum': dict(mode='sum'),
    'bag_max': dict(mode='max'),
    'bag_mean_padded': dict(mode='mean', padding_idx=2),
    'bag_sum_padded': dict(mode='sum', padding_idx=2),
    'bag_max_padded': dict(mode='max', padding_idx=2),
    'bag_sum_last': dict(mode='sum', include_last_offset=True),
}


def gradients(module):
    found = {f'state.{name}': value for name, value in module.named_parameters()}
    found.update({f'grad.{name}': value.grad for name, value in module.named_parameters()})
    return found


def dense(make, shape):
    module = make().double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    y = module(x)
    dy = torch.randn_like(y)
    y.backward(dy)
    return {**gradients(module), 'x': x, 'y': y, 'dy': dy, 'dx': x.grad}


def bag(options):
    module = nn.EmbeddingBag(6, 3, **options).double()
    x = torch.tensor([1, 2, 5, 0, 2, 2, 4, 5, 1, 2])
    offsets = torch.tensor(OFFSETS + [len(x)] if options.get('include_last_offset') else OFFSETS)
    arrays = {'x': x, 'offsets': offsets}
    weights = None
    if options.get('mode') == 'sum':
        weights = torch.randn(len(x), dtype=torch.float64, requires_grad=True)
        arrays['weights'] = weights
    y = module(x, offsets, weights)
    dy = torch.randn_like(y)
    y.backward(dy)
    if weights is not None:
        arrays['dweights'] = weights.grad
    return {**arrays, **gradients(module), 'y': y, 'dy': dy}


def autocast():
    """Runs a net in float32 whose linear and convolution layers compute in bfloat16."""
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.Flatten(), nn.Linear(8 * 16, 10))
    x = torch.randn(4, 3, 6, 6, requires_grad=True)
    labels = torch.tensor([1, 7, 0, 3])
    with torch.autocast('cpu', dtype=torch.bfloat16):
        y = module(x)
        loss = nn.functional.cross_entropy(y, labels)
    assert y.dtype == torch.bfloat16 and loss.dtype == torch.float32
    loss.backward()
    return {**gradients(module), 'x': x, 'labels': labels, 'y': y.float(), 'loss': loss, 'dx': x.grad}


def samplers():
    data = list(range(23))
    arrays = {}
    for drop in (False, True):
        for epoch in (0, 3):
            for rank in range(4):
                sampler = DistributedSampler(data, 4, rank, seed=11, drop_last=drop)
                sampler.set_epoch(epoch)
                arrays[f'distributed.{int(drop)}.{epoch}.{rank}'] = torch.tensor(list(sampler))
    for rank in range(3):  # more workers than samples, and no shuffle
        arrays[f'few.{rank}'] = torch.tensor(list(DistributedSampler([0, 1], 7, rank, shuffle=False)))
    generator = torch.Generator().manual_seed(5)
    arrays['random'] = torch.tensor(list(RandomSampler(data, generator=generator)))
    arrays['permutation'] = torch.randperm(1000, generator=torch.Generator().manual_seed(123456789012))
    return arrays


def main():
    torch.manual_seed(29)
    cases = {name: dense(*case) for name, case in DENSE.items()}
    cases.update({name: bag(options) for name, options in BAGS.items()})
    cases['autocast'] = autocast()
    cases['samplers'] = samplers()
    arrays = {f'{case}.{name}': value.detach().contiguous().numpy()
              for case, values in cases.items() for name, value in values.items()}
    safetensors_file.write(OUT, arrays)


if __name__ == '__main__':
    main()
