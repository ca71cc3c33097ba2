// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_quota.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::rpc::internal {

const CallQuota::LoadPtr& CallQuota::LoadOf(const std::string& peer) {
  LoadPtr& load = loads_[peer];
  if (load == nullptr) load.reset(new Load{peer, max_bytes_});
  return load;
}

absl::StatusOr<CallQuota::Ticket> CallQuota::Take(const std::string& peer,
                                                  size_t bytes) {
  const LoadPtr& load = LoadOf(peer);
  const auto full = [&](size_t waits, const char* what, size_t limit,
                        const char* flag) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waits, what, " of worker ", peer, " wait already, of ",
                     limit, " that may (--", flag, "); try again later"));
  };
  const size_t calls = load->calls;
  if (calls >= max_calls_) {
    return full(calls, " calls", max_calls_, "max_calls_per_peer");
  }
  const size_t waits = load->bytes + load->answers;
  if (calls > 0 && (waits > max_bytes_ || bytes > max_bytes_ - waits)) {
    return full(waits, " bytes of calls", max_bytes_,
                "max_call_bytes_per_peer");
  }
  ++load->calls;
  load->bytes += bytes;
  return Ticket(new Place(load, true, bytes));
}

CallQuota::Ticket CallQuota::TakeReply(const std::string& peer, bool& first) {
  const LoadPtr& load = LoadOf(peer);
  const size_t replies = load->replies;
  if (replies == 0) load->too_many = false;
  if (replies >= max_replies_) {
    first = !std::exchange(load->too_many, true);
    return nullptr;
  }
  ++load->replies;
  return Ticket(new Place(load, false, 0));
}

CallQuota::Place::~Place() {
  of_->bytes -= bytes_;
  of_->answers -= answer_;
  --(call_ ? of_->calls : of_->replies);
}

absl::Status CallQuota::Place::MayRun() const {
  const size_t answers = of_->answers;
  if (answers <= of_->max_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(answers, " bytes of answers wait for worker ", of_->peer,
                   " to read them, of ", of_->max_bytes,
                   " that may (--max_call_bytes_per_peer); try again later"));
}

void CallQuota::Place::Answer(size_t bytes) {
  of_->answers += bytes;  // first: meanwhile it counts for too much
  of_->bytes -= std::exchange(bytes_, 0);
  answer_ += bytes;
}

}  // namespace baton::rpc::internal
