#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/optimizers.json: parameters after each step of PyTorch's
optimizers on fixed gradients, with options, groups, clipping and schedules, and
a table after each step by gradients of rows.
Run: tools/golden/optimizers.py > FILE"""

import json

import torch
from torch.optim import lr_scheduler

STEPS = 10
CASES = [
    ("sgd", dict(lr=0.1)),
    ("sgd", dict(lr=0.1, weight_decay=0.2)),
    ("sgd", dict(lr=0.1, momentum=0.9)),
    ("sgd", dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01)),
    ("sgd", dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.1)),
    ("sgd", dict(lr=0.1, momentum=0.5, maximize=True)),
    ("adam", dict(lr=0.01)),
    ("adam", dict(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
    ("adam", dict(lr=0.02, amsgrad=True)),
    ("adam", dict(lr=0.02, maximize=True)),
    ("adam", dict(lr=0.02, weight_decay=0.3, decoupled_weight_decay=True)),
    ("adamw", dict(lr=0.01)),
    ("adamw", dict(lr=0.02, weight_decay=0.2, amsgrad=True)),
    ("adamw", dict(lr=0.02, maximize=True)),
    ("adagrad", dict()),
    ("adagrad", dict(lr=0.1, lr_decay=0.2)),
    ("adagrad", dict(lr=0.1, weight_decay=0.1, eps=1e-4)),
    ("adagrad", dict(lr=0.1, initial_accumulator_value=0.5, maximize=True)),
    ("rmsprop", dict()),
    ("rmsprop", dict(lr=0.02, alpha=0.8, eps=1e-5, weight_decay=0.1)),
    ("rmsprop", dict(lr=0.02, momentum=0.9)),
    ("rmsprop", dict(lr=0.02, centered=True, alpha=0.9)),
    ("rmsprop", dict(lr=0.02, centered=True, momentum=0.5, maximize=True)),
    ("adadelta", dict()),
    ("adadelta", dict(lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.1)),
    ("adadelta", dict(maximize=True)),
    ("adamax", dict()),
    ("adamax", dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1)),
    ("adamax", dict(lr=0.05, maximize=True)),
    ("rprop", dict()),
    ("rprop", dict(lr=0.1, etas=(0.3, 1.5), step_sizes=(0.05, 0.2))),
    ("rprop", dict(lr=0.1, maximize=True)),
]
# The options in which the second parameter differs.
GROUPS = [
    ("sgd", dict(lr=0.1, momentum=0.9, weight_decay=0.1),
     dict(lr=0.02, momentum=0.5, weight_decay=0.0)),
    ("adamw", dict(lr=0.1), dict(lr=0.02, weight_decay=0.0)),
    ("adagrad", dict(lr=0.1), dict(lr=0.3, initial_accumulator_value=1.0)),
    ("rmsprop", dict(lr=0.1), dict(lr=0.03, alpha=0.5)),
]
CLASSES = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam,
           "adamw": torch.optim.AdamW, "adagrad": torch.optim.Adagrad,
           "rmsprop": torch.optim.RMSprop, "adadelta": torch.optim.Adadelta,
           "adamax": torch.optim.Adamax, "rprop": torch.optim.Rprop,
           "sparse-adam": torch.optim.SparseAdam}
# These step by the gradients of an embedding with sparse=True.
ROWS = [
    ("sgd", dict(lr=0.1)),
    ("sgd", dict(lr=0.1, maximize=True)),
    ("adagrad", dict(lr=0.1, lr_decay=0.2, eps=1e-4)),
    ("adagrad", dict(lr=0.1, initial_accumulator_value=0.5)),
    ("sparse-adam", dict()),
    ("sparse-adam", dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4)),
    ("sparse-adam", dict(lr=0.05, maximize=True)),
]
CLIPS = [("norm", 0.7), ("norm", 1e3), ("value", 0.4)]


def sequential(optimizer, parts, milestones):
    return lr_scheduler.SequentialLR(
        optimizer, [part(optimizer) for part in parts], milestones=milestones)


SCHEDULES = {
    "step": lambda o: lr_scheduler.StepLR(o, step_size=4, gamma=0.3),
    "linear": lambda o: lr_scheduler.LinearLR(o),
    "linear_down": lambda o: lr_scheduler.LinearLR(
        o, start_factor=1.0, end_factor=0.1, total_iters=7),
    "polynomial": lambda o: lr_scheduler.PolynomialLR(
        o, total_iters=12, power=2.5),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(
        o, T_max=19, eta_min=0.01),
    "one_cycle": lambda o: lr_scheduler.OneCycleLR(
        o, max_lr=0.5, total_steps=20, cycle_momentum=False),
    "one_cycle_linear": lambda o: lr_scheduler.OneCycleLR(
        o, max_lr=0.5, total_steps=20, pct_start=0.25, div_factor=10,
        final_div_factor=50, anneal_strategy="linear", cycle_momentum=False),
    "one_cycle_three": lambda o: lr_scheduler.OneCycleLR(
        o, max_lr=0.5, total_steps=20, three_phase=True, cycle_momentum=False),
    "sequential": lambda o: sequential(
        o, [lambda p: lr_scheduler.LinearLR(p, start_factor=0.25,
                                            total_iters=3),
            lambda p: lr_scheduler.StepLR(p, step_size=2, gamma=0.5),
            lambda p: lr_scheduler.PolynomialLR(p, total_iters=6)], [4, 11]),
    "chained": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.StepLR(o, step_size=6, gamma=0.5),
         lr_scheduler.LinearLR(o, start_factor=0.2, total_iters=4)]),
}


def run(kind, options, second, starts, grads, clip=None):
    parameters = [torch.nn.Parameter(start.clone()) for start in starts]
    groups = parameters if second is None else [
        {"params": parameters[:1]}, {"params": parameters[1:], **second}]
    if second and "initial_accumulator_value" in second:
        optimizer = [CLASSES[kind](parameters[:1], **options),
                     CLASSES[kind](parameters[1:], **second)]
    else:
        optimizer = [CLASSES[kind](groups, **options)]
    values = []
    for step in range(STEPS):
        for i, parameter in enumerate(parameters):
            # The second parameter has no gradient in step 1.
            absent = i == 1 and step == 1
            parameter.grad = None if absent else grads[step][i].clone()
        if clip and clip[0] == "norm":
            torch.nn.utils.clip_grad_norm_(parameters, clip[1])
        if clip and clip[0] == "value":
            torch.nn.utils.clip_grad_value_(parameters, clip[1])
        for each in optimizer:
            each.step()
        values.append([p.detach().flatten().tolist() for p in parameters])
    return values


def run_rows(kind, options, start, indices, weights, clip=None):
    table = torch.nn.Parameter(start.clone())
    optimizer = CLASSES[kind]([table], **options)
    values = []
    for index, weight in zip(indices, weights):
        optimizer.zero_grad()
        rows = torch.nn.functional.embedding(index, table, sparse=True)
        (rows * weight).sum().backward()
        assert table.grad.is_sparse
        if clip:
            table.grad = table.grad.coalesce()
            norm = table.grad.values().norm()
            table.grad = table.grad * min(1.0, clip / (norm + 1e-6))
        optimizer.step()
        values.append(table.detach().flatten().tolist())
    return values


def rows():
    start = torch.randn(7, 3, dtype=torch.float64)
    indices = [torch.randint(7, (2, 2)) for _ in range(STEPS)]
    indices[0] = torch.tensor([[5, 1], [5, 5]])
    weights = [torch.randn(2, 2, 3, dtype=torch.float64) for _ in indices]
    cases = [{"kind": kind, "options": plain(options),
              "values": run_rows(kind, options, start, indices, weights)}
             for kind, options in ROWS]
    options = dict(lr=0.1)
    cases.append({"kind": "sgd", "options": options, "clip_norm": 0.7,
                  "values": run_rows("sgd", options, start, indices, weights,
                                     0.7)})
    flat = lambda tensors: [t.flatten().tolist() for t in tensors]
    return {"shape": [7, 3], "start": start.flatten().tolist(),
            "indices": flat(indices), "weights": flat(weights),
            "cases": cases}


def rates(make):
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    scheduler = make(optimizer)
    seen = []
    for _ in range(20):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(seen) < 20:
            scheduler.step()
    return seen


def plain(options):
    pairs = {"betas": ("beta1", "beta2"), "etas": ("eta_minus", "eta_plus"),
             "step_sizes": ("step_size_min", "step_size_max")}
    flat = {}
    for name, value in options.items():
        flat.update(zip(pairs[name], value) if name in pairs
                    else [(name, value)])
    return flat


def main():
    torch.manual_seed(7)
    shapes = [(3, 2), (5,)]
    make = lambda: [torch.randn(s, dtype=torch.float64) for s in shapes]
    starts, grads = make(), [make() for _ in range(STEPS)]
    flat = lambda tensors: [t.flatten().tolist() for t in tensors]
    cases = []
    for kind, options in CASES:
        cases.append({"kind": kind, "options": plain(options),
                      "values": run(kind, options, None, starts, grads)})
    for kind, options, second in GROUPS:
        # Options that the second group does not name are those of the first.
        cases.append({"kind": kind, "options": options,
                      "second": {**options, **second},
                      "values": run(kind, options, second, starts, grads)})
    for how, limit in CLIPS:
        options = dict(lr=0.1, momentum=0.9)
        cases.append({"kind": "sgd", "options": options, "clip_" + how: limit,
                      "values": run("sgd", options, None, starts, grads,
                                    (how, limit))})
    schedules = {name: rates(make) for name, make in SCHEDULES.items()}
    print(json.dumps({"torch": torch.__version__, "shapes": shapes,
                      "starts": flat(starts),
                      "grads": [flat(g) for g in grads], "cases": cases,
                      "schedules": schedules, "rows": rows()}))


if __name__ == "__main__":
    main()
