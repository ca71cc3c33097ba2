#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""The experiment of PyTorch's model-parallel tutorial: ResNet50 in one process.

whole is the model on the first GPU, split has its halves on two, and each split
size pipelines parts of that many images through the halves. A time is that of
three batches. On the CPU both halves are there, which tries the script only.
"""

from common import (flags, image_flags, images, labels, numbers, parse,
                    report_images, resnet50, resnet50_parts, sgd, times)

import torch


class Halves(torch.nn.Module):
    """Two parts, each on a device; parts of the batch follow each other."""

    def __init__(self, devices, split=0):
        super().__init__()
        self.front, self.back = (
            part.to(device)
            for part, device in zip(resnet50_parts(), devices))
        self.last = devices[1]
        self.split = split

    def forward(self, x):
        parts = iter(x.split(self.split or len(x)))
        results = []
        # The front is given the next part before the back has done this one.
        hidden = self.front(next(parts)).to(self.last)
        for part in parts:
            results.append(self.back(hidden))
            hidden = self.front(part).to(self.last)
        results.append(self.back(hidden))
        return torch.cat(results)


def measure(args, name, model, devices):
    data = [(images(args.batch, args.image, devices[0]),
             labels(args.batch, devices[-1])) for _ in range(args.batches)]
    optimizer = sgd(model)
    loss = torch.nn.MSELoss()

    def train():
        for x, y in data:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()

    seconds = times(train, args.repeat, warm=2)
    report_images(seconds, args.batch * args.batches, variant=name,
                  batch=args.batch, image=args.image, device=args.device)


def main():
    parser = flags(__doc__)
    image_flags(parser)
    parser.add_argument("--batches", type=int, default=3,
                        help="batches of one repeat")
    parser.add_argument("--split_size", type=numbers,
                        default=[1, 3, 5, 8, 10, 12, 20, 40, 60])
    args = parse(parser, batch=4, image=32, split_size=[2])
    # As the tutorial leaves it: it runs each split size without a search.
    torch.backends.cudnn.benchmark = False
    devices = ["cpu", "cpu"]
    if args.device == "cuda":
        devices = [f"cuda:{i}" for i in range(torch.cuda.device_count())][:2]
    measure(args, "whole", resnet50().to(devices[0]), devices[:1])
    if len(devices) < 2:
        return
    measure(args, "split", Halves(devices), devices)
    for split in args.split_size:
        measure(args, f"pipelined {split}", Halves(devices, split), devices)


if __name__ == "__main__":
    main()
