// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_join.h"
#include "core/cpu/copy.h"
#include "core/cuda/memory.h"
#include "core/dtype_visit.h"
#include "core/stream.h"

namespace baton {
namespace {

Dims DenseStrides(const Shape& shape, MemoryFormat format) {
  if (format == MemoryFormat::kContiguous) return ContiguousStrides(shape);
  const Dims nhwc = ContiguousStrides({shape[0], shape[2], shape[3], shape[1]});
  return {nhwc[0], nhwc[3], nhwc[1], nhwc[2]};
}

size_t CheckedBytes(const Shape& shape, DType dtype) {
  size_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(
      static_cast<size_t>(shape.numel()), SizeOf(dtype), &bytes);
  Require(!overflow && bytes <= std::numeric_limits<int64_t>::max(), "empty",
          shape.ToString(), " of ", Name(dtype), " has more than 2^63 bytes");
  return bytes;
}

// The first and last element that a non-empty view contains.
struct Extent {
  int64_t first, last;
};
Extent ExtentOf(const Tensor& t) {
  int64_t last = t.offset();
  for (int axis = 0; axis < t.rank(); ++axis) {
    last += (t.dim(axis) - 1) * t.strides()[static_cast<size_t>(axis)];
  }
  return {t.offset(), last};
}

bool MayOverlap(const Tensor& a, const Tensor& b) {
  if (a.storage() != b.storage()) return false;
  const auto size_a = static_cast<int64_t>(SizeOf(a.dtype()));
  const auto size_b = static_cast<int64_t>(SizeOf(b.dtype()));
  const Extent x = ExtentOf(a);
  const Extent y = ExtentOf(b);
  return x.first * size_a < (y.last + 1) * size_b &&
         y.first * size_b < (x.last + 1) * size_a;
}

void CopyElements(const Tensor& target, const Tensor& source,
                  bool wait = true) {
  if (target.device().is_cpu() && source.device().is_cpu()) {
    cpu::Copy(target, source);
  } else {
    cuda::Copy(target, source, wait);
  }
}

void FillElements(const Tensor& target, double value) {
  if (target.device().is_cpu()) {
    cpu::Fill(target, value);
  } else {
    cuda::Fill(target, value);
  }
}

}  // namespace

bool SameView(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() &&
         a.shape() == b.shape() && a.strides() == b.strides() &&
         a.dtype() == b.dtype();
}

Tensor Tensor::Empty(const Shape& shape, const TensorOptions& options) {
  Require(options.format == MemoryFormat::kContiguous || shape.rank() == 4,
          "empty", "channels-last wants 4 dims, got ", shape.ToString());
  const size_t bytes = CheckedBytes(shape, options.dtype);
  Require(!options.pinned || options.device.is_cpu(), "empty",
          "pinned memory is the CPU's, not that of ",
          options.device.ToString());
  Tensor t;
  t.storage_ = options.pinned ? Storage::AllocatePinned(bytes)
                              : Storage::Allocate(bytes, options.device);
  t.shape_ = shape;
  t.strides_ = DenseStrides(shape, options.format);
  t.dtype_ = options.dtype;
  return t;
}

Tensor Tensor::Full(const Shape& shape, double value,
                    const TensorOptions& options) {
  Tensor t = Empty(shape, options);
  FillElements(t, value);
  return t;
}

Tensor Tensor::Zeros(const Shape& shape, const TensorOptions& options) {
  return Full(shape, 0, options);
}

Tensor Tensor::Ones(const Shape& shape, const TensorOptions& options) {
  return Full(shape, 1, options);
}

Tensor Tensor::Scalar(double value, DType dtype) {
  return Full(Shape(), value, {.dtype = dtype});
}

Tensor Tensor::Arange(int64_t end, DType dtype) {
  Require(end >= 0, "arange", "negative end ", end);
  Tensor t = Empty({end}, {.dtype = dtype});
  VisitDType(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* data = t.data<T>();
    for (int64_t i = 0; i < end; ++i) data[i] = Convert<T>(i);
  });
  return t;
}

