// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

// How convolutions on GPUs choose among cuDNN's algorithms. Without a word the
// first call of each kind (shapes, strides, dtype, options) times the likely
// ones on its own operands, a few runs each, and keeps the fastest for the
// process. No search happens
//   - while a graph is recorded (core/graph.h): what is not known then takes
//     cuDNN's first suggestion, so run a step before you record one;
//   - with SetDeterministic (core/precision.h), which wants equal bits from one
//     run of a program to the next: that takes the first suggestion too;
//   - for f64, likewise.
// All hold for the whole process and for calls that begin afterwards; nothing
// of this concerns the CPU. Thread-safe.
namespace baton {

// False: always take cuDNN's first suggestion. True at first.
void SetConvSearch(bool search);
bool ConvSearch();

// Reads choices of earlier processes from the file and writes new ones to it,
// so that one search serves all later runs on such a GPU; "" stops that. At
// first it is the file that the environment's BATON_CUDNN_CACHE names, if any.
// What cannot be read or written is said in the log and does no harm.
void SetConvCacheFile(const std::string& path);

// Algorithms that want more working memory are passed over while others are
// there. 1 GiB at first.
void SetConvWorkspaceLimit(int64_t bytes);
int64_t ConvWorkspaceLimit();

}  // namespace baton
