#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/losses.safetensors: what PyTorch's losses compute, and their gradients.

For each case NAME, which tests/models/nn/losses_test.cc calls the same, in float64:
  NAME.x, .t            input and target     NAME.weight, .pos_weight  options, where there are any
  NAME.y, .dy           loss, and the gradient given for it
  NAME.dx, .dt          gradients of the input and, but for labels, of the target
Every case also exists with a reduction: NAME_none, NAME_sum, NAME_mean (and NAME_batchmean).
"""
import pathlib

import torch
import torch.nn.functional as F

import safetensors_file

OUT = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'golden' / 'losses.safetensors'
REDUCTIONS = ('none', 'sum', 'mean')


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def uniform(*shape):
    return torch.rand(*shape, dtype=torch.float64)


def labels(classes, *shape, ignored=None):
    values = torch.randint(0, classes, shape)
    if ignored is not None:
        values.view(-1)[::3] = ignored
    return values


def elements():
    """Returns (function, input, target, options) by NAME."""
    x, t = normal(4, 5) * 2, normal(4, 5) * 2
    x[0, 0] = t[0, 0]  # no distance
    x[0, 1], t[0, 1] = 3.0, 2.0  # just beta and delta
    p, q = uniform(4, 5), uniform(4, 5)
    ends, wanted = uniform(4, 5), uniform(4, 5)
    ends[0] = torch.tensor([0.0, 1.0, 0.0, 1.0, 1e-60])
    wanted[0] = torch.tensor([0.0, 1.0, 1.0, 0.0, 0.5])
    far = normal(4, 5) * 200
    log_p = F.log_softmax(normal(4, 5), -1)
    q_rows = F.softmax(normal(4, 5), -1)
    weight, row = uniform(4, 5) + 0.5, uniform(5) + 0.5
    return {
        'l1': (F.l1_loss, x, t, {}),
        'l1_broadcast': (F.l1_loss, normal(3, 1, 5), normal(4, 1), {}),
        'mse': (F.mse_loss, x, t, {}),
        'smooth_l1': (F.smooth_l1_loss, x, t, {}),
        'smooth_l1_beta': (F.smooth_l1_loss, x, t, dict(beta=0.3)),
        'smooth_l1_zero': (F.smooth_l1_loss, x, t, dict(beta=0.0)),
        'huber': (F.huber_loss, x, t, {}),
        'huber_delta': (F.huber_loss, x, t, dict(delta=2.5)),
        'bce': (F.binary_cross_entropy, p, q, {}),
        'bce_ends': (F.binary_cross_entropy, ends, wanted, {}),
        'bce_weight': (F.binary_cross_entropy, p, q, dict(weight=row)),
        'bce_logits': (F.binary_cross_entropy_with_logits, x, q, {}),
        'bce_logits_far': (F.binary_cross_entropy_with_logits, far, q, {}),
        'bce_logits_weights': (F.binary_cross_entropy_with_logits, x, q,
                               dict(weight=weight, pos_weight=row)),
        'bce_logits_far_weights': (F.binary_cross_entropy_with_logits, far, q,
                                   dict(pos_weight=row)),
        'kl': (F.kl_div, log_p, q_rows, {}),
        'kl_log': (F.kl_div, log_p, q_rows.log(), dict(log_target=True)),
        'kl_broadcast': (F.kl_div, log_p, q_rows[0], {}),
    }


def classes():
    x, image, one = normal(7, 5), normal(2, 5, 3, 2), normal(5)
    weight = uniform(5) + 0.1
    weight[2] = 0
    some = dict(ignore_index=-100)
    third = dict(ignore_index=3)
    cases = {
        'plain': (x, labels(5, 7), {}),
        'one': (one, labels(5), {}),
        'ignored': (x, labels(5, 7, ignored=-100), some),
        'ignored_class': (x, labels(5, 7, ignored=3), third),
        'all_ignored': (x, torch.full((7,), -100), {}),
        'none': (normal(0, 5), labels(5, 0), {}),
        'weight': (x, labels(5, 7), dict(weight=weight)),
        'weight_ignored': (x, labels(5, 7, ignored=3), dict(weight=weight, **third)),
        'image': (image, labels(5, 2, 3, 2, ignored=-100), dict(weight=weight)),
    }
    result = {}
    for name, (value, target, options) in cases.items():
        axis = 0 if value.dim() == 1 else 1
        result['nll_' + name] = (F.nll_loss, F.log_softmax(value, axis), target, options)
        for smoothing in (0.0, 0.2):
            kind = 'ce_' + ('smooth_' if smoothing else '')
            result[kind + name] = (F.cross_entropy, value, target,
                                   dict(options, label_smoothing=smoothing))
    for name, options in {'': {}, '_weight': dict(weight=weight), '_smooth': dict(label_smoothing=0.3),
                          '_smooth_weight': dict(label_smoothing=0.3, weight=weight)}.items():
        result['ce_probabilities' + name] = (F.cross_entropy, x, F.softmax(normal(7, 5), 1), options)
        result['ce_probabilities_image' + name] = (
            F.cross_entropy, image, F.softmax(normal(2, 5, 3, 2), 1), options)
    return result


def run(function, x, t, options, reduction):
    x = x.clone().requires_grad_()
    t = t.clone().requires_grad_(t.is_floating_point())
    y = function(x, t, reduction=reduction, **options)
    dy = torch.randn_like(y)
    y.backward(dy)
    arrays = {'x': x, 't': t, 'y': y, 'dy': dy, 'dx': x.grad}
    if t.is_floating_point():
        arrays['dt'] = t.grad
    arrays.update({name: value for name, value in options.items() if torch.is_tensor(value)})
    return arrays


def main():
    torch.manual_seed(29)
    arrays = {}
    for case, (function, x, t, options) in {**elements(), **classes()}.items():
        reductions = REDUCTIONS + (('batchmean',) if function is F.kl_div else ())
        for reduction in reductions:
            for name, value in run(function, x, t, options, reduction).items():
                arrays[f'{case}_{reduction}.{name}'] = value.detach().contiguous().numpy()
    safetensors_file.write(OUT, arrays, {'torch': torch.__version__})


if __name__ == '__main__':
    main()
