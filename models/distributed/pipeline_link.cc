// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline_link.h"

#include "absl/strings/ascii.h"

namespace baton::dist {

std::string PathTo(const std::string& peer, const rpc::DebugInfo& worker) {
  const rpc::TensorChannelInfo* most = nullptr;
  for (const rpc::TensorChannelInfo& channel : worker.tensor_channels) {
    if (channel.peer != peer || !channel.open || channel.bytes_sent == 0)
      continue;
    if (most == nullptr || channel.bytes_sent > most->bytes_sent)
      most = &channel;
  }
  if (most != nullptr) return absl::AsciiStrToLower(most->name);
  for (const rpc::ChannelInfo& channel : worker.channels) {
    if (channel.peer == peer && channel.up) return channel.name;
  }
  return "none";
}

}  // namespace baton::dist
