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

// How values are encoded. A type can be sent if Codec<T> is specialized for it
// (codec_types.h does so for common types) or if it lists its fields:
//   struct Spec {
//     int width = 0;
//     std::string name;
//     static constexpr auto Fields = std::tuple{&Spec::width, &Spec::name};
//   };
// (or has a static member function Fields() that returns the tuple).
namespace baton::rpc {

namespace internal {
class Handle;
using HandlePtr = std::shared_ptr<Handle>;
}  // namespace internal

class Encoder;
class Decoder;

// A specialization has
//   static void Encode(Encoder& encoder, const T& value);
//   static T Decode(Decoder& decoder);
// Encode may run more than once for the same call. Decode must consume at least
// one byte and handle arbitrary bytes; it may return any value once the decoder
// has failed.
template <typename T, typename = void>
struct Codec;

template <typename T>
concept Encodable = requires(Encoder& encoder, Decoder& decoder,
                             const T& value) {
  Codec<T>::Encode(encoder, value);
  { Codec<T>::Decode(decoder) } -> std::same_as<T>;
};

// Collects the values of one message: bytes, tensors and handles, each
// separately. Keeps the first failure. Confined to one thread.
class Encoder {
 public:
  explicit Encoder(Crossing* crossing = nullptr) : crossing_(crossing) {}

  // The crossing of the call's scope; null for a call without a scope.
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

// Reads the values back in order. After the first failure, which it keeps,
// every read returns zeros; loops must stop when ok() becomes false. Lengths
// from the wire are checked against the remaining bytes before anything is
// allocated. Confined to one thread.
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

  // The device to which tensors are moved; by default they stay where they are.
  // GetTensor throws Error if a tensor cannot be moved.
  void set_device(Device device) { device_ = device; }
  // The dtype to which floating-point Variables are cast; by default none are.
  void set_dtype(std::optional<DType> dtype) { dtype_ = dtype; }
  std::optional<DType> dtype() const { return dtype_; }

  // Limit the nesting of recursive values.
  bool EnterNested();
  void LeaveNested() { --depth_; }

  bool ok() const { return status_.ok(); }
  void Fail(absl::Status status);
  const absl::Status& status() const { return status_; }
  size_t remaining() const { return bytes_.size() - position_; }

  // Call it once all values are read. Fails if something is left over; else
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
