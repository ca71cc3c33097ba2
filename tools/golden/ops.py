#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/ops.safetensors: what PyTorch's ops compute where it is not plain.

For each case NAME, which tests/models/nn/ops_test.cc calls the same, in float64:
  NAME.a, .b    inputs                  NAME.y, .dy   result, and the gradient given for it
  NAME.da, .db  gradients of inputs     NAME.i        indices, of what sorts
"""
import pathlib

import torch

import safetensors_file

OUT = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'golden' / 'ops.safetensors'
NAN, INF = float('nan'), float('inf')
ODD = [-INF, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, INF, NAN]


def odd():
    return torch.tensor(ODD, dtype=torch.float64)


def mixed():
    x = torch.randn(3, 4, 5, dtype=torch.float64)
    x[0, 0, :3] = torch.tensor([NAN, INF, -INF])
    return x


def cases():
    mask = (torch.arange(4) % 2 == 0)
    result = {
        'pow': (lambda a, b: a.pow(b), odd().view(-1, 1), odd()),
        'where': (lambda a, b: torch.where(mask.view(-1, 1), a, b), mixed(), odd()[:5]),
        'masked_fill': (lambda a: a.masked_fill(mask.view(-1, 1), -INF), mixed()),
        'sin': (torch.sin, odd()),
        'cos': (torch.cos, odd()),
        'abs': (torch.abs, odd()),
        'clamp': (lambda a: a.clamp(-1.5, 1.5), odd()),  # at bounds versions differ
        'maximum': (torch.maximum, odd().view(-1, 1), odd()),
        'minimum': (torch.minimum, odd().view(-1, 1), odd()),
    }
    for exponent in (-1, 0, 0.5, 1, 2, 3):
        result[f'pow_{exponent}'] = (lambda a, e=exponent: a.pow(e), odd())
    for axis in (0, 1, -1):
        result[f'cumsum_{axis}'] = (lambda a, d=axis: a.cumsum(d), mixed())
        for down in (False, True):
            result[f'sort_{axis}_{int(down)}'] = (
                lambda a, d=axis, r=down: torch.sort(a, dim=d, descending=r, stable=True), mixed())
            result[f'top_k_{axis}_{int(down)}'] = (
                lambda a, d=axis, r=down: torch.topk(a, 2, d, r), mixed())
    return result


def main():
    torch.manual_seed(31)
    arrays = {}
    for name, (function, *inputs) in cases().items():
        leaves = [value.requires_grad_() for value in inputs]
        y = function(*leaves)
        if not torch.is_tensor(y):
            arrays[f'{name}.i'] = y.indices
            y = y.values
        dy = torch.randn_like(y)
        y.backward(dy)
        arrays.update({f'{name}.y': y, f'{name}.dy': dy})
        for letter, leaf in zip('ab', leaves):
            arrays.update({f'{name}.{letter}': leaf, f'{name}.d{letter}': leaf.grad})
    safetensors_file.write(OUT, {name: value.detach().contiguous().numpy()
                                 for name, value in arrays.items()},
                           {'torch': torch.__version__})


if __name__ == '__main__':
    main()
