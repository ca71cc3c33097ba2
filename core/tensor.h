// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/status.h"
#include "core/storage.h"

namespace baton {

// The memory order of a 4-d [N, C, H, W] tensor. The shape is NCHW in both;
// only the strides differ.
enum class MemoryFormat { kContiguous, kChannelsLast };

struct TensorOptions {
  DType dtype = DType::kF32;
  Device device = Device::Cpu();
  MemoryFormat format = MemoryFormat::kContiguous;
  bool pinned = false;  // CPU memory that GPUs can access directly; needs CUDA
};

// A handle to a strided view of shared storage: copying it copies no elements,
// and a const Tensor may still be written through, like a pointer. Views share
// storage and version. Errors of shape, dtype or device throw baton::Error.
// Thread-compatible.
class Tensor {
 public:
  Tensor() = default;  // undefined: defined() is false, everything else invalid

  static Tensor Empty(const Shape& shape, const TensorOptions& options = {});
  static Tensor Zeros(const Shape& shape, const TensorOptions& options = {});
  static Tensor Ones(const Shape& shape, const TensorOptions& options = {});
  static Tensor Full(const Shape& shape, double value,
                     const TensorOptions& options = {});
  static Tensor Scalar(double value, DType dtype = DType::kF32);  // shape []
  static Tensor Arange(int64_t end, DType dtype = DType::kI64);
  // Copies `values` (row-major). T is one of the element types.
  template <typename T>
  static Tensor From(const std::vector<T>& values, const Shape& shape);
  template <typename T>
  static Tensor From(const std::vector<T>& values) {
    return From(values, Shape({static_cast<int64_t>(values.size())}));
  }
  // Returns a view of `storage`; `offset` and `strides` count elements. Throws
  // if the view would reach outside of the storage.
  static Tensor FromStorage(std::shared_ptr<Storage> storage, DType dtype,
                            const Shape& shape, const Dims& strides,
                            int64_t offset);
  // Returns an uninitialized tensor with the shape, dtype, device and memory
  // order of `other`.
  static Tensor EmptyLike(const Tensor& other);
  static Tensor ZerosLike(const Tensor& other);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }  // in elements
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t numel() const { return shape_.numel(); }
  size_t nbytes() const {
    return static_cast<size_t>(numel()) * SizeOf(dtype_);
  }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_->device(); }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  int64_t offset() const { return offset_; }
  uint64_t version() const { return storage_->version(); }

  // Call PrepareWrite before, and BumpVersion after, writing through these
  // (below).
  void* raw_data() const;
  // Throws unless T is the tensor's element type. CPU only.
  template <typename T>
  T* data() const;
  // Returns the only element of a one-element tensor as double; copies it from
  // a device if necessary.
  double Item() const;
  // Returns all elements, row-major. T is the element type.
  template <typename T>
  std::vector<T> ToVector() const;

  bool IsContiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  // Returns kChannelsLast only for a 4-d tensor that is not also contiguous in
  // NCHW order.
  MemoryFormat SuggestFormat() const;
  // Returns the tensor itself if it already has that order, otherwise a copy.
  Tensor Contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  Tensor Clone() const;  // keeps the memory order
  Tensor To(DType dtype) const;
  Tensor To(Device device) const;

  // These return views. One dimension of a Reshape may be -1: its size follows
  // from the others. Reshape copies if no view can express the result.
  Tensor Reshape(const Shape& shape) const;
  Tensor Flatten(int start_axis = 0, int end_axis = -1) const;
  Tensor Transpose(int axis_a, int axis_b) const;
  Tensor Permute(const std::vector<int>& axes) const;
  Tensor Slice(int axis, int64_t start, int64_t end, int64_t step = 1) const;
  Tensor Select(int axis, int64_t index) const;  // drops the axis
  Tensor Unsqueeze(int axis) const;
  Tensor Squeeze(int axis) const;
  Tensor Expand(const Shape& shape) const;  // stride 0 where broadcast
  // Returns parts of `size` along `axis`; the last may be smaller.
  std::vector<Tensor> Split(int64_t size, int axis = 0) const;

  // These write in place, increment the version, and return *this. As with
  // every op that writes in place, tensors already sent arrive with their old
  // values.
  const Tensor& Fill(double value) const;
  const Tensor& CopyFrom(const Tensor& source) const;  // broadcasts and casts
  // Like CopyFrom, but between a GPU and pinned memory it returns before the
  // copy, on the GPU's current stream, has ended: synchronize before the CPU
  // accesses the memory.
  const Tensor& CopyFromAsync(const Tensor& source) const;
  // Call these before and after elements are written by other means, such as
  // data(). Without PrepareWrite, a tensor that is being sent may arrive partly
  // overwritten; it is not needed for a tensor that was never sent.
  void PrepareWrite() const { storage_->PrepareWrite(); }
  void BumpVersion() const { storage_->BumpVersion(); }

  // Returns "f32[2, 3] cpu", with up to a few values for small tensors.
  std::string ToString() const;

 private:
  const Tensor& CopyFrom(const Tensor& source, bool wait) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  Dims strides_;
  int64_t offset_ = 0;
  DType dtype_ = DType::kF32;
};

// Returns true if both are the same view of the same storage.
bool SameView(const Tensor& a, const Tensor& b);

}  // namespace baton
