// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/random.h"
#include "core/tensor.h"

// Makes random numbers on a GPU, from the same counters as the CPU. Uniform
// numbers and masks are equal to the CPU's bit for bit, normal ones up to the
// rounding of the elementary functions. Outputs are dense and row-major.
namespace baton::cuda {

void FillUniform(const Tensor& out, double low, double high,
                 const Generator::Draw& draw);
void FillNormal(const Tensor& out, double mean, double stddev,
                const Generator::Draw& draw);
// Writes bools, each true with probability p.
void FillBernoulli(const Tensor& out, double p, const Generator::Draw& draw);
// Fills `mask` as FillBernoulli does, and writes y = mask ? x * scale : 0 in
// the same pass. All tensors are dense and row-major.
void Dropout(const Tensor& y, const Tensor& mask, const Tensor& x, double keep,
             double scale, const Generator::Draw& draw);

// Draws of a captured graph must differ from replay to replay, so the GPU
// counts them in `tickets`: i64 [2], seed and count. A ticket contains the seed
// and 2^63 + count, a number that no draw counted by the CPU reaches.
void SetTickets(const Tensor& tickets, uint64_t seed, uint64_t count);
void TakeTicket(const Tensor& ticket, const Tensor& tickets);

}  // namespace baton::cuda
