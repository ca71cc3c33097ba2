// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <map>
#include <memory>

#include "core/status.h"
#include "core/storage.h"
#include "core/tensor.h"

// Conversions between torch's and Baton's tensors, which share memory. On a GPU
// both libraries must use the calling thread's current stream (TorchStream), so
// the host never waits.
namespace baton::nn {

// Runs `fn` and turns torch's errors into Error(InvalidArgument).
template <typename Fn>
auto WithTorchErrors(Fn&& fn) {
  try {
    return fn();
  } catch (const c10::Error& error) {
    Fail("torch_module", error.what_without_backtrace());
  }
}

// Returns a torch tensor with the same elements; undefined for an undefined
// one. Throws Error or c10::Error for a dtype that torch does not have.
at::Tensor ToTorch(const Tensor& tensor);

// Converts torch's tensors to Baton's. If the memory of a torch tensor came
// from Baton, or was converted before, the result shares the storage of that
// Baton tensor, as a view does, so that each tensor sees writes to the other.
// Thread-compatible.
class FromTorch {
 public:
  // Registers that `torch` lies in the memory of `tensor`.
  void Know(const at::Tensor& torch, const Tensor& tensor);
  // Returns the Baton tensor; undefined for an undefined one. Throws Error or
  // c10::Error for what Baton does not support (complex numbers, sparse
  // tensors).
  Tensor Bring(const at::Tensor& torch);

 private:
  std::map<const c10::StorageImpl*, std::shared_ptr<Storage>> known_;
};

// Returns true if both have the same elements in the same memory.
bool SameMemory(const at::Tensor& torch, const Tensor& tensor);

}  // namespace baton::nn
