// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/collectives/nccl_backend.h"
#include "rpc/collectives/process_group.h"

// Runs the collectives and handles their failures.
namespace baton::rpc {
namespace {

using State = FlightRecord::State;

// How long members may take to report their records; those that do not answer
// in time are named in the error.
constexpr std::chrono::milliseconds kComparison{500};
constexpr std::chrono::milliseconds kNotice{2000};
// How long the cluster may take to report the death of a worker.
constexpr std::chrono::milliseconds kNews{1000};

// A line for each member: whoever reads the log of one has all records.
void LogFlights(const std::string& call,
                const std::vector<MemberFlight>& flights) {
  for (const MemberFlight& flight : flights) {
    std::vector<std::string> records;
    for (const FlightRecord& record :
         flight.records.value_or(std::vector<FlightRecord>()))
      records.push_back(record.ToString());
    LogWarning(call, ": records of ", flight.member, ": ",
               flight.records.has_value() ? absl::StrJoin(records, "; ")
                                          : "it did not answer");
  }
}

}  // namespace

Future<void> ProcessGroup::Begin(CollectiveBackend& backend,
                                 const CollectiveWork& work) {
  try {
    if (work.out.defined()) work.out.PrepareWrite();
    for (const Tensor& each : work.several) each.PrepareWrite();
    Future<void> ended = backend.Run(work);
    if (work.out.defined()) work.out.BumpVersion();
    for (const Tensor& each : work.several) each.BumpVersion();
    return ended;
  } catch (...) {
    return ReadyFuture<void>(StatusFromCurrentException());
  }
}

// Earlier calls end by their own deadlines, so a call needs a timer only if it
// must end before one of them.
Timer::Id ProcessGroup::AlarmForLocked(const CollectiveWork& work,
                                       const Promise<void>& promise) {
  if (work.deadline >= latest_) {
    latest_ = work.deadline;
    return 0;
  }
  return agent_.timer().At(
      work.deadline, [weak = weak_from_this(), what = work.what,
                      sequence = work.sequence, promise] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->agent_.executor().Post([self, what, sequence, promise] {
          if (promise.future().ready()) return;  // it has ended meanwhile
          self->Fail(what, sequence,
                     absl::DeadlineExceededError(
                         "the calls before it have not ended in time"),
                     promise);
        });
      });
}

void ProcessGroup::Run(CollectiveBackend& backend, const CollectiveWork& work,
                       const Promise<void>& promise) {
  absl::Status broken;
  {
    MutexLock lock(mutex_);
    if (broken_.ok() && failing_) {
      waiting_.push_back(promise);
      return;
    }
    broken = broken_;
  }
  if (!broken.ok()) {
    recorder_.Set(work.sequence, State::kFailed);
    promise.Set(broken);
    return;
  }
  recorder_.Set(work.sequence, State::kRunning);
  // The barrier runs on the CPU, so it waits here for the GPU's earlier work.
  absl::Status before;
  if (work.what.kind == CollectiveKind::kBarrier && gpu_ != nullptr)
    before = gpu_->AwaitEnd(work.deadline);
  Future<void> ended = ReadyFuture<void>(before);
  if (before.ok()) {
    // Work on a GPU has its own rows in a trace.
    std::optional<TraceSpan> span;
    if (backend.waits() && agent_.tracer()->on()) {
      span.emplace(*agent_.tracer(),
                   absl::StrCat("collectives of ", options_.name),
                   [&] { return work.what.ToString(); });
    }
    ended = Begin(backend, work);
  }
  ended.OnReady([self = shared_from_this(), what = work.what,
                 sequence = work.sequence,
                 promise](const absl::Status& status) {
    self->recorder_.Set(sequence, status.ok() ? State::kDone : State::kFailed);
    if (status.ok()) {
      promise.Set(status);
    } else {
      self->Fail(what, sequence, status, promise);
    }
  });
}

void ProcessGroup::Fail(const Collective& what, uint64_t sequence,
                        const absl::Status& status,
                        const Promise<void>& promise) {
  absl::Status broken;
  {
    MutexLock lock(mutex_);
    broken = broken_;
    failing_ = true;
  }
  if (!broken.ok()) {
    promise.Set(broken);
    return;
  }
  const std::string call =
      absl::StrCat(what.ToString(), " (#", sequence, " of group ",
                   options_.name, ") at ", NameOfRank(rank_));
  const auto end = [self = shared_from_this(), promise](absl::Status why) {
    self->Abort(why);
    promise.Set(self->status());
  };
  if (absl::IsDeadlineExceeded(status) || absl::IsFailedPrecondition(status)) {
    Compare([end, what, sequence, status,
             call](const std::vector<MemberFlight>& flights) {
      LogFlights(call, flights);
      std::string why = CompareFlights(what, sequence, flights);
      if (why.empty()) why = std::string(status.message());
      end(absl::Status(status.code(), absl::StrCat(call, ": ", why)));
    });
    return;
  }
  const absl::Status why = Annotate(status, call);
  if (!absl::IsUnavailable(status) || gpu_ == nullptr) return end(why);
  // NCCL does not say which member is lost. The cluster soon reports it, and
  // Break then fails all waiting promises with that reason.
  {
    MutexLock lock(mutex_);
    broken = broken_;
    if (broken.ok()) waiting_.push_back(promise);
  }
  if (!broken.ok()) {
    promise.Set(broken);
    return;
  }
  agent_.timer().After(kNews, [self = shared_from_this(), why] {
    self->agent_.executor().Post([self, why] { self->Abort(why); });
  });
}