template <typename T>
Tensor Tensor::From(const std::vector<T>& values, const Shape& shape) {
  Require(static_cast<int64_t>(values.size()) == shape.numel(), "from",
          values.size(), " values for shape ", shape.ToString());
  Tensor t = Empty(shape, {.dtype = kDTypeOf<T>});
  std::copy(values.begin(), values.end(), t.data<T>());
  return t;
}

Tensor Tensor::FromStorage(std::shared_ptr<Storage> storage, DType dtype,
                           const Shape& shape, const Dims& strides,
                           int64_t offset) {
  constexpr char kOp[] = "from_storage";
  Require(storage != nullptr, kOp, "no storage");
  Require(DTypeFromWire(static_cast<int>(dtype)).has_value(), kOp,
          "unknown dtype ", static_cast<int>(dtype));
  Require(strides.size() == shape.dims().size(), kOp, strides.size(),
          " strides for shape ", shape.ToString());
  Require(offset >= 0, kOp, "negative offset ", offset);
  const size_t size = SizeOf(dtype);
  Require(reinterpret_cast<uintptr_t>(storage->data()) % size == 0, kOp,
          "the storage is not aligned for ", Name(dtype));
  CheckedBytes(shape, dtype);
  const auto capacity = static_cast<int64_t>(storage->bytes() / size);
  int64_t end = offset;  // one past the last element
  bool overflow = false;
  for (size_t d = 0; d < strides.size(); ++d) {
    Require(strides[d] >= 0, kOp, "negative stride ", strides[d]);
    int64_t reach = 0;
    if (shape.dims()[d] > 0) {
      overflow |=
          __builtin_mul_overflow(shape.dims()[d] - 1, strides[d], &reach);
    }
    overflow |= __builtin_add_overflow(end, reach, &end);
  }
  if (shape.numel() > 0) {
    overflow |= __builtin_add_overflow(end, int64_t{1}, &end);
  } else {
    end = offset;
    overflow = false;
  }
  Require(!overflow && end <= capacity, kOp, shape.ToString(),
          " with strides [", absl::StrJoin(strides, ", "), "] and offset ",
          offset, " reaches outside a storage of ", capacity, " elements");
  Tensor t;
  t.storage_ = std::move(storage);
  t.shape_ = shape;
  t.strides_ = strides;
  t.offset_ = offset;
  t.dtype_ = dtype;
  return t;
}

Tensor Tensor::EmptyLike(const Tensor& other) {
  return Empty(other.shape(), {.dtype = other.dtype(),
                               .device = other.device(),
                               .format = other.SuggestFormat()});
}

Tensor Tensor::ZerosLike(const Tensor& other) {
  Tensor t = EmptyLike(other);
  FillElements(t, 0);
  return t;
}

void* Tensor::raw_data() const {
  return static_cast<std::byte*>(storage_->data()) +
         static_cast<size_t>(offset_) * SizeOf(dtype_);
}

template <typename T>
T* Tensor::data() const {
  Require(dtype_ == kDTypeOf<T>, "data", "expected ", Name(kDTypeOf<T>),
          ", got a tensor of ", Name(dtype_));
  Require(device().is_cpu(), "data", "the tensor is on ", device().ToString(),
          ", not on the CPU");
  return static_cast<T*>(raw_data());
}

double Tensor::Item() const {
  Require(numel() == 1, "item", "expected one element, got ",
          shape_.ToString());
  const Tensor host = To(Device::Cpu());
  return VisitDType(dtype_, [&](auto type) {
    using T = typename decltype(type)::type;
    return Convert<double>(*host.data<T>());
  });
}

template <typename T>
std::vector<T> Tensor::ToVector() const {
  Require(dtype_ == kDTypeOf<T>, "to_vector", "expected ", Name(kDTypeOf<T>),
          ", got a tensor of ", Name(dtype_));
  const Tensor dense = To(Device::Cpu()).Contiguous();
  const T* begin = dense.data<T>();
  return std::vector<T>(begin, begin + numel());
}

