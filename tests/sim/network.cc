// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/network.h"

#include <algorithm>

namespace baton::sim {

void Network::Close(int from, int to, Nanos length) {
  Nanos& until = closed_until_[{from, to}];
  until = std::max(until, World::Get().now() + length);
}

bool Network::closed(int from, int to) const {
  const auto found = closed_until_.find({from, to});
  return found != closed_until_.end() && found->second > World::Get().now();
}

void Network::Clog(int from, int to, Nanos length) {
  Nanos& until = clogged_until_[{from, to}];
  until = std::max(until, World::Get().now() + length);
}

Nanos Network::clogged(int from, int to) const {
  const auto found = clogged_until_.find({from, to});
  if (found == clogged_until_.end()) return Nanos(0);
  return std::max(Nanos(0), found->second - World::Get().now());
}

void Network::Carry(int from, int to, int group, bool ordered, Task arrive) {
  World& world = World::Get();
  Nanos leaves = world.now();
  if (closed(from, to)) leaves = closed_until_.at({from, to});
  Nanos takes(random_.Between(options_.least_delay.count(),
                              options_.most_delay.count()));
  if (random_.Chance(options_.slow)) {
    takes += Nanos(random_.Between(0, options_.slowest.count()));
  }
  Traffic& traffic = traffic_[{from, to}];
  Nanos when = std::max(leaves + takes, traffic.fence + Nanos(1));
  if (ordered) {
    when = std::max(when, traffic.last + Nanos(1));
    traffic.fence = when;
  }
  traffic.last = std::max(traffic.last, when);
  world.After(group, when - world.now(), std::move(arrive));
}

}  // namespace baton::sim
