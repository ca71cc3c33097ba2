// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/foreign_memory.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "core/stream.h"
#include "core/stream_use.h"

namespace baton {
namespace {

// The layout of DLPack's DLManagedTensor; DLPack's version 1 did not change it.
namespace dlpack {

enum Kind : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3 };
enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

struct Place {
  int32_t kind;
  int32_t index;
};
struct Type {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct Array {
  void* data;
  Place place;
  int32_t rank;
  Type type;
  int64_t* shape;
  int64_t* strides;  // in elements; null if row-major
  uint64_t offset;   // in bytes
};
struct Managed {
  Array array;
  void* context;
  void (*deleter)(DLManagedTensor*);  // the type as the other library declares
                                      // it
};

}  // namespace dlpack

constexpr char kIn[] = "from_dlpack";

struct NamedType {
  DType dtype;
  dlpack::Type type;
};
constexpr NamedType kTypes[] = {
    {DType::kF32, {dlpack::kFloat, 32, 1}},
    {DType::kF64, {dlpack::kFloat, 64, 1}},
    {DType::kF16, {dlpack::kFloat, 16, 1}},
    {DType::kBF16, {dlpack::kBfloat, 16, 1}},
    {DType::kI32, {dlpack::kInt, 32, 1}},
    {DType::kI64, {dlpack::kInt, 64, 1}},
    {DType::kU8, {dlpack::kUInt, 8, 1}},
    {DType::kBool, {dlpack::kBool, 8, 1}},
};

DType DTypeOf(const dlpack::Type& type) {
  for (const NamedType& known : kTypes) {
    if (known.type.code == type.code && known.type.bits == type.bits &&
        known.type.lanes == type.lanes) {
      return known.dtype;
    }
  }
  Fail(kIn, absl::StrCat("no dtype for elements of code ", int{type.code}, ", ",
                         int{type.bits}, " bits and ", type.lanes, " lanes"));
}

dlpack::Type TypeOf(DType dtype) {
  for (const NamedType& known : kTypes)
    if (known.dtype == dtype) return known.type;
  Fail("to_dlpack", absl::StrCat("DLPack has no ", Name(dtype)));
}

Device DeviceOf(const dlpack::Place& place) {
  if (place.kind == dlpack::kCpu || place.kind == dlpack::kCudaHost)
    return Device::Cpu();
  Require(place.kind == dlpack::kCuda, kIn, "memory of a device of kind ",
          place.kind, ", neither the CPU's nor of an NVIDIA GPU");
  return Device::Cuda(place.index);
}

// Returns the number of elements from the first to the last, inclusive; 0 if
// there are none.
int64_t ExtentOf(const Shape& shape, const Dims& strides) {
  int64_t numel = 1, extent = 1;
  bool overflow = false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(numel, shape[axis], &numel);
    if (shape[axis] == 0) continue;
    overflow |= __builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach);
    overflow |= __builtin_add_overflow(extent, reach, &extent);
  }
  constexpr int64_t kMost = int64_t{1} << 56;  // so that 8 times as many bytes
                                               // can be counted
  Require(!overflow && numel < kMost && extent < kMost, kIn,
          "more elements than there can be: ", shape.ToString());
  return numel == 0 ? 0 : extent;
}

// `release` runs when the work of all streams that used the storage has ended.
std::shared_ptr<Storage> Borrow(void* data, size_t bytes, Device device,
                                std::function<void()> release) {
  if (!device.is_cuda())
    return Storage::Wrap(data, bytes, device, std::move(release));
  auto use = std::make_shared<std::shared_ptr<StreamUse>>();
  auto storage =
      Storage::Wrap(data, bytes, device, [use, release = std::move(release)] {
        const Stream home = (*use)->home();
        for (const Stream& guest : (*use)->Guests()) home.WaitFor(guest);
        AfterWork(home, [release](const absl::Status&) { release(); });
      });
  *use = storage->use();
  return storage;
}

void RequireMemory(const char* op, const void* data, int64_t numel,
                   DType dtype) {
  Require(data != nullptr || numel == 0, op, "no memory for ", numel,
          " elements");
  Require(reinterpret_cast<uintptr_t>(data) % SizeOf(dtype) == 0, op,
          "memory that is not aligned to its elements of ", Name(dtype));
}