bool Tensor::IsContiguous(MemoryFormat format) const {
  if (format == MemoryFormat::kChannelsLast && rank() != 4) return false;
  if (numel() == 0) return true;
  const Dims dense = DenseStrides(shape_, format);
  for (size_t d = 0; d < dense.size(); ++d) {
    if (shape_.dims()[d] != 1 && strides_[d] != dense[d]) return false;
  }
  return true;
}

MemoryFormat Tensor::SuggestFormat() const {
  return rank() == 4 && !IsContiguous() &&
                 IsContiguous(MemoryFormat::kChannelsLast)
             ? MemoryFormat::kChannelsLast
             : MemoryFormat::kContiguous;
}

Tensor Tensor::Contiguous(MemoryFormat format) const {
  Require(format == MemoryFormat::kContiguous || rank() == 4, "contiguous",
          "channels-last wants 4 dims, got ", shape_.ToString());
  if (IsContiguous(format)) return *this;
  Tensor t =
      Empty(shape_, {.dtype = dtype_, .device = device(), .format = format});
  CopyElements(t, *this);
  return t;
}

Tensor Tensor::Clone() const {
  Tensor t = EmptyLike(*this);
  CopyElements(t, *this);
  return t;
}

Tensor Tensor::To(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor t = Empty(
      shape_, {.dtype = dtype, .device = device(), .format = SuggestFormat()});
  CopyElements(t, *this);
  return t;
}

Tensor Tensor::To(Device device) const {
  if (device == this->device()) return *this;
  // Between GPUs the copying stream owns the memory, so that it need not wait
  // for the pending work of the target's current stream.
  const bool between = device.is_cuda() && this->device().is_cuda();
  const StreamScope scope(between ? Stream::ForCopies(this->device(), device)
                                  : CurrentStream(device));
  Tensor t = Empty(
      shape_, {.dtype = dtype_, .device = device, .format = SuggestFormat()});
  CopyElements(t, *this);
  return t;
}

const Tensor& Tensor::Fill(double value) const {
  PrepareWrite();
  FillElements(*this, value);
  BumpVersion();
  return *this;
}

const Tensor& Tensor::CopyFrom(const Tensor& source) const {
  return CopyFrom(source, true);
}

const Tensor& Tensor::CopyFromAsync(const Tensor& source) const {
  return CopyFrom(source, false);
}

const Tensor& Tensor::CopyFrom(const Tensor& source, bool wait) const {
  for (size_t d = 0; d < strides_.size(); ++d) {
    Require(strides_[d] != 0 || shape_.dims()[d] <= 1, "copy_from",
            "the target is an expanded view: its elements share memory");
  }
  Tensor from = source.Expand(shape_);
  if (SameView(*this, from)) return *this;
  if (numel() > 0 && MayOverlap(*this, from)) from = from.Clone();
  PrepareWrite();
  CopyElements(*this, from, wait);
  BumpVersion();
  return *this;
}

std::string Tensor::ToString() const {
  if (!defined()) return "undefined";
  constexpr int64_t kShown = 8;
  std::string head =
      absl::StrCat(Name(dtype_), shape_.ToString(), " ", device().ToString());
  if (numel() == 0 || numel() > kShown || !device().is_cpu()) return head;
  const std::vector<double> values = To(DType::kF64).ToVector<double>();
  return absl::StrCat(head, " {", absl::StrJoin(values, ", "), "}");
}

#define BATON_INSTANTIATE(T)                                            \
  template Tensor Tensor::From<T>(const std::vector<T>&, const Shape&); \
  template T* Tensor::data<T>() const;                                  \
  template std::vector<T> Tensor::ToVector<T>() const;
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(Half)
BATON_INSTANTIATE(BFloat16)
BATON_INSTANTIATE(int32_t)
BATON_INSTANTIATE(int64_t)
BATON_INSTANTIATE(uint8_t)
BATON_INSTANTIATE(bool)
#undef BATON_INSTANTIATE

}  // namespace baton
