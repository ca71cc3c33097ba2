#!/usr/bin/python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/transformer.safetensors: what PyTorch computes for the parts of a transformer and for a whole one.

Needs PyTorch 2 (Debian 13: apt-get install python3-torch; run with /usr/bin/python3). For each case NAME, in float64:
  NAME.state.*  the module's parameters   NAME.x, ...   inputs
  NAME.y        the result                NAME.dy       the gradient given for it
  NAME.grad.*   gradients of parameters   NAME.dx, ...  and of inputs
"""
import pathlib

import torch
from torch.nn import functional

import safetensors_file

OUT = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'golden' / 'transformer.safetensors'
VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT = 11, 8, 2, 2, 6


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def run(function, inputs, module=None, given=None):
    """`given` has tensors for the file that are not leaves."""
    inputs = {name: value.detach().requires_grad_() for name, value in inputs.items()}
    y = function(**inputs)
    dy = torch.randn_like(y)
    y.backward(dy)
    arrays = {**inputs, **(given or {}), 'y': y, 'dy': dy}
    arrays.update({f'd{name}': value.grad for name, value in inputs.items()})
    if module is not None:
        arrays.update({f'state.{name}': value for name, value in module.named_parameters()})
        arrays.update({f'grad.{name}': value.grad for name, value in module.named_parameters()})
    return arrays


def layer_norm():
    module = torch.nn.LayerNorm([4, 5], eps=1e-3).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return run(lambda x: module(x), {'x': random(2, 3, 4, 5) * 2 + 1}, module)


def activation(function):
    return run(lambda x: function(x), {'x': random(4, 7) * 3})


def attention(is_causal):
    inputs = {'q': random(2, 3, 5, 4), 'k': random(2, 3, 7, 4), 'v': random(2, 3, 7, 6)}
    return run(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal), inputs)


def multi_head_attention(causal):
    module = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64) if causal else None
    return run(lambda x: module(x, x, x, attn_mask=mask, need_weights=False)[0], {'x': random(3, 5, WIDTH)}, module)


def cross_entropy():
    targets = torch.randint(0, 5, (2, 3))
    return run(lambda x: functional.cross_entropy(x.flatten(0, 1), targets.flatten()), {'x': random(2, 3, 5)},
               given={'targets': targets})


class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.positions = torch.nn.Embedding(CONTEXT, WIDTH)
        self.blocks = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0, activation='gelu', batch_first=True,
                                             norm_first=True) for _ in range(LAYERS))
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, ids):
        length = ids.shape[1]
        mask = torch.nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.float64)
        x = self.tokens(ids) + self.positions.weight[:length]
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return functional.linear(self.norm(x), self.tokens.weight)


def language_model():
    module = LanguageModel().double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    ids = torch.randint(0, VOCABULARY, (3, CONTEXT))
    inputs, targets = ids[:, :-1], ids[:, 1:]
    logits = module(inputs)
    loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    arrays = {'ids': inputs, 'targets': targets, 'logits': logits, 'loss': loss}
    arrays.update({f'state.{name}': value for name, value in module.named_parameters()})
    arrays.update({f'grad.{name}': value.grad for name, value in module.named_parameters()})
    return arrays


def main():
    torch.manual_seed(13)
    cases = {
        'layer_norm': layer_norm(),
        'gelu': activation(functional.gelu),
        'silu': activation(functional.silu),
        'attention': attention(is_causal=False),
        'attention_causal': attention(is_causal=True),
        'multi_head': multi_head_attention(causal=False),
        'multi_head_causal': multi_head_attention(causal=True),
        'cross_entropy': cross_entropy(),
        'language_model': language_model(),
    }
    arrays = {}
    for case, values in cases.items():
        for name, value in values.items():
            arrays[f'{case}.{name}'] = value.detach().contiguous().numpy()
    safetensors_file.write(OUT, arrays)


if __name__ == '__main__':
    main()
