#!/usr/bin/env python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""A training step of a language model of GPT-2 small's shape on one device.

Pre-norm blocks, tied embeddings, no dropout; bf16 autocast over f32 weights,
fused attention, fused AdamW; eager and by torch.compile: PyTorch's best.
Baton's counterpart is transformer_pipeline --variants=single.
"""

import statistics

from common import flags, numbers, parse, precision, report, times, words

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.joined = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
            nn.Linear(4 * width, width))

    def forward(self, x):
        split = self.queries_keys_values(self.before_attention(x))
        by_head = split.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*by_head, is_causal=True)
        x = x + self.joined(seen.transpose(1, 2).flatten(2))
        return x + self.feed_forward(x)


class LanguageModel(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.tokens = nn.Embedding(args.vocabulary, args.width)
        self.places = nn.Embedding(args.length, args.width)
        self.blocks = nn.Sequential(
            *[Block(args.width, args.heads) for _ in range(args.layers)])
        self.last = nn.LayerNorm(args.width)

    def forward(self, ids, targets):
        x = self.blocks(self.tokens(ids) + self.places.weight)
        scores = functional.linear(self.last(x), self.tokens.weight)
        return functional.cross_entropy(scores.flatten(0, 1).float(),
                                        targets.flatten())


def measure(args, way, batch):
    torch.manual_seed(0)
    model = LanguageModel(args).to(args.device)
    forward = torch.compile(model) if way == "compile" else model
    on_gpu = args.device == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=on_gpu)
    text = torch.randint(0, args.vocabulary, (batch, args.length + 1),
                         device=args.device)
    ids, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    losses = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        with precision(args.device, "bf16"):
            loss = forward(ids, targets)
        loss.backward()
        optimizer.step()
        losses[:] = [loss.detach()]

    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    median = statistics.median(times(step, args.repeat, warm=5))
    row = {}
    if on_gpu:
        row["peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    report(way=way, batch=batch, length=args.length, device=args.device,
           median_s=round(median, 6), loss=round(losses[0].item(), 4),
           tokens_per_s=round(batch * args.length / median), **row)


def main():
    parser = flags(__doc__, repeat=20)
    parser.add_argument("--batch_sizes", type=numbers, default=[16, 32])
    parser.add_argument("--ways", type=words, default=["eager", "compile"])
    for flag, default in (("layers", 12), ("width", 768), ("heads", 12),
                          ("length", 512), ("vocabulary", 32768)):
        parser.add_argument(f"--{flag}", type=int, default=default)
    args = parse(parser, batch_sizes=[2], layers=2, width=32, heads=2,
                 length=16, vocabulary=64)
    if not hasattr(functional, "scaled_dot_product_attention"):
        raise SystemExit("fused attention came with PyTorch 2.0; this one is "
                         f"{torch.__version__}")
    if args.quick and args.device == "cpu":
        args.ways = ["eager"]  # the compiler takes a minute
    for way in args.ways:
        for batch in args.batch_sizes:
            measure(args, way, batch)


if __name__ == "__main__":
    main()
