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

}  // namespace baton::rpc
