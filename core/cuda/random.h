// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/random.h"
#include "core/tensor.h"

// Random numbers made on a GPU, from the counters that the CPU uses: uniform
// ones and masks are the CPU's bit for bit, normal ones up to the rounding of
// the elementary functions. Outputs are dense and row-major.
namespace baton::cuda {

void FillUniform(const Tensor& out, double low, double high,
                 const Generator::Draw& draw);
void FillNormal(const Tensor& out, double mean, double stddev,
                const Generator::Draw& draw);
// bool, true with probability p.
void FillBernoulli(const Tensor& out, double p, const Generator::Draw& draw);
// FillBernoulli of `mask`, and y = mask ? x * scale : 0 in the same pass; all
// dense and row-major.
void Dropout(const Tensor& y, const Tensor& mask, const Tensor& x, double keep,
             double scale, const Generator::Draw& draw);

// Draws of a captured graph must differ from replay to replay, so they are
// counted on the GPU, in `tickets`: i64 [2], seed and count. A ticket is the
// seed and 2^63 + count, which no draw of the CPU's counting reaches.
void SetTickets(const Tensor& tickets, uint64_t seed, uint64_t count);
void TakeTicket(const Tensor& ticket, const Tensor& tickets);

}  // namespace baton::cuda
