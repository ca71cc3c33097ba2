// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/tensor.h"
#include "rpc/call_scope.h"
#include "rpc/transport.h"

// How values become bytes. A type travels when Codec<T> is specialised for it
// (codec_types.h does so for the usual ones) or when it lists its fields:
//   struct Spec {
//     int width = 0;
//     std::string name;
//     static constexpr auto Fields = std::tuple{&Spec::width, &Spec::name};
//   };
// (a static member function Fields() that returns the tuple does as well).
namespace baton::rpc {

namespace internal {
class Handle;
using HandlePtr = std::shared_ptr<Handle>;
}  // namespace internal

class Encoder;
class Decoder;

// A specialisation has
//   static void Encode(Encoder& encoder, const T& value);
//   static T Decode(Decoder& decoder);
// Encode may run again for the same call. Decode must consume at least one
// byte, survive any bytes, and may return anything once the decoder has failed.
template <typename T, typename = void>
struct Codec;

template <typename T>
concept Encodable = requires(Encoder& encoder, Decoder& decoder,
                             const T& value) {
  Codec<T>::Encode(encoder, value);
  { Codec<T>::Decode(decoder) } -> std::same_as<T>;
};

// Gathers the values of one message: bytes, tensors and handles side by side.
// The first failure sticks. Confined to one thread.
class Encoder {
 public:
  explicit Encoder(Crossing* crossing = nullptr) : crossing_(crossing) {}

  // The crossing of the call's scope; null for a call without one.
  Crossing* crossing() const { return crossing_; }

  template <typename T>
  void Put(const T& value) {
    Codec<T>::Encode(*this, value);
  }
  void PutBytes(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  void PutCount(size_t count);
  void PutTensor(const Tensor& tensor);  // may be undefined
  void PutHandle(const internal::HandlePtr& handle);

  void Fail(absl::Status status);
  const absl::Status& status() const { return status_; }

  std::string& bytes() { return bytes_; }
  std::vector<Tensor>& tensors() { return tensors_; }
  std::vector<internal::HandlePtr>& handles() { return handles_; }

 private:
  Crossing* const crossing_;
  std::string bytes_;
  std::vector<Tensor> tensors_;
  std::vector<internal::HandlePtr> handles_;
  absl::Status status_;
};

// Reads them back, in order. After a failure, which sticks, every read gives
// zeros; loops must stop when ok() turns false. Lengths from the wire are
// checked against what is left before anything is allocated. Confined to one
// thread.
class Decoder {
 public:
  explicit Decoder(std::string bytes, std::vector<Tensor> tensors = {},
                   std::vector<internal::HandlePtr> handles = {},
                   Crossing* crossing = nullptr);

  Crossing* crossing() const { return crossing_; }

  template <typename T>
  T Get() {
    return Codec<T>::Decode(*this);
  }
  bool GetBytes(void* out, size_t size);
  // A count of items that take at least `bytes_each` (>= 1) bytes each.
  size_t GetCount(size_t bytes_each = 1);
  std::string GetString();
  Tensor GetTensor();
  internal::HandlePtr GetHandle();

  // Where tensors come to, unless they are there; by default they stay where
  // they are. GetTensor throws Error where they cannot.
  void set_device(Device device) { device_ = device; }
  // What Variables that are floating are cast to; by default nothing.
  void set_dtype(std::optional<DType> dtype) { dtype_ = dtype; }
  std::optional<DType> dtype() const { return dtype_; }

  // Bound the nesting of values that contain themselves.
  bool EnterNested();
  void LeaveNested() { --depth_; }

  bool ok() const { return status_.ok(); }
  void Fail(absl::Status status);
  const absl::Status& status() const { return status_; }
  size_t remaining() const { return bytes_.size() - position_; }

  // Call it once all values are read: fails when something is left over, then
  // lets the call's scope finish its side.
  absl::Status Finish();
  using AtEnd = absl::AnyInvocable<absl::Status()>;
  void set_at_end(AtEnd at_end) { at_end_ = std::move(at_end); }

 private:
  const std::string bytes_;
  std::vector<Tensor> tensors_;
  std::vector<internal::HandlePtr> handles_;
  Crossing* const crossing_;
  size_t position_ = 0;
  size_t next_tensor_ = 0;
  std::optional<Device> device_;
  std::optional<DType> dtype_;
  int depth_ = 0;
  absl::Status status_;
  AtEnd at_end_;
};

}  // namespace baton::rpc

#include "rpc/codec_types.h"
