// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/codec.h"
#include "rpc/ids.h"
#include "rpc/methods.h"

// The headers of the messages between two agents: a FrameKind byte, then one of
// the structs below. docs/rref_protocol.md explains the ownership messages.
namespace baton::rpc {

namespace internal {

// Of an id, which is two numbers.
template <typename Id>
struct IdCodec {
  static void Encode(Encoder& encoder, const Id& id) {
    const auto& [maker, number] = id;
    encoder.Put(maker);
    encoder.Put(number);
  }
  static Id Decode(Decoder& decoder) {
    const auto maker = decoder.Get<uint64_t>();
    return {maker, decoder.Get<uint64_t>()};
  }
};

}  // namespace internal

template <>
struct Codec<RRefId> : internal::IdCodec<RRefId> {};
template <>
struct Codec<ForkId> : internal::IdCodec<ForkId> {};
template <>
struct Codec<HoldId> : internal::IdCodec<HoldId> {};

namespace internal {

enum class FrameKind : uint8_t {
  kRequest = 1,
  kResponse = 2,
  kControl = 3,
  kCancel = 4,
};

// An RRef inside a message, granted to the receiver under `fork`.
struct Transfer {
  RRefId id;
  ForkId fork;
  uint64_t type = 0;
  WorkerInfo owner;
  static constexpr auto Fields = std::tuple{&Transfer::id, &Transfer::fork,
                                            &Transfer::type, &Transfer::owner};
};

struct RequestFrame {
  uint64_t to = 0;     // the callee's incarnation; 0 if unknown
  uint64_t epoch = 0;  // the epoch of the two workers (rpc/control_channel.h)
  uint64_t call = 0;   // counts the caller's requests to this callee from 1
  uint64_t type = 0;   // MethodKey
  uint32_t index = 0;
  RRefId object;  // the object whose method it is; number 0 for a function
  // The object that the result becomes at the callee; number 0: the result is
  // sent back.
  RRefId result;
  ForkId result_fork;      // the caller's grant of `result`
  int64_t timeout_us = 0;  // negative: none
  bool has_scope = false;
  std::string scope;
  std::vector<Transfer> transfers;
  std::string arguments;
  // Where in the source the caller asked for `result`, for display.
  std::string place;
  // A long result may stay at the callee, which sends its RRef back.
  bool may_stay = false;
  // The holds of the calls that wait for this one (rpc/object_lock.h).
  std::vector<HoldId> within;
  static constexpr auto Fields =
      std::tuple{&RequestFrame::to,         &RequestFrame::epoch,
                 &RequestFrame::call,       &RequestFrame::type,
                 &RequestFrame::index,      &RequestFrame::object,
                 &RequestFrame::result,     &RequestFrame::result_fork,
                 &RequestFrame::timeout_us, &RequestFrame::has_scope,
                 &RequestFrame::scope,      &RequestFrame::transfers,
                 &RequestFrame::arguments,  &RequestFrame::place,
                 &RequestFrame::may_stay,   &RequestFrame::within};
};

struct ResponseFrame {
  uint64_t to = 0;
  uint64_t epoch = 0;
  uint64_t call = 0;
  absl::Status status{};
  bool refused = false;  // the handler did not run
  std::string scope{};
  std::vector<Transfer> transfers{};
  std::string value{};
  static constexpr auto Fields = std::tuple{
      &ResponseFrame::to,        &ResponseFrame::epoch,   &ResponseFrame::call,
      &ResponseFrame::status,    &ResponseFrame::refused, &ResponseFrame::scope,
      &ResponseFrame::transfers, &ResponseFrame::value};
};

enum class ControlKind : uint8_t {
  kCreated = 1,  // owner to creator: the object is in the owner's table
  kAdd = 2,      // user to owner: I have `fork`
  kDelete = 3,   // user to owner: I have released `fork`
  kAccept = 4,   // receiver to sender: `fork` arrived and the owner knows it
  kRefuse = 5,   // receiver to sender: `fork` did not and will not arrive
  kProbe = 6,    // sender to receiver: did `fork` arrive?
  // This worker shuts down; when its connection breaks it is gone.
  kLeaving = 7,
  kPing = 8,  // asks only for an acknowledgement
};

struct ControlItem {
  ControlKind kind = ControlKind::kPing;
  RRefId id;
  ForkId fork;
  static constexpr auto Fields =
      std::tuple{&ControlItem::kind, &ControlItem::id, &ControlItem::fork};
};

// The items of `epoch` with the numbers from `first` on, and an acknowledgement
// of the items received in the other direction.
struct ControlFrame {
  uint64_t to = 0;
  uint64_t epoch = 0;
  uint64_t first = 0;
  std::vector<ControlItem> items;
  uint64_t acked = 0;  // the number of the next item expected
  static constexpr auto Fields =
      std::tuple{&ControlFrame::to, &ControlFrame::epoch, &ControlFrame::first,
                 &ControlFrame::items, &ControlFrame::acked};
};

// The caller has given up the request. Its handler is told to stop; a request
// that arrives after this frame is not served.
struct CancelFrame {
  uint64_t to = 0;  // as in RequestFrame
  uint64_t call = 0;
  static constexpr auto Fields =
      std::tuple{&CancelFrame::to, &CancelFrame::call};
};

template <typename Frame>
std::string EncodeFrame(FrameKind kind, const Frame& frame) {
  Encoder encoder;
  encoder.Put(kind);
  encoder.Put(frame);
  return std::move(encoder.bytes());
}

// Returns InvalidArgument unless `header` is exactly one frame.
template <typename Frame>
absl::StatusOr<Frame> DecodeFrame(std::string header) {
  Decoder decoder(std::move(header));
  decoder.Get<uint8_t>();
  Frame frame = decoder.Get<Frame>();
  RETURN_IF_ERROR(decoder.Finish());
  return frame;
}

}  // namespace internal
}  // namespace baton::rpc
