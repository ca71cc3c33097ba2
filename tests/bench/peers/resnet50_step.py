#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""A training step of ResNet50 on one device, in each way that PyTorch has.

eager launches op after op, graph replays the whole step as one CUDA graph, and
compile does that with what torch.compile has made of the model. The CPU has
eager, and compile with --ways=compile.
"""

from common import (flags, idle, image_flags, images, labels, numbers, parse,
                    precision, recorded, report, report_images, resnet50, sgd,
                    times, words)

import torch


def measure(args, way, batch, dtype, order):
    layout = (torch.channels_last if order == "channels_last"
              else torch.contiguous_format)
    model = resnet50().to(args.device, memory_format=layout)
    x = images(batch, args.image, args.device).contiguous(
        memory_format=layout)
    y = labels(batch, args.device)
    optimizer = sgd(model)
    forward = torch.compile(model) if way == "compile" else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with precision(args.device, dtype):
            loss = torch.nn.functional.mse_loss(forward(x), y)
        loss.backward()
        optimizer.step()

    on_gpu = args.device == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    run = recorded(step) if on_gpu and way != "eager" else step
    seconds = times(run, args.repeat, warm=3 if on_gpu else 1)
    row = {}
    if on_gpu:
        row["peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    report_images(seconds, batch, way=way, dtype=dtype, order=order,
                  batch=batch, image=args.image, device=args.device,
                  threads=torch.get_num_threads(), **row)


def main():
    parser = flags(__doc__, repeat=30)
    image_flags(parser)
    parser.add_argument("--batch_sizes", type=numbers, default=[],
                        help="several batch sizes, instead of --batch")
    parser.add_argument("--ways", type=words,
                        help="of eager,graph,compile; all the device has")
    parser.add_argument("--dtypes", type=words,
                        help="of tf32,bf16; f32 on the CPU")
    parser.add_argument("--orders", type=words,
                        default=["contiguous", "channels_last"])
    parser.add_argument("--threads", type=int, default=0,
                        help="compute threads of the CPU; 0: as many as cores")
    args = parse(parser, batch=4, batch_sizes=[], image=32)
    if args.threads:
        torch.set_num_threads(args.threads)
    on_gpu = args.device == "cuda"
    ways = args.ways or (["eager", "graph", "compile"] if on_gpu
                         else ["eager"])
    for batch in args.batch_sizes or [args.batch]:
        for dtype in args.dtypes or (["tf32", "bf16"] if on_gpu else ["f32"]):
            for order in args.orders:
                for way in ways:
                    try:
                        measure(args, way, batch, dtype, order)
                    except RuntimeError as error:  # memory that is short, say
                        report(failed=str(error)[:300], way=way, batch=batch,
                               dtype=dtype, order=order)
                    idle()
                    if on_gpu:
                        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