// Holds what an export needs until its deleter runs.
struct Export {
  Tensor tensor;
  std::vector<int64_t> shape, strides;
  dlpack::Managed managed{};
};

DLManagedTensor* Exported(const Tensor& tensor) {
  const Device device = tensor.device();
  auto made = std::make_unique<Export>();
  made->tensor = tensor;
  made->shape.assign(tensor.shape().dims().begin(),
                     tensor.shape().dims().end());
  made->strides.assign(tensor.strides().begin(), tensor.strides().end());
  const bool pinned = !device.is_cuda() && tensor.storage()->use() != nullptr;
  made->managed.array = {.data = tensor.raw_data(),
                         .place = {device.is_cuda() ? dlpack::kCuda
                                   : pinned         ? dlpack::kCudaHost
                                                    : dlpack::kCpu,
                                   device.is_cuda() ? device.index() : 0},
                         .rank = tensor.rank(),
                         .type = TypeOf(tensor.dtype()),
                         .shape = made->shape.data(),
                         .strides = made->strides.data(),
                         .offset = 0};
  made->managed.context = made.get();
  made->managed.deleter = [](DLManagedTensor* exported) {
    const auto* managed = reinterpret_cast<dlpack::Managed*>(exported);
    delete static_cast<Export*>(managed->context);
  };
  return reinterpret_cast<DLManagedTensor*>(&made.release()->managed);
}

}  // namespace

Tensor FromMemory(void* data, const Shape& shape, DType dtype,
                  std::function<void()> release, Device device) {
  RequireMemory("from_memory", data, shape.numel(), dtype);
  Require(release != nullptr, "from_memory", "no function to release it");
  const size_t bytes = static_cast<size_t>(shape.numel()) * SizeOf(dtype);
  auto storage = Borrow(data, bytes, device, std::move(release));
  return Tensor::FromStorage(std::move(storage), dtype, shape,
                             ContiguousStrides(shape), 0);
}

Tensor FromDlpack(DLManagedTensor* exported) {
  auto* managed = reinterpret_cast<dlpack::Managed*>(exported);
  Require(managed != nullptr, kIn, "nothing");
  const dlpack::Array& array = managed->array;
  const DType dtype = DTypeOf(array.type);
  const Device device = DeviceOf(array.place);
  Require(array.rank >= 0, kIn, "rank ", array.rank);
  const Shape shape(Dims(array.shape, array.shape + array.rank));
  for (const int64_t dim : shape)
    Require(dim >= 0, kIn, "a dimension of ", dim);
  Dims strides(shape.rank(), 0);
  ExtentOf(shape, strides);  // checks that the number of elements is
                             // representable
  strides = ContiguousStrides(shape);
  if (array.strides != nullptr) {
    strides = Dims(array.strides, array.strides + array.rank);
    for (const int64_t stride : strides)
      Require(stride >= 0, kIn, "a stride of ", stride);
  }
  const int64_t extent = ExtentOf(shape, strides);
  char* first = array.data == nullptr
                    ? nullptr
                    : static_cast<char*>(array.data) + array.offset;
  RequireMemory(kIn, first, extent, dtype);
  const size_t bytes = static_cast<size_t>(extent) * SizeOf(dtype);
  auto storage = Borrow(first, bytes, device, [managed] {
    if (managed->deleter == nullptr) return;
    managed->deleter(reinterpret_cast<DLManagedTensor*>(managed));
  });
  return Tensor::FromStorage(std::move(storage), dtype, shape, strides, 0);
}

DLManagedTensor* ToDlpack(const Tensor& tensor, const Stream& reader) {
  Require(tensor.defined(), "to_dlpack", "an undefined tensor");
  Require(reader.device() == tensor.device(), "to_dlpack", "a stream of ",
          reader.device().ToString(), " for a tensor of ",
          tensor.device().ToString());
  if (tensor.device().is_cuda()) tensor.storage()->use()->Read(reader);
  return Exported(tensor);
}

DLManagedTensor* ToDlpack(const Tensor& tensor) {
  Require(tensor.defined(), "to_dlpack", "an undefined tensor");
  const Stream here = CurrentStream(tensor.device());
  if (tensor.device().is_cuda()) tensor.storage()->use()->Read(here);
  here.Synchronize();
  return Exported(tensor);
}

}  // namespace baton
