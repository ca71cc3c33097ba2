// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "core/status.h"
#include "rpc/agent.h"
#include "rpc/rref.h"
#include "rpc/spares.h"

namespace baton::examples {

// Returns true for errors of a lost worker. One that is shutting down answers
// FailedPrecondition.
inline bool IsLoss(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         absl::IsFailedPrecondition(status);
}

// The workers' tasks, by name.
struct Crew {
  std::vector<std::string> servers, trainers;
};
// The first `servers` workers serve, and all others train, except the caller
// and spares. InvalidArgument, which names --servers, if none is left to train.
inline absl::StatusOr<Crew> CrewOf(const rpc::Agent& agent, int servers) {
  Crew crew;
  for (const rpc::WorkerInfo& worker : rpc::OthersButSpares(agent)) {
    (static_cast<int>(crew.servers.size()) < servers ? crew.servers
                                                     : crew.trainers)
        .push_back(worker.name);
  }
  if (!crew.trainers.empty()) return crew;
  return absl::InvalidArgumentError(
      absl::StrCat("--servers=", servers, " of ", crew.servers.size(),
                   " workers leaves none to train"));
}

// Returns InvalidArgument, which names --device or --dtype, if the caller or a
// worker has declared weights of another dtype than f32, or a GPU although the
// program cannot use any (`gpus` is false).
inline absl::Status CheckCompute(const std::vector<rpc::WorkerInfo>& workers,
                                 bool gpus) {
  for (const rpc::WorkerInfo& worker : workers) {
    const rpc::Compute& compute = worker.compute;
    if (compute.device.is_cuda() && !gpus) {
      return absl::InvalidArgumentError(
          absl::StrCat("--device=", compute.device.ToString(), " of ",
                       worker.name, ": this program computes on CPUs alone"));
    }
    if (compute.dtype != DType::kF32) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dtype of ", worker.name, ": this program's weights ",
                       "are fp32, not ", Name(compute.dtype)));
    }
  }
  return absl::OkStatus();
}
inline absl::Status CheckCompute(const rpc::Agent& agent, bool gpus) {
  std::vector<rpc::WorkerInfo> all = rpc::OthersButSpares(agent);
  all.push_back(agent.self());
  return CheckCompute(all, gpus);
}

// Returns nullopt if the called worker is lost.
template <typename R>
Future<std::optional<R>> UnlessLost(const Future<R>& call) {
  const Promise<std::optional<R>> promise;
  call.OnReady([promise](const absl::StatusOr<R>& result) {
    if (result.ok()) {
      promise.Set(std::optional<R>(*result));
    } else if (IsLoss(result.status())) {
      promise.Set(std::optional<R>());
    } else {
      promise.Set(result.status());
    }
  });
  return promise.future();
}

// Keeps one T on each of several workers. Those of lost workers are dropped,
// and workers that join get one; Muster applies both. Must not outlive the
// agent. Confined to one thread.
template <typename T>
class Participants {
 public:
  using Make = std::function<Future<RRef<T>>(const std::string& worker)>;
  // Makes each by `make`, on at most `most` workers (0: on all), without the
  // agent's own worker and `others`.
  Participants(rpc::Agent& agent, Make make, int64_t most = 0,
               std::vector<std::string> others = {})
      : agent_(agent),
        make_(std::move(make)),
        most_(most),
        others_(std::move(others)) {
    others_.push_back(agent.self().name);
  }

  struct Present {
    rpc::WorkerInfo worker;
    RRef<T> rref;
  };
  enum class Wait { kForOne, kForAll };
  // Returns those that are made. kForAll waits for all of them; kForOne does so
  // only if none is made yet. Returns the first error of one that could not be
  // made, and Unavailable if there is none.
  absl::StatusOr<std::vector<Present>> Muster(Wait wait);

  // Makes call(rref, i) for all present at the same time. A result is nullopt
  // if its worker is lost meanwhile; any other error is returned.
  template <typename R>
  absl::StatusOr<std::vector<std::optional<R>>> CallAll(
      const std::vector<Present>& present,
      const std::function<Future<R>(const RRef<T>& rref, size_t i)>& call);

  // Counts a worker as lost during a call, and drops what is on it.
  void Drop(const rpc::WorkerInfo& worker, const absl::Status& why);

  int64_t lost() const { return lost_; }  // number, during calls so far
  const absl::Status& last_loss() const { return last_loss_; }

 private:
  struct Member {
    rpc::WorkerInfo worker;
    Future<RRef<T>> made;
  };

  bool Has(const rpc::WorkerInfo& worker) const {
    return std::any_of(members_.begin(), members_.end(), [&](const auto& m) {
      return m.worker.incarnation == worker.incarnation;
    });
  }
  void AskNewcomers();

  rpc::Agent& agent_;
  const Make make_;
  const int64_t most_;
  std::vector<std::string> others_;
  std::vector<Member> members_;
  int64_t lost_ = 0;
  absl::Status last_loss_;
};

template <typename T>
void Participants<T>::AskNewcomers() {
  for (const rpc::WorkerInfo& worker : agent_.workers()) {
    const auto other = std::find(others_.begin(), others_.end(), worker.name);
    if (other != others_.end() || Has(worker) || rpc::IsSpare(worker)) continue;
    if (most_ > 0 && static_cast<int64_t>(members_.size()) == most_) break;
    members_.push_back({.worker = worker, .made = make_(worker.name)});
  }
}

template <typename T>
auto Participants<T>::Muster(Wait wait)
    -> absl::StatusOr<std::vector<Present>> {
  AskNewcomers();
  const auto is_made = [](const Member& member) { return member.made.ready(); };
  if (wait == Wait::kForAll ||
      std::none_of(members_.begin(), members_.end(), is_made)) {
    for (const Member& member : members_)
      (void)member.made.Await(kNoLimit);  // --rpc_timeout ends it
  }
  std::vector<Present> present;
  absl::Status wrong;
  std::erase_if(members_, [&](const Member& member) {
    if (!is_made(member)) return false;
    const absl::StatusOr<RRef<T>> made = member.made.Await();
    if (made.ok()) {
      present.push_back({.worker = member.worker, .rref = *made});
    } else if (!IsLoss(made.status())) {
      wrong.Update(made.status());
    }
    return !made.ok();
  });
  RETURN_IF_ERROR(wrong);
  if (!present.empty()) return present;
  return absl::UnavailableError(
      "no worker is left to take part: give baton-run more --workers");
}

template <typename T>
void Participants<T>::Drop(const rpc::WorkerInfo& worker,
                           const absl::Status& why) {
  ++lost_;
  last_loss_ = why;
  std::erase_if(members_,
                [&](const Member& member) { return member.worker == worker; });
}

template <typename T>
template <typename R>
absl::StatusOr<std::vector<std::optional<R>>> Participants<T>::CallAll(
    const std::vector<Present>& present,
    const std::function<Future<R>(const RRef<T>& rref, size_t i)>& call) {
  std::vector<Future<R>> calls;
  for (size_t i = 0; i < present.size(); ++i)
    calls.push_back(call(present[i].rref, i));
  std::vector<std::optional<R>> given(present.size());
  absl::Status wrong;
  for (size_t i = 0; i < present.size(); ++i) {
    absl::StatusOr<R> result = calls[i].Await(kNoLimit);
    if (result.ok()) {
      given[i] = *std::move(result);
    } else if (IsLoss(result.status())) {
      Drop(present[i].worker, result.status());
    } else {
      wrong.Update(result.status());
    }
  }
  RETURN_IF_ERROR(wrong);
  return given;
}

}  // namespace baton::examples