void ProcessGroup::Compare(
    std::function<void(std::vector<MemberFlight>)> then) {
  struct Answers {
    Mutex mutex;
    size_t missing ABSL_GUARDED_BY(mutex);
    std::vector<MemberFlight> flights ABSL_GUARDED_BY(mutex);
  };
  const auto answers = std::make_shared<Answers>();
  {
    MutexLock lock(answers->mutex);
    answers->missing = members_.size();
    for (int i = 0; i < size(); ++i)
      answers->flights.push_back({NameOfRank(i), std::nullopt});
    answers->flights[static_cast<size_t>(rank_)].records = records();
  }
  const auto got =
      [answers, then = std::move(then)](
          size_t i, const absl::StatusOr<std::vector<FlightRecord>>& flight) {
        std::vector<MemberFlight> flights;
        {
          MutexLock lock(answers->mutex);
          if (flight.ok()) answers->flights[i].records = *flight;
          if (--answers->missing > 0) return;
          flights = answers->flights;
        }
        then(std::move(flights));
      };
  for (size_t i = 0; i < members_.size(); ++i) {
    if (static_cast<int>(i) == rank_) {
      got(i, records());
      continue;
    }
    agent_
        .Async<&collective_calls::FlightOf>(
            members_[i], CallOptions{.timeout = kComparison}, tickets_[i])
        .OnReady([got, i](const auto& flight) { got(i, flight); });
  }
}

std::vector<FlightRecord> ProcessGroup::records() const {
  std::vector<FlightRecord> records = recorder_.Records();
  for (FlightRecord& each : passed_.Records())
    records.push_back(std::move(each));
  return records;
}

Future<void> ProcessGroup::Watch(Future<void> done, const Collective& what,
                                 const CollectiveOptions& options) {
  Promise<void> promise;
  const uint64_t number = passed_.Begin(what);
  passed_.Set(number, State::kRunning);
  const std::string call = absl::StrCat(
      what.kind == CollectiveKind::kSend ? "send to " : "receive from ",
      NameOfRank(what.root), ", tag ", what.tag);
  const auto fail = [weak = weak_from_this(), promise, number,
                     call](const absl::Status& status) {
    if (const auto self = weak.lock()) {
      self->passed_.Set(number, State::kFailed);
      self->Abort(Annotate(status, call));
    }
    promise.Set(Annotate(status, call));
  };
  const Timer::Id alarm =
      agent_.timer().At(DeadlineOf(options), [fail, weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->agent_.executor().Post([fail] {
          fail(absl::DeadlineExceededError("nobody met it in time"));
        });
      });
  done.OnReady([promise, fail, alarm, number,
                self = shared_from_this()](const absl::Status& status) {
    self->agent_.timer().Cancel(alarm);
    if (status.ok() || absl::IsInvalidArgument(status)) {
      self->passed_.Set(number, status.ok() ? State::kDone : State::kFailed);
      promise.Set(status);
    } else {
      fail(status);
    }
  });
  return promise.future();
}

absl::Status ProcessGroup::status() const {
  MutexLock lock(mutex_);
  return broken_;
}

bool ProcessGroup::Break(const absl::Status& why) {
  std::vector<Promise<void>> waiting;
  NcclBackend* gpu = nullptr;
  {
    MutexLock lock(mutex_);
    if (!opened_ || !broken_.ok()) return false;
    broken_ = why;
    waiting.swap(waiting_);
    gpu = open_gpu_;
  }
  LogInfo("group ", options_.name, " is broken: ", why.ToString());
  if (gpu != nullptr) gpu->Abort(why);
  backend_->Abort(why);
  mailbox_.Fail(why);
  for (const auto& promise : waiting) promise.Set(why);
  return true;
}

void ProcessGroup::Abort(const absl::Status& why) {
  if (!Break(why)) return;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (static_cast<int>(i) == rank_) continue;
    // A member that this call does not reach detects the failure by itself.
    agent_
        .Async<&collective_calls::BreakGroup>(
            members_[i], CallOptions{.timeout = kNotice}, tickets_[i], why)
        .OnReady([](const absl::Status&) {});
  }
}

void ProcessGroup::OnBroken(const absl::Status& why) { Break(why); }

void ProcessGroup::OnMember(const MemberEvent& event) {
  using EventKind = MemberEvent::Kind;
  NcclBackend* gpu = nullptr;
  {
    MutexLock lock(mutex_);
    if (!opened_) return;  // Open checks for lost members
    gpu = open_gpu_;
  }
  if (event.kind == EventKind::kJoined) return;
  for (int rank = 0; rank < size(); ++rank) {
    const WorkerInfo& member = members_[static_cast<size_t>(rank)];
    if (rank == rank_ || member.name != event.worker.name ||
        member.incarnation != event.worker.incarnation)
      continue;
    const bool left = event.kind == EventKind::kLeft;
    const absl::Status why = absl::UnavailableError(absl::StrCat(
        NameOfRank(rank), " of group ", options_.name,
        left ? " has left" : " is lost", ": ", event.cause.message()));
    if (!left) return Abort(why);
    backend_->Leave(rank, why);
    if (gpu != nullptr) gpu->Leave(rank, why);
    mailbox_.FailFrom(tickets_[static_cast<size_t>(rank)], why);
  }
}

}  // namespace baton::rpc
