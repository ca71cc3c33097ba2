// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/codec.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace baton::rpc {
namespace {
constexpr int kMaxNesting = 64;
constexpr int kMaxStatusPayloads = 8;
}  // namespace

void Encoder::PutCount(size_t count) {
  if (count > UINT32_MAX) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat("a value has ", count, " items; at most 2^32 - 1 fit")));
    count = 0;
  }
  const uint32_t wire = static_cast<uint32_t>(count);
  PutBytes(&wire, sizeof wire);
}

void Encoder::PutTensor(const Tensor& tensor) {
  const uint8_t present = tensor.defined() ? 1 : 0;
  PutBytes(&present, 1);
  if (present == 0) return;
  tensors_.push_back(tensor);
}

void Encoder::PutHandle(const internal::HandlePtr& handle) {
  const uint32_t place =
      handle == nullptr ? 0 : static_cast<uint32_t>(handles_.size()) + 1;
  PutBytes(&place, sizeof place);
  if (handle != nullptr) handles_.push_back(handle);
}

void Encoder::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Decoder::Decoder(std::string bytes, std::vector<Tensor> tensors,
                 std::vector<internal::HandlePtr> handles, Crossing* crossing)
    : bytes_(std::move(bytes)),
      tensors_(std::move(tensors)),
      handles_(std::move(handles)),
      crossing_(crossing) {}

bool Decoder::GetBytes(void* out, size_t size) {
  if (ok() && size > remaining()) {
    Fail(absl::InvalidArgumentError(absl::StrCat("a message ends early: ", size,
                                                 " bytes wanted, ", remaining(),
                                                 " left")));
  }
  if (!ok()) {
    if (size > 0) std::memset(out, 0, size);
    return false;
  }
  if (size > 0) std::memcpy(out, bytes_.data() + position_, size);
  position_ += size;
  return true;
}

size_t Decoder::GetCount(size_t bytes_each) {
  uint32_t count = 0;
  if (!GetBytes(&count, sizeof count)) return 0;
  if (count > remaining() / bytes_each) {
    Fail(absl::InvalidArgumentError(absl::StrCat(
        "a message claims ", count, " items in ", remaining(), " bytes")));
    return 0;
  }
  return count;
}

std::string Decoder::GetString() {
  const size_t size = GetCount();
  if (!ok()) return {};
  std::string text = bytes_.substr(position_, size);
  position_ += size;
  return text;
}

Tensor Decoder::GetTensor() {
  uint8_t present = 0;
  if (!GetBytes(&present, 1) || present == 0) return Tensor();
  if (present != 1 || next_tensor_ >= tensors_.size()) {
    Fail(absl::InvalidArgumentError(absl::StrCat("a message names tensor ",
                                                 next_tensor_, " but brings ",
                                                 tensors_.size())));
    return Tensor();
  }
  Tensor tensor = std::move(tensors_[next_tensor_++]);
  if (device_.has_value()) tensor = tensor.To(*device_);
  return tensor;
}

internal::HandlePtr Decoder::GetHandle() {
  uint32_t place = 0;
  if (!GetBytes(&place, sizeof place) || place == 0) return nullptr;
  if (place > handles_.size()) {
    Fail(absl::InvalidArgumentError(absl::StrCat(
        "a message names RRef ", place, " but brings ", handles_.size())));
    return nullptr;
  }
  return handles_[place - 1];
}

bool Decoder::EnterNested() {
  if (++depth_ > kMaxNesting) {
    Fail(absl::InvalidArgumentError("a value is nested too deeply"));
  }
  return ok();
}

void Decoder::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

absl::Status Decoder::Finish() {
  if (!ok()) return status_;
  if (remaining() > 0 || next_tensor_ < tensors_.size()) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat("a message has ", remaining(), " bytes and ",
                     tensors_.size() - next_tensor_, " tensors too many")));
    return status_;
  }
  if (at_end_) Fail(std::exchange(at_end_, nullptr)());
  return status_;
}

void Codec<absl::Status>::Encode(Encoder& encoder, const absl::Status& status) {
  encoder.Put(static_cast<int32_t>(status.code()));
  encoder.Put(std::string(status.message()));
  std::vector<std::pair<std::string, std::string>> payloads;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    if (payloads.size() < kMaxStatusPayloads) {
      payloads.emplace_back(std::string(url), std::string(payload));
    }
  });
  encoder.Put(payloads);
}

absl::Status Codec<absl::Status>::Decode(Decoder& decoder) {
  const int32_t code = decoder.Get<int32_t>();
  const std::string message = decoder.GetString();
  const auto payloads =
      decoder.Get<std::vector<std::pair<std::string, std::string>>>();
  if (code < 0 || code > 16 || payloads.size() > kMaxStatusPayloads) {
    decoder.Fail(absl::InvalidArgumentError("a message holds a bad status"));
    return absl::OkStatus();
  }
  absl::Status status(static_cast<absl::StatusCode>(code), message);
  for (const auto& [url, payload] : payloads) {
    status.SetPayload(url, absl::Cord(payload));
  }
  return status;
}

void Codec<Compute>::Encode(Encoder& encoder, const Compute& compute) {
  encoder.Put(compute.ToString());
}

Compute Codec<Compute>::Decode(Decoder& decoder) {
  const auto compute = Compute::Parse(decoder.GetString());
  if (!compute.ok()) decoder.Fail(compute.status());
  return compute.value_or(Compute{});
}

void Codec<WorkerInfo>::Encode(Encoder& encoder, const WorkerInfo& worker) {
  encoder.Put(worker.name);
  encoder.Put(worker.rank);
  encoder.Put(worker.incarnation);
  encoder.Put(worker.address);
  encoder.Put(worker.compute);
}

WorkerInfo Codec<WorkerInfo>::Decode(Decoder& decoder) {
  WorkerInfo worker;
  worker.name = decoder.GetString();
  worker.rank = decoder.Get<Rank>();
  worker.incarnation = decoder.Get<uint64_t>();
  worker.address = decoder.GetString();
  worker.compute = decoder.Get<Compute>();
  // Names are looked up and printed, so they must be valid. An unknown name is
  // empty.
  if (!worker.name.empty()) {
    if (absl::Status status = CheckWorkerName(worker.name); !status.ok()) {
      decoder.Fail(std::move(status));
    }
  }
  return worker;
}

void Codec<Shape>::Encode(Encoder& encoder, const Shape& shape) {
  encoder.Put(std::vector<int64_t>(shape.begin(), shape.end()));
}

Shape Codec<Shape>::Decode(Decoder& decoder) {
  const auto dims = decoder.Get<std::vector<int64_t>>();
  return Shape(Dims(dims.begin(), dims.end()));
}

void Codec<Device>::Encode(Encoder& encoder, const Device& device) {
  encoder.Put(device.kind());
  encoder.Put(static_cast<int32_t>(device.index()));
}

Device Codec<Device>::Decode(Decoder& decoder) {
  const auto kind = decoder.Get<Device::Kind>();
  const int32_t index = decoder.Get<int32_t>();
  if (kind == Device::Kind::kCpu && index == 0) return Device::Cpu();
  if (kind == Device::Kind::kCuda && index >= 0) return Device::Cuda(index);
  decoder.Fail(absl::InvalidArgumentError("a message holds a bad device"));
  return Device::Cpu();
}

}  // namespace baton::rpc
