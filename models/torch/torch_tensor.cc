// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/torch/torch_tensor.h"

#include <ATen/DLConvertor.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/foreign_memory.h"
#include "core/shape.h"
#include "core/stream.h"

namespace baton::nn {
namespace {

Tensor Wrapped(const at::Tensor& torch) {
  DLManagedTensor* const exported =
      at::toDLPack(torch.detach().resolve_conj().resolve_neg());
  try {
    return FromDlpack(exported);
  } catch (...) {
    exported->deleter(exported);
    throw;
  }
}

DType DTypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DType::kF32;
    case at::kDouble:
      return DType::kF64;
    case at::kHalf:
      return DType::kF16;
    case at::kBFloat16:
      return DType::kBF16;
    case at::kInt:
      return DType::kI32;
    case at::kLong:
      return DType::kI64;
    case at::kByte:
      return DType::kU8;
    case at::kBool:
      return DType::kBool;
    default:
      Fail("torch_module",
           absl::StrCat("no dtype for torch's ", c10::toString(type)));
  }
}

// Returns the view of `storage` with torch's place, shape and strides;
// undefined if it does not lie within the storage.
Tensor ViewOf(const std::shared_ptr<Storage>& storage, DType dtype,
              const at::Tensor& torch) {
  const auto* const base = static_cast<const char*>(storage->data());
  const auto* const first = static_cast<const char*>(torch.const_data_ptr());
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  const int64_t bytes = first - base;
  int64_t last = bytes / size;
  for (int64_t axis = 0; axis < torch.dim(); ++axis)
    last += (torch.size(axis) - 1) * torch.stride(axis);
  if (torch.numel() == 0 || bytes < 0 || bytes % size != 0 ||
      (last + 1) * size > static_cast<int64_t>(storage->bytes()))
    return {};
  return Tensor::FromStorage(
      storage, dtype, Shape(Dims(torch.sizes().begin(), torch.sizes().end())),
      Dims(torch.strides().begin(), torch.strides().end()), bytes / size);
}

}  // namespace

at::Tensor ToTorch(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  DLManagedTensor* const exported =
      ToDlpack(tensor, CurrentStream(tensor.device()));
  DLDevice& device = exported->dl_tensor.device;
  if (device.device_type == kDLCUDAHost) device.device_type = kDLCPU;
  return at::fromDLPack(exported);
}

void FromTorch::Know(const at::Tensor& torch, const Tensor& tensor) {
  if (torch.defined() && torch.has_storage())
    known_[torch.storage().unsafeGetStorageImpl()] = tensor.storage();
}

Tensor FromTorch::Bring(const at::Tensor& torch) {
  if (!torch.defined()) return {};
  const bool plain =
      torch.layout() == at::kStrided && !torch.is_conj() && !torch.is_neg();
  const auto known = plain ? known_.find(torch.storage().unsafeGetStorageImpl())
                           : known_.end();
  if (known == known_.end()) {
    Tensor wrapped = Wrapped(torch);
    if (plain) Know(torch, wrapped);
    return wrapped;
  }
  Tensor view = ViewOf(known->second, DTypeOf(torch.scalar_type()), torch);
  // The memory is only partly known to Baton, so the elements are copied.
  return view.defined() ? view : Wrapped(torch.detach().clone());
}

bool SameMemory(const at::Tensor& torch, const Tensor& tensor) {
  if (torch.const_data_ptr() != tensor.raw_data() ||
      torch.is_cuda() != tensor.device().is_cuda() ||
      DTypeOf(torch.scalar_type()) != tensor.dtype())
    return false;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    if (tensor.dim(axis) > 1 && torch.stride(axis) != tensor.strides()[i])
      return false;
  }
  return true;
}

}  // namespace baton::nn
