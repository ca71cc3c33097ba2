#!/usr/bin/python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/rnn.safetensors: what PyTorch's LSTM and GRU compute, and their gradients.

Debian: apt-get install python3-torch; run with /usr/bin/python3. For each case NAME, in float64:
  NAME.state.*      the module's parameters        NAME.x, .h, .c     inputs
  NAME.y, .hn, .cn  results                        NAME.dy, .dhn, .dcn  gradients given for them
  NAME.grad.*       gradients of the parameters    NAME.dx, .dh, .dc  and of the inputs
"""
import pathlib

import torch

import safetensors_file

OUT = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'golden' / 'rnn.safetensors'
STEPS, BATCH, IN, HIDDEN = 5, 3, 4, 6
CASES = {
    'lstm': (torch.nn.LSTM, dict()),
    'lstm_deep': (torch.nn.LSTM, dict(num_layers=2, bidirectional=True)),
    'lstm_plain': (torch.nn.LSTM, dict(bias=False)),
    'gru': (torch.nn.GRU, dict()),
    'gru_deep': (torch.nn.GRU, dict(num_layers=2, bidirectional=True)),
    'gru_plain': (torch.nn.GRU, dict(bias=False)),
}


def run(make, options):
    module = make(IN, HIDDEN, **options).double()
    layers = options.get('num_layers', 1) * (2 if options.get('bidirectional') else 1)
    lstm = make is torch.nn.LSTM
    inputs = {'x': torch.randn(STEPS, BATCH, IN, dtype=torch.float64)}
    for name in ('h', 'c') if lstm else ('h',):
        inputs[name] = torch.randn(layers, BATCH, HIDDEN, dtype=torch.float64)
    for tensor in inputs.values():
        tensor.requires_grad_()
    y, last = module(inputs['x'], (inputs['h'], inputs['c']) if lstm else inputs['h'])
    results = {'y': y, 'hn': last[0], 'cn': last[1]} if lstm else {'y': y, 'hn': last}
    given = {f'd{name}': torch.randn_like(value) for name, value in results.items()}
    torch.autograd.backward(list(results.values()), list(given.values()))
    arrays = {**inputs, **results, **given}
    arrays.update({f'd{name}': value.grad for name, value in inputs.items()})
    arrays.update({f'state.{name}': value for name, value in module.named_parameters()})
    arrays.update({f'grad.{name}': value.grad for name, value in module.named_parameters()})
    return arrays


def main():
    torch.manual_seed(11)
    arrays = {}
    for case, (make, options) in CASES.items():
        for name, value in run(make, options).items():
            arrays[f'{case}.{name}'] = value.detach().contiguous().numpy()
    safetensors_file.write(OUT, arrays)


if __name__ == '__main__':
    main()
