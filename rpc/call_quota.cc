// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_quota.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::rpc::internal {

absl::StatusOr<CallQuota::Ticket> CallQuota::Take(const std::string& peer,
                                                  size_t bytes) {
  MutexLock lock(mutex_);
  const auto of = loads_.try_emplace(peer).first;
  Load& load = of->second;
  const auto full = [&](size_t waits, const char* what, size_t limit,
                        const char* flag) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waits, what, " of worker ", peer, " wait already, of ",
                     limit, " that may (--", flag, "); try again later"));
  };
  if (load.calls >= max_calls_) {
    return full(load.calls, " calls", max_calls_, "max_calls_per_peer");
  }
  const size_t waits = load.bytes + load.answers;
  if (load.calls > 0 && (waits > max_bytes_ || bytes > max_bytes_ - waits)) {
    return full(waits, " bytes of calls", max_bytes_,
                "max_call_bytes_per_peer");
  }
  ++load.calls;
  load.bytes += bytes;
  Ticket ticket(new Place(shared_from_this(), of, true));
  ticket->bytes_ = bytes;
  return ticket;
}

CallQuota::Ticket CallQuota::TakeReply(const std::string& peer, bool& first) {
  MutexLock lock(mutex_);
  const auto of = loads_.try_emplace(peer).first;
  if (of->second.replies >= max_replies_) {
    first = !std::exchange(of->second.too_many, true);
    return nullptr;
  }
  ++of->second.replies;
  return Ticket(new Place(shared_from_this(), of, false));
}

CallQuota::Place::~Place() { quota_->Give(*this); }

void CallQuota::Give(const Place& place) {
  MutexLock lock(mutex_);
  Load& load = place.of_->second;
  load.bytes -= place.bytes_;
  load.answers -= place.answer_;
  --(place.call_ ? load.calls : load.replies);
  if (load.replies == 0) load.too_many = false;
  if (load.calls + load.replies == 0) loads_.erase(place.of_);
}

absl::Status CallQuota::Place::MayRun() const {
  const size_t answers = of_->second.answers;
  if (answers <= quota_->max_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(answers, " bytes of answers wait for worker ", of_->first,
                   " to read them, of ", quota_->max_bytes_,
                   " that may (--max_call_bytes_per_peer); try again later"));
}

void CallQuota::Place::Answer(size_t bytes) {
  Load& load = of_->second;
  load.answers += bytes;  // first: meanwhile it counts for too much
  load.bytes -= std::exchange(bytes_, 0);
  answer_ += bytes;
}

}  // namespace baton::rpc::internal
