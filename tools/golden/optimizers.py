#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/optimizers.json: parameters after each step of PyTorch's
optimizers on fixed gradients. Run: tools/golden/optimizers.py > FILE"""

import json

import torch

STEPS = 5
CASES = [
    ("sgd", dict(lr=0.1)),
    ("sgd", dict(lr=0.1, momentum=0.9)),
    ("sgd", dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01)),
    ("sgd", dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1)),
    ("sgd", dict(lr=0.1, momentum=0.5, maximize=True)),
    ("adam", dict(lr=0.01)),
    ("adam", dict(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
    ("adam", dict(lr=0.02, amsgrad=True)),
    ("adam", dict(lr=0.02, maximize=True)),
    ("adamw", dict(lr=0.01)),
    ("adamw", dict(lr=0.02, weight_decay=0.2, amsgrad=True)),
]
CLASSES = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam,
           "adamw": torch.optim.AdamW}


def run(kind, options, starts, grads):
    parameters = [torch.nn.Parameter(start.clone()) for start in starts]
    optimizer = CLASSES[kind](parameters, **options)
    values = []
    for step in range(STEPS):
        for i, parameter in enumerate(parameters):
            # The second parameter has no gradient in step 1.
            absent = i == 1 and step == 1
            parameter.grad = None if absent else grads[step][i].clone()
        optimizer.step()
        values.append([p.detach().flatten().tolist() for p in parameters])
    return values


def main():
    torch.manual_seed(7)
    shapes = [(3, 2), (5,)]
    make = lambda: [torch.randn(s, dtype=torch.float64) for s in shapes]
    starts, grads = make(), [make() for _ in range(STEPS)]
    flat = lambda tensors: [t.flatten().tolist() for t in tensors]
    cases = []
    for kind, options in CASES:
        plain = dict(options)
        if "betas" in plain:
            plain["beta1"], plain["beta2"] = plain.pop("betas")
        cases.append({"kind": kind, "options": plain,
                      "values": run(kind, options, starts, grads)})
    print(json.dumps({"torch": torch.__version__, "shapes": shapes,
                      "starts": flat(starts),
                      "grads": [flat(g) for g in grads], "cases": cases}))


if __name__ == "__main__":
    main()
