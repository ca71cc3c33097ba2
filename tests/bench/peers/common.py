# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""What the scripts here share: the work, its measurement, their flags.

Work on ResNet50 is the same everywhere, as in Baton's examples: images drawn
once, MSE on one-hot labels, SGD with rate 0.001. A figure is the median of
repeats after some that are not timed, with the device idle before and after.
Scripts import this module before torch: where that is missing, it says so.
"""

import argparse
import contextlib
import importlib
import json
import os
import socket
import statistics
import sys
import time

REMEDY = ("this script measures PyTorch, which {python} does not have: install "
          "torch and torchvision with its pip, or on Debian python3-torch and "
          "python3-torchvision and run the script by /usr/bin/python3")
try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(REMEDY.format(python=sys.executable))

CLASSES = 1000


def need(module, remedy):
    """Gives a module that is not everywhere, or ends with a sentence."""
    try:
        return importlib.import_module(module)
    except ImportError:
        sys.exit(f"there is no {module} beside PyTorch {torch.__version__}: "
                 f"{remedy}")


def torchvision_models():
    return need("torchvision.models", "install torchvision as torch was "
                "installed (on Debian: python3-torchvision)")


def pipelining():
    return need("torch.distributed.pipelining", "it came with 2.5; "
                "--schedules=ddp does without")


def flags(description, **defaults):
    """A parser with the flags of all scripts; --quick is for a trial."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"),
                        default=defaults.get("device", "cuda"))
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes and two repeats, to see that it runs")
    parser.add_argument("--repeat", type=int,
                        default=defaults.get("repeat", 10),
                        help="timed repeats; the median counts")
    return parser


def image_flags(parser):
    torchvision_models()  # before any process is started
    parser.add_argument("--batch", type=int, default=120,
                        help="images of a batch")
    parser.add_argument("--image", type=int, default=128,
                        help="height and width")


def numbers(text):
    """The type of a flag that takes a list, as in 10,20,40."""
    return [int(word) for word in text.split(",") if word]


def words(text):
    return [word for word in text.split(",") if word]


def parse(parser, **quick):
    """Reads the flags; with --quick those named here have these values."""
    args = parser.parse_args()
    if args.quick:
        vars(args).update({"repeat": 2, **quick})
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU here: give --device=cpu --quick to try "
                 "the script without one")
    allow_tf32()
    return args


def allow_tf32():
    """Of convolutions and products, as `--dtype=tf32` does for Baton."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True


def report(**row):
    print(json.dumps({"torch": torch.__version__, **row}), flush=True)


def idle():
    """Waits for all GPUs that this process uses."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        for number in range(torch.cuda.device_count()):
            torch.cuda.synchronize(number)


def times(run, repeat, warm=3, settle=idle):
    """Seconds of each of `repeat` runs."""
    for _ in range(warm):
        run()
    settle()
    result = []
    for _ in range(repeat):
        begin = time.perf_counter()
        run()
        settle()
        result.append(time.perf_counter() - begin)
    return result


def report_images(seconds, images, **row):
    median = statistics.median(seconds)
    spread = statistics.pstdev(seconds)
    report(**row, median_s=round(median, 6), std_s=round(spread, 6),
           images_per_s=round(images / median, 2))


def report_calls(what, seconds, moved=0):
    """A row as tests/bench/bench_rpc prints it."""
    ordered = sorted(seconds)
    row = {"what": what,
           "median_us": round(statistics.median(ordered) * 1e6, 1),
           "p99_us": round(ordered[int(len(ordered) * 0.99) - 1] * 1e6, 1)}
    if moved:
        rate = moved / statistics.median(ordered) / 1e9
        row["gb_per_s"] = round(rate, 3)
    report(**row)


# ResNet50, whole and in parts.


def resnet50():
    torch.manual_seed(0)
    return torchvision_models().resnet50(num_classes=CLASSES).train()


def resnet50_parts(cut="layer2"):
    """The model before and after a cut, as in layer2 or layer2.1."""
    model = resnet50()
    pieces = [(name, piece) for name, piece in model.named_children()
              if name not in ("avgpool", "fc")]
    layers = []
    for name, piece in pieces:
        blocks = list(piece) if name.startswith("layer") else [piece]
        layers += [(f"{name}.{i}" if len(blocks) > 1 else name, block)
                   for i, block in enumerate(blocks)]
    layers += [("avgpool", model.avgpool), ("flatten", nn.Flatten(1)),
               ("fc", model.fc)]
    ends = [i for i, (name, _) in enumerate(layers)
            if name == cut or name.startswith(f"{cut}.")]
    if not ends:
        sys.exit(f"ResNet50 has no layer '{cut}' to be cut after")
    modules = [layer for _, layer in layers]
    return (nn.Sequential(*modules[:ends[-1] + 1]),
            nn.Sequential(*modules[ends[-1] + 1:]))


def images(batch, size, device="cpu"):
    return torch.randn(batch, 3, size, size, device=device)


def labels(batch, device="cpu"):
    chosen = torch.randint(0, CLASSES, (batch,))
    return nn.functional.one_hot(chosen, CLASSES).float().to(device)


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.001)


def precision(device, dtype):
    """What a forward pass runs in: autocast for bf16, nothing for others."""
    if dtype != "bf16":
        return contextlib.nullcontext()
    # A cache of casts would outlive the recording of a graph.
    return torch.autocast(device, dtype=torch.bfloat16, cache_enabled=False)


@contextlib.contextmanager
def beside_default_stream():
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()


def recorded(step, runs=5, **options):
    """A step as one CUDA graph; gives what replays it."""
    with beside_default_stream():
        for _ in range(runs):
            step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **options):
        step()
    return graph.replay


# Processes.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def in_processes(count, run, *args):
    """Calls run(rank, *args) in processes that meet on this machine."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    torch.multiprocessing.spawn(run, args=args, nprocs=count, join=True)


if __name__ == "__main__":
    print(torch.__version__)  # beside_torch.py asks for it
