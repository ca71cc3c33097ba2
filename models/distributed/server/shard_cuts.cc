// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// How several shards are read at one cut.
#include <algorithm>
#include <utility>

#include "models/distributed/server/shard.h"

namespace baton::dist {

Future<ExchangeReply> ServerShard::Hold(rpc::CallContext& call,
                                        uint64_t number) {
  Promise<ExchangeReply> held;
  const HoldId hold{call.caller().incarnation, number};
  Post([held, hold](ServerShard& self) {
    if (absl::Status status = self.NotServing(); !status.ok()) {
      held.Set(status);
      return;
    }
    const Cut& cut = self.state_.clocks().cut();
    self.holds_[hold] = cut;
    // The caller may be lost, or a trainer whose push it waits for.
    self.After(kLongestHold, [hold](ServerShard& s) { s.Release(hold); });
    ExchangeReply reply{.epoch = self.epoch_, .version = self.state_.version()};
    reply.cut = cut;
    held.Set(std::move(reply));
  });
  return held.future();
}

void ServerShard::Release(const HoldId& hold) {
  if (holds_.erase(hold) == 0 || waiting_.empty()) return;
  Post([](ServerShard& self) { self.Wake(); });
}

bool ServerShard::IsHeld(const ExchangeRequest& push) const {
  return std::any_of(holds_.begin(), holds_.end(), [&](const auto& hold) {
    return !Has(hold.second, push.trainer, push.sequence);
  });
}

void ServerShard::AdmitHeld(const WaitingPtr& waiting) {
  if (const auto held = holds_.find(waiting->hold); held != holds_.end()) {
    held->second = waiting->request.upto;
    Wake();
  }
  Admit(waiting);
}

bool ServerShard::MustWait(const Waiting& waiting) const {
  const ExchangeRequest& request = waiting.request;
  // Its trainer waited for others before, if it had to: those that it would
  // wait for now may be held.
  if (request.hold > 0) {
    return holds_.contains(waiting.hold) &&
           !Reaches(state_.clocks().cut(), request.upto);
  }
  const bool pulls = request.values || !request.rows.empty();
  return pulls && !state_.clocks().MayGo(request.trainer);
}

}  // namespace baton::dist
