// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace baton::rpc {

// Names one object of the cluster, uniquely for all time: an id carries the
// incarnation of the worker that made it, so a restarted worker cannot make the
// same id again.
struct RRefId {
  uint64_t creator = 0;  // incarnation
  uint64_t number = 0;   // 0: no object
  std::string ToString() const;
  friend auto operator<=>(const RRefId&, const RRefId&) = default;
};

// Names one grant of an RRef to one worker; made by the worker that passes the
// RRef on.
struct ForkId {
  uint64_t creator = 0;
  uint64_t number = 0;
  friend auto operator<=>(const ForkId&, const ForkId&) = default;
};

// Names one call's hold of an object; made by the object's owner.
struct HoldId {
  uint64_t owner = 0;  // incarnation
  uint64_t number = 0;
  friend auto operator<=>(const HoldId&, const HoldId&) = default;
};

}  // namespace baton::rpc

template <>
struct std::hash<baton::rpc::RRefId> {
  size_t operator()(const baton::rpc::RRefId& id) const {
    return std::hash<uint64_t>()(id.creator ^ (id.number * 0x9e3779b97f4a7c15));
  }
};
