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

// Torch's tensors and Baton's in the same memory. On a GPU both are used on the
// calling thread's current stream (TorchStream), and nobody waits on the host.
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

// The same elements for torch; undefined of an undefined one. Throws Error, and
// c10::Error, for a dtype that torch has not.
at::Tensor ToTorch(const Tensor& tensor);

// Torch's tensors for Baton. What lies in memory that came from Baton, or that
// was brought before, shares the storage of that tensor as views do, so that
// each knows when the other is written. Thread-compatible.
class FromTorch {
 public:
  // `torch` lies in the memory of `tensor`.
  void Know(const at::Tensor& torch, const Tensor& tensor);
  // Undefined of an undefined one. Throws Error, and c10::Error, for what Baton
  // has no tensor for (complex numbers, sparse tensors).
  Tensor Bring(const at::Tensor& torch);

 private:
  std::map<const c10::StorageImpl*, std::shared_ptr<Storage>> known_;
};

// Whether both have the same elements in the same memory.
bool SameMemory(const at::Tensor& torch, const Tensor& tensor);

}  // namespace baton::nn
