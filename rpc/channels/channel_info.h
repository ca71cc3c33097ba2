// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>

namespace baton::rpc {

// One channel between this worker and a peer, with its traffic since this
// worker started. Plain data.
struct ChannelInfo {
  std::string peer;
  std::string name;    // "grpc", "in-process"
  std::string detail;  // the address, or why a better channel is not used
  bool up = false;
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  static constexpr auto Fields() {
    return std::tuple{
        &ChannelInfo::peer,          &ChannelInfo::name,
        &ChannelInfo::detail,        &ChannelInfo::up,
        &ChannelInfo::messages_sent, &ChannelInfo::messages_received,
        &ChannelInfo::bytes_sent,    &ChannelInfo::bytes_received};
  }
};

// What one end of a channel has sent, and what the peer still holds of it.
// Plain data.
struct SentTensors {
  uint64_t tensors_sent = 0;
  uint64_t bytes_sent = 0;
  uint64_t sent_in_place = 0;   // tensors sent without a copy; among the above
  uint64_t declined = 0;        // tensors for which there was no room
  uint64_t leases = 0;          // sent tensors that the peer still holds
  uint64_t leased_bytes = 0;    // of those
  uint64_t made_bytes = 0;      // in tensors made for the peer, not sent yet
  uint64_t capacity_bytes = 0;  // what it may hold at most, as of now

  // Count a tensor of so many bytes that the peer gets, and then releases.
  void Lease(uint64_t bytes) {
    ++tensors_sent;
    bytes_sent += bytes;
    ++leases;
    leased_bytes += bytes;
  }
  void GiveBack(uint64_t bytes) {
    --leases;
    leased_bytes -= bytes;
  }
  // The peer is gone.
  void Forget() { leases = leased_bytes = made_bytes = 0; }
};

// What it has received. Plain data.
struct ReceivedTensors {
  uint64_t tensors_received = 0;
  uint64_t bytes_received = 0;

  void Add(uint64_t bytes) {
    ++tensors_received;
    bytes_received += bytes;
  }
};

// How tensors travel from this worker to a peer, and what has travelled so on
// the present connection. Plain data.
struct TensorChannelInfo : SentTensors, ReceivedTensors {
  std::string peer = {};
  std::string name = {};
  bool open = false;
  // Why it is not open, or has no more room; empty while it is being opened.
  std::string why_not = {};

  // For people: "open", "not open", or "opening", which may last long.
  const char* state() const {
    if (open) return "open";
    return why_not.empty() ? "opening" : "not open";
  }
  static constexpr auto Fields() {
    using Info = TensorChannelInfo;
    return std::tuple{&Info::peer,           &Info::name,
                      &Info::open,           &Info::why_not,
                      &Info::tensors_sent,   &Info::bytes_sent,
                      &Info::sent_in_place,  &Info::tensors_received,
                      &Info::bytes_received, &Info::declined,
                      &Info::leases,         &Info::leased_bytes,
                      &Info::made_bytes,     &Info::capacity_bytes};
  }
};

}  // namespace baton::rpc
