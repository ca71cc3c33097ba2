// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

// These settings control how convolutions on GPUs choose among cuDNN's
// algorithms. By default, the first call of each kind (shapes, strides, dtype,
// options) times the likely ones on its own operands, a few runs each, and the
// process keeps the fastest. There is no search, and an unknown convolution
// uses cuDNN's first suggestion,
//   - while a graph is recorded (core/graph.h), so run a step before you
//     record one;
//   - with SetDeterministic (core/precision.h), which requires equal bits in
//     all runs of a program;
//   - for f64.
// These settings apply to the whole process and to later calls; they do not
// concern the CPU. Thread-safe.
namespace baton {

// With false, convolutions always use cuDNN's first suggestion. Default: true.
void SetConvSearch(bool search);
bool ConvSearch();

// Reads choices of earlier processes from the file and writes new ones to it,
// so that one search serves all later runs on such a GPU; "" stops that.
// Default: the file that BATON_CUDNN_CACHE in the environment names, if any.
// Errors of reading or writing are only logged.
void SetConvCacheFile(const std::string& path);

// Algorithms that need more temporary memory are skipped if there are others.
// Default: 1 GiB.
void SetConvWorkspaceLimit(int64_t bytes);
int64_t ConvWorkspaceLimit();

}  // namespace baton
