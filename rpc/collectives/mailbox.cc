// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/mailbox.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

absl::Status CopyInto(const Tensor& into, const Tensor& from) {
  if (!from.defined() || from.shape() != into.shape() ||
      from.dtype() != into.dtype()) {
    return absl::InvalidArgumentError(
        absl::StrCat("received ", from.defined() ? Name(from.dtype()) : "none",
                     from.defined() ? from.shape().ToString() : "", " into ",
                     Name(into.dtype()), into.shape().ToString()));
  }
  return CatchErrors([&] { into.CopyFrom(from); });
}

}  // namespace

Future<void> MemberMailbox::Deliver(TaggedTensor sent) {
  return Meet({sent.from, sent.tag, sent.number}, sent.tensor, true);
}

Future<void> MemberMailbox::Receive(uint64_t from, int32_t tag,
                                    const Tensor& into) {
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = asked_[{from, tag}]++;
  }
  return Meet({from, tag, number}, into, false);
}

Future<void> MemberMailbox::Meet(const Key& key, const Tensor& tensor,
                                 bool is_sent) {
  Half other;
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return ReadyFuture<void>(failure_);
    Halves& others = is_sent ? receives_ : sent_;
    const auto found = others.extract(key);
    if (found.empty()) {
      const auto failed = failures_.find(std::get<0>(key));
      if (!is_sent && failed != failures_.end())
        return ReadyFuture<void>(failed->second);
      Half half{tensor, Promise<void>()};
      const Future<void> done = half.done.future();
      (is_sent ? sent_ : receives_).emplace(key, std::move(half));
      return done;
    }
    other = std::move(found.mapped());
  }
  const absl::Status copied =
      is_sent ? CopyInto(other.tensor, tensor) : CopyInto(tensor, other.tensor);
  other.done.Set(copied);
  return ReadyFuture<void>(copied);
}

void MemberMailbox::Fail(const absl::Status& why) {
  Halves sent, receives;
  {
    MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = why;
    sent.swap(sent_);
    receives.swap(receives_);
  }
  for (auto& [key, half] : sent) half.done.Set(why);
  for (auto& [key, half] : receives) half.done.Set(why);
}

void MemberMailbox::FailFrom(uint64_t from, const absl::Status& why) {
  std::vector<Half> failed;
  {
    MutexLock lock(mutex_);
    failures_.emplace(from, why);
    for (auto it = receives_.begin(); it != receives_.end();) {
      if (std::get<0>(it->first) != from) {
        ++it;
        continue;
      }
      failed.push_back(std::move(it->second));
      it = receives_.erase(it);
    }
  }
  for (Half& half : failed) half.done.Set(why);
}

}  // namespace baton::rpc
