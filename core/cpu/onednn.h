// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <dnnl.hpp>

#include "core/tensor.h"

// Functions that the oneDNN kernels share. Only core/cpu/*_onednn.cc include
// this.
namespace baton::cpu {

const dnnl::engine& OneDnnEngine();
// Returns the calling thread's stream. CPU primitives run inside execute().
dnnl::stream& OneDnnStream();

// These describe the f32 tensor's bytes to oneDNN.
dnnl::memory::desc DescOf(const Tensor& tensor);
dnnl::memory MemoryOf(const dnnl::memory::desc& desc, const Tensor& tensor);
// Returns an uninitialised one-dimensional tensor with room for `desc`.
Tensor EmptyFor(const dnnl::memory::desc& desc);

// Runs `body`, and turns what oneDNN throws into baton::Error led by `op`.
template <typename Body>
auto WithOneDnn(const char* op, Body body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    Fail(op, absl::StrCat("oneDNN: ", error.what()),
         absl::StatusCode::kInternal);
  }
}

}  // namespace baton::cpu
