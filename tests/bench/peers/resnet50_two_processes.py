#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""ResNet50 over two processes, a device each, by PyTorch's own means.

gpipe and 1f1b are schedules of torch.distributed.pipelining, ddp is
DistributedDataParallel with half of the batch in each process. With --graph the
whole step, NCCL's work included, is one CUDA graph in each process.
"""

import contextlib
import os
import sys

from common import (allow_tf32, beside_default_stream, flags, idle,
                    image_flags, images, in_processes, labels, numbers, parse,
                    pipelining, precision, recorded, report_images, resnet50,
                    resnet50_parts, sgd, times, words)

import torch
import torch.distributed as dist


def everybody_idle():
    idle()
    dist.barrier()
    idle()


def measure(args, rank, step, warm=4, **row):
    run = step
    if args.graph:
        # NCCL's own thread looks at events meanwhile.
        run = recorded(step, warm, capture_error_mode="thread_local")
        everybody_idle()

    def several():
        for _ in range(args.batches):
            run()

    seconds = times(several, args.repeat, warm=2, settle=everybody_idle)
    if rank == 0:
        report_images(seconds, args.batch * args.batches, **row,
                      graph=args.graph, order=args.order, batch=args.batch,
                      image=args.image, device=args.device)


def layout(args):
    return (torch.channels_last if args.order == "channels_last"
            else torch.contiguous_format)


def pipeline(args, rank, device, schedule, cut, split):
    kind = {"gpipe": pipelining().ScheduleGPipe,
            "1f1b": pipelining().Schedule1F1B}[schedule]
    module = resnet50_parts(cut)[rank].to(device, memory_format=layout(args))
    x = images(args.batch, args.image, device).contiguous(
        memory_format=layout(args))
    y = labels(args.batch, device)
    stage = pipelining().PipelineStage(module, rank, 2, device)
    plan = kind(stage, n_microbatches=args.batch // split,
                loss_fn=torch.nn.MSELoss())
    optimizer = sgd(module)

    def step():
        optimizer.zero_grad(set_to_none=True)
        if rank == 0:
            plan.step(x)
        else:
            plan.step(target=y)
        optimizer.step()

    measure(args, rank, step, variant=schedule, cut=cut, split_size=split)


def data_parallel(args, rank, device, dtype):
    half = args.batch // 2
    model = resnet50().to(device, memory_format=layout(args))
    on_gpu = args.device == "cuda"
    # A recording needs one that was made beside the default stream.
    with beside_default_stream() if on_gpu else contextlib.nullcontext():
        model = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[rank] if on_gpu else None,
            gradient_as_bucket_view=True)
    forward = torch.compile(model) if args.compile else model
    x = images(half, args.image, device).contiguous(memory_format=layout(args))
    y = labels(half, device)
    optimizer = sgd(model)

    def step():
        optimizer.zero_grad(set_to_none=False)
        with precision(args.device, dtype):
            loss = torch.nn.functional.mse_loss(forward(x), y)
        loss.backward()
        optimizer.step()

    # DistributedDataParallel must have run 11 steps before a recording.
    measure(args, rank, step, warm=13, variant="ddp", dtype=dtype,
            compile=args.compile)


def run(rank, args):
    allow_tf32()
    device = torch.device("cpu")
    if args.device == "cpu":
        torch.set_num_threads(1)  # two processes share the cores
    else:
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if args.device == "cuda" else "gloo",
                            rank=rank, world_size=2)
    for schedule in [name for name in args.schedules if name != "ddp"]:
        for cut in args.cuts:
            for split in args.split_size:
                pipeline(args, rank, device, schedule, cut, split)
    if "ddp" in args.schedules:
        for dtype in args.dtypes:
            data_parallel(args, rank, device, dtype)
    everybody_idle()
    sys.stdout.flush()
    if args.graph:
        os._exit(0)  # NCCL does not end beside a graph that holds its work
    dist.destroy_process_group()


def main():
    parser = flags(__doc__)
    image_flags(parser)
    parser.add_argument("--batches", type=int, default=3,
                        help="batches of one repeat")
    parser.add_argument("--schedules", type=words,
                        default=["gpipe", "1f1b", "ddp"])
    parser.add_argument("--cuts", type=words, default=["layer2"],
                        help="the first process ends after it, as in layer2.1")
    parser.add_argument("--split_size", type=numbers,
                        default=[10, 12, 20, 40, 60])
    parser.add_argument("--dtypes", type=words,
                        help="of ddp: tf32 or bf16, or both; f32 on the CPU")
    parser.add_argument("--order", default="contiguous",
                        choices=("contiguous", "channels_last"))
    parser.add_argument("--graph", action="store_true",
                        help="record the step as one CUDA graph a process")
    parser.add_argument("--compile", action="store_true",
                        help="let torch.compile work on ddp's model")
    args = parse(parser, batch=4, image=32, split_size=[2])
    if args.device == "cuda" and torch.cuda.device_count() < 2:
        sys.exit("this needs two GPUs; --device=cpu --quick tries it without")
    if args.device == "cpu":
        args.graph = False
    args.dtypes = args.dtypes or (["tf32"] if args.device == "cuda"
                                  else ["f32"])
    if args.graph:
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
    if set(args.schedules) - {"ddp"}:
        pipelining()
    in_processes(2, run, args)


if __name__ == "__main__":
    main()
