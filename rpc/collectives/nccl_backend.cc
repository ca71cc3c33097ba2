// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/nccl_backend.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "core/graph.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

using Clock = std::chrono::steady_clock;

// The shortest time between two polls: each query takes a lock of CUDA's that
// kernel launches need.
constexpr std::chrono::microseconds kPace{20};

// Work that a member had enqueued before it left ends well within this time.
constexpr std::chrono::seconds kLeavePatience{1};

constexpr char kLate[] = "the GPU has not ended it in time";

cuda::NcclReduction ReductionOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return cuda::NcclReduction::kSum;
    case ReduceOp::kMean:
      return cuda::NcclReduction::kMean;
    case ReduceOp::kMin:
      return cuda::NcclReduction::kMin;
    case ReduceOp::kMax:
      return cuda::NcclReduction::kMax;
    case ReduceOp::kProduct:
      return cuda::NcclReduction::kProduct;
  }
  return cuda::NcclReduction::kSum;
}

// Returns the elements as a vector, in memory order.
Tensor Elements(const Tensor& dense) {
  return Tensor::FromStorage(dense.storage(), dense.dtype(), {dense.numel()},
                             {1}, dense.offset());
}

std::vector<int> RanksBelow(int members) {
  std::vector<int> ranks(static_cast<size_t>(members));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

// Tracks the work under way on the GPU, in the order in which it was enqueued.
// Ask records one event behind all work added since its last call, so that
// adding is cheap. The driver may block a query until an abort, so queries are
// made without the lock. Thread-safe.
class NcclBackend::Watch {
 public:
  explicit Watch(std::shared_ptr<cuda::NcclGroup> group)
      : group_(std::move(group)) {}

  // Adds work that was just enqueued on `stream`. Returns true if the caller
  // must start calling Ask.
  bool Add(const Stream& stream, Clock::time_point deadline,
           const Promise<void>& promise) {
    MutexLock lock(mutex_);
    if (!failure_.ok()) {
      promise.Set(failure_);  // its future has not been handed out
      return false;
    }
    added_.push_back({stream, Clock::now(), deadline, nullptr});
    promises_.push_back(promise);
    last_ = promise.future();
    return !std::exchange(asked_, true);
  }
  // Completes the promises of work that has ended. Returns true when nothing is
  // left to poll for. Called by one thread at a time.
  bool Ask();
  // Makes all later work fail with `why`. Returns the waiting promises, which
  // the caller must fail.
  std::deque<Promise<void>> Refuse(const absl::Status& why) {
    MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = why;
    return std::exchange(promises_, {});
  }
  void FailSoon(const absl::Status& why) {
    MutexLock lock(mutex_);
    if (!leave_.ok()) return;
    leave_ = why;
    left_ = Clock::now();
  }
  // Returns why no more work may be enqueued; OK if it may.
  absl::Status status() const {
    MutexLock lock(mutex_);
    return failure_;
  }
  Future<void> last() const {
    MutexLock lock(mutex_);
    return last_;
  }

 private:
  // A point in the work of a stream.
  class Mark {
   public:
    explicit Mark(cuda::NcclGroup::Query query) : query_(std::move(query)) {}
    absl::StatusOr<bool> HasEnded() {
      if (ended_) return true;
      ASSIGN_OR_RETURN(ended_, query_());
      return ended_;
    }

   private:
    cuda::NcclGroup::Query query_;
    bool ended_ = false;
  };
  struct Waiting {
    Stream stream;
    Clock::time_point given;
    Clock::time_point deadline;  // in waiting_: the earliest from here on
    std::shared_ptr<Mark> mark;  // null until MarkAll; may be shared
  };

  void TakeAdded();
  void MarkAll();
  // Removes the work that has ended from the front of waiting_ and counts it.
  absl::Status TakeEnded(size_t& ended);
  absl::Status WhyLate(const Waiting& waiting) const;

  const std::shared_ptr<cuda::NcclGroup> group_;
  // Only Ask uses these.
  Clock::time_point last_look_{};
  std::deque<Waiting> waiting_;
  mutable Mutex mutex_;
  std::vector<Waiting> added_ ABSL_GUARDED_BY(mutex_);  // moved to waiting_
  // The promises of all work in waiting_ and added_, in order.
  std::deque<Promise<void>> promises_ ABSL_GUARDED_BY(mutex_);
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  absl::Status leave_ ABSL_GUARDED_BY(mutex_);  // why a member left
  Clock::time_point left_ ABSL_GUARDED_BY(mutex_);
  Future<void> last_ ABSL_GUARDED_BY(mutex_) =
      ReadyFuture<void>(absl::OkStatus());
};

bool NcclBackend::Watch::Ask() {
  const auto now = Clock::now();
  if (now - last_look_ < kPace) return false;
  last_look_ = now;
  TakeAdded();
  size_t count = 0;
  const absl::Status failure = CatchErrors([&] {
    MarkAll();
    return TakeEnded(count);
  });
  std::vector<Promise<void>> ended;
  bool idle = false;
  {
    MutexLock lock(mutex_);
    if (failure_.ok()) {
      const auto end = promises_.begin() + static_cast<ptrdiff_t>(count);
      ended.assign(promises_.begin(), end);
      promises_.erase(promises_.begin(), end);
    }
    idle =
        !failure.ok() || !failure_.ok() || (waiting_.empty() && added_.empty());
    if (idle) asked_ = false;
  }
  for (const auto& promise : ended) promise.Set(absl::OkStatus());
  if (failure.ok()) return idle;
  for (const auto& promise : Refuse(failure)) promise.Set(failure);
  return true;
}

void NcclBackend::Watch::TakeAdded() {
  MutexLock lock(mutex_);
  for (Waiting& each : added_) {
    // Work must end before what comes after it can.
    for (auto it = waiting_.rbegin();
         it != waiting_.rend() && it->deadline > each.deadline; ++it)
      it->deadline = each.deadline;
    waiting_.push_back(std::move(each));
  }
  added_.clear();
}

void NcclBackend::Watch::MarkAll() {
  std::vector<std::pair<Stream, std::shared_ptr<Mark>>> marks;
  for (Waiting& each : waiting_) {
    if (each.mark != nullptr) continue;
    for (const auto& [stream, mark] : marks)
      if (stream == each.stream) each.mark = mark;
    if (each.mark != nullptr) continue;
    each.mark = std::make_shared<Mark>(group_->WhenEnded(each.stream));
    marks.emplace_back(each.stream, each.mark);
  }
}

absl::Status NcclBackend::Watch::TakeEnded(size_t& ended) {
  while (!waiting_.empty()) {
    ASSIGN_OR_RETURN(const bool has, waiting_.front().mark->HasEnded());
    if (!has) return WhyLate(waiting_.front());
    ++ended;
    waiting_.pop_front();
  }
  return absl::OkStatus();
}

absl::Status NcclBackend::Watch::WhyLate(const Waiting& waiting) const {
  const auto now = Clock::now();
  MutexLock lock(mutex_);
  if (!leave_.ok() && now >= std::max(left_, waiting.given) + kLeavePatience)
    return leave_;
  if (now >= waiting.deadline) return absl::DeadlineExceededError(kLate);
  return absl::OkStatus();
}

NcclBackend::NcclBackend(Device device, int rank, int members,
                         std::shared_ptr<cuda::NcclGroup> group)
    : device_(device),
      rank_(rank),
      all_(RanksBelow(members)),
      group_(std::move(group)),
      watch_(std::make_shared<Watch>(group_)) {}

NcclBackend::~NcclBackend() {
  Abort(absl::CancelledError("the group was dropped"));
}

Stream NcclBackend::stream() const {
  return group_ == nullptr ? CurrentStream(device_) : group_->stream();
}

absl::Status NcclBackend::AwaitEnd(Clock::time_point deadline) const {
  const Future<void> last = watch_->last();
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  const absl::Status status =
      last.Await(std::max(left, std::chrono::milliseconds(0)));
  if (!last.ready()) return absl::DeadlineExceededError(kLate);
  return status;
}

Future<void> NcclBackend::Run(const CollectiveWork& work) {
  absl::Status status = watch_->status();
  if (status.ok()) status = group_ ? Give(work) : GiveAlone(work);
  if (!status.ok() || group_ == nullptr || Graph::IsRecording())
    return ReadyFuture<void>(status);
  const bool replay = work.what.kind == CollectiveKind::kReplay;
  const Promise<void> promise;
  if (watch_->Add(replay ? CurrentStream(device_) : stream(), work.deadline,
                  promise))
    poller_.Add([watch = watch_] { return watch->Ask(); });
  return promise.future();
}

absl::Status NcclBackend::Give(const CollectiveWork& work) {
  const Collective& what = work.what;
  const cuda::NcclReduction reduction = ReductionOf(what.op);
  const std::vector<int> root = {what.root}, nobody;
  const bool at_root = what.root == rank_;
  switch (what.kind) {
    case CollectiveKind::kAllReduce:
      if (!work.several.empty())
        return group_->AllReduceMany(work.several, reduction);
      return group_->AllReduce(work.out, work.in, reduction);
    case CollectiveKind::kBroadcast:
      if (!work.several.empty())
        return group_->BroadcastMany(work.several, what.root);
      return group_->Broadcast(work.out, work.in, what.root);
    case CollectiveKind::kReduce:
      return group_->Reduce(work.out, work.in, reduction, what.root);
    case CollectiveKind::kAllGather:
      return group_->AllGather(work.out, work.in);
    case CollectiveKind::kReduceScatter:
      return group_->ReduceScatter(work.out, work.in, reduction);
    case CollectiveKind::kGather:
      return group_->Exchange(work.out, work.in, what.count, root,
                              at_root ? all_ : nobody);
    case CollectiveKind::kScatter:
      return group_->Exchange(work.out, work.in, what.count,
                              at_root ? all_ : nobody, root);
    case CollectiveKind::kAllToAll:
      return group_->Exchange(work.out, work.in, what.count, all_, all_);
    case CollectiveKind::kReplay:  // enqueued by the graph
      return absl::OkStatus();
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
    case CollectiveKind::kBarrier:
      break;
  }
  return absl::UnimplementedError("GPUs have no such collective");
}

// For a group with one member: copies its input to its output.
absl::Status NcclBackend::GiveAlone(const CollectiveWork& work) const {
  return CatchErrors([&] {
    if (!work.in.defined() || !work.out.defined()) return;
    const Tensor from = Elements(work.in), to = Elements(work.out);
    if (!SameView(from, to)) to.CopyFrom(from);
  });
}

void NcclBackend::Abort(const absl::Status& why) {
  const auto waiting = watch_->Refuse(why);
  // Aborts NCCL before waking waiters, because a waiter may make a call that
  // the driver blocks until the GPU is idle.
  if (group_ != nullptr) group_->Abort();
  for (const auto& promise : waiting) promise.Set(why);
}

void NcclBackend::Leave(int /*rank*/, const absl::Status& why) {
  watch_->FailSoon(why);
}

}  // namespace baton::rpc
