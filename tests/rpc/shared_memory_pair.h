// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "rpc/channels/channel.h"
#include "rpc/channels/shared_memory.h"
#include "rpc/transports/private_socket.h"
#include "tests/rpc/two_ends.h"

namespace baton::rpc {

inline std::string MappingsOfThisProcess() {
  std::ifstream file("/proc/self/maps");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct SharedMemorySide : ChannelSide {
  explicit SharedMemorySide(size_t budget, Pin pin = {})
      : socket(*PrivateSocket::Make()) {
    kind = MakeSharedMemory({.socket_path = socket.fd_path(),
                             .bytes = budget,
                             .made = made,
                             .mapped = mapped,
                             .idle = std::chrono::milliseconds(50),
                             .pin = std::move(pin)});
  }
  // As each process has its own.
  static std::shared_ptr<SharedBudget> NewBudget() {
    return std::make_shared<SharedBudget>([] {
      return MemoryRoom{uint64_t{1} << 40, uint64_t{1} << 40};
    });
  }
  std::shared_ptr<SharedBudget> made = NewBudget(), mapped = NewBudget();
  PrivateSocket socket;
};

// Two ends of the channel.
class SharedMemoryPair : public TwoEnds<SharedMemorySide> {
 protected:
  static constexpr size_t kBudget = size_t{40} << 20;

  SharedMemoryPair()
      : TwoEnds(SharedMemorySide(kBudget), SharedMemorySide(kBudget)) {}

  Tensor Send(const Tensor& tensor) {
    auto got = bob_.channel->Import(SpecOf(tensor), Export(tensor).ticket);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? got->tensor : Tensor();
  }
  // Leases that bob gave back reach alice.
  void PassReleases() {
    for (const uint64_t lease : bob_.port->TakeReleased()) {
      EXPECT_TRUE(alice_.channel->OnReleased(lease).ok());
    }
  }
};

}  // namespace baton::rpc
