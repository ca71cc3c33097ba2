// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "rpc/channels/doorbell.h"
#include "rpc/channels/segment.h"
#include "rpc/collectives/lane.h"

namespace baton::rpc {

// What a sender opens the lanes of a receiver by. Of use on the same machine
// and to the same user alone. Plain data.
struct SharedLanesHandle {
  std::string machine;  // empty: there are none
  int64_t process = 0;
  int32_t lanes = -1, bell = -1;  // descriptors of that process
  uint64_t lanes_file = 0, bell_file = 0;

  static constexpr auto Fields() {
    using H = SharedLanesHandle;
    return std::tuple{&H::machine, &H::process,    &H::lanes,
                      &H::bell,    &H::lanes_file, &H::bell_file};
  }
};

// The lanes to one member of a group in memory that others of its machine
// write: a seat for each member of the group. Neither end believes the other: a
// position or a length that cannot be is DataLoss. Immutable.
class SharedLanes : public std::enable_shared_from_this<SharedLanes> {
 public:
  // The receiver's. ResourceExhausted when there is no memory for them.
  static absl::StatusOr<std::shared_ptr<SharedLanes>> Make(int seats,
                                                           LaneSize size);
  // A sender's. Unavailable says why there is no way to them.
  static absl::StatusOr<std::shared_ptr<SharedLanes>> Open(
      const SharedLanesHandle& handle, int seats, LaneSize size);
  static absl::StatusOr<std::shared_ptr<Bell>> OpenBell(
      const SharedLanesHandle& handle);

  // Of the receiver, which is woken by `bell`.
  absl::StatusOr<SharedLanesHandle> HandleFor(const Doorbell& bell) const;

  // The ends of one seat's lane, each to be made once. `bell` is the other
  // side's.
  std::unique_ptr<Inlet> In(int seat, std::shared_ptr<Bell> bell);
  std::unique_ptr<Outlet> Out(int seat, std::shared_ptr<Bell> bell);

 private:
  class Lane;
  class SharedInlet;
  class SharedOutlet;
  SharedLanes(Segment memory, LaneSize size)
      : memory_(std::move(memory)), size_(size) {}

  const Segment memory_;
  const LaneSize size_;
};

}  // namespace baton::rpc
