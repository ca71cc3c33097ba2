// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/graph.h"
#include "core/status.h"
#include "rpc/collectives/process_group.h"

// The collectives as calls: checks their tensors and queues them.
namespace baton::rpc {
namespace {

using Kind = CollectiveKind;

bool IsDense(const Tensor& tensor) {
  return tensor.IsContiguous() ||
         tensor.IsContiguous(MemoryFormat::kChannelsLast);
}

Collective Describe(Kind kind, const Tensor& tensor, int root = -1,
                    ReduceOp op = ReduceOp::kSum) {
  Collective what{.kind = kind, .op = op, .root = root};
  if (!tensor.defined()) return what;
  what.dtype = tensor.dtype();
  what.count = tensor.numel();
  what.format = tensor.SuggestFormat();
  return what;
}

// Refuses recording, for calls that the host makes.
absl::Status CheckNotRecorded(absl::string_view call) {
  if (!Graph::IsRecording()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      call, ": the host does this, so a replay would not repeat it; only ",
      "collectives of GPUs can be recorded"));
}

Tensor FirstOf(const std::vector<Tensor>& tensors) {
  return tensors.empty() ? Tensor() : tensors.front();
}

// Returns how many times `count` elements a member's input (`gives`) or output
// has.
int64_t Times(const Collective& what, bool gives, int size) {
  switch (what.kind) {
    case Kind::kAllGather:
    case Kind::kGather:
      return gives ? 1 : size;
    case Kind::kReduceScatter:
    case Kind::kScatter:
      return gives ? size : 1;
    default:
      return 1;
  }
}

}  // namespace

Future<void> ProcessGroup::AllReduce(const Tensor& tensor, ReduceOp op,
                                     const CollectiveOptions& options) {
  return Post(Describe(Kind::kAllReduce, tensor, -1, op), tensor, tensor,
              options);
}

Future<void> ProcessGroup::Broadcast(const Tensor& tensor, int root,
                                     const CollectiveOptions& options) {
  return Post(Describe(Kind::kBroadcast, tensor, root), tensor, tensor,
              options);
}

Future<void> ProcessGroup::AllReduceMany(const std::vector<Tensor>& tensors,
                                         ReduceOp op,
                                         const CollectiveOptions& options) {
  return PostMany(Describe(Kind::kAllReduce, FirstOf(tensors), -1, op), tensors,
                  options);
}

Future<void> ProcessGroup::BroadcastMany(const std::vector<Tensor>& tensors,
                                         int root,
                                         const CollectiveOptions& options) {
  return PostMany(Describe(Kind::kBroadcast, FirstOf(tensors), root), tensors,
                  options);
}

Future<void> ProcessGroup::Reduce(const Tensor& tensor, int root, ReduceOp op,
                                  const CollectiveOptions& options) {
  return Post(Describe(Kind::kReduce, tensor, root, op), tensor,
              rank_ == root ? tensor : Tensor(), options);
}

Future<void> ProcessGroup::AllGather(const Tensor& all, const Tensor& one,
                                     const CollectiveOptions& options) {
  return Post(Describe(Kind::kAllGather, one), one, all, options);
}

Future<void> ProcessGroup::ReduceScatter(const Tensor& one, const Tensor& all,
                                         ReduceOp op,
                                         const CollectiveOptions& options) {
  return Post(Describe(Kind::kReduceScatter, one, -1, op), all, one, options);
}

Future<void> ProcessGroup::Gather(const Tensor& all, const Tensor& one,
                                  int root, const CollectiveOptions& options) {
  return Post(Describe(Kind::kGather, one, root), one,
              rank_ == root ? all : Tensor(), options);
}

Future<void> ProcessGroup::Scatter(const Tensor& one, const Tensor& all,
                                   int root, const CollectiveOptions& options) {
  return Post(Describe(Kind::kScatter, one, root),
              rank_ == root ? all : Tensor(), one, options);
}

Future<void> ProcessGroup::AllToAll(const Tensor& out, const Tensor& in,
                                    const CollectiveOptions& options) {
  Collective what = Describe(Kind::kAllToAll, in);
  if (what.count % size() != 0) {
    return ReadyFuture<void>(absl::InvalidArgumentError(absl::StrCat(
        what.ToString(), " does not fall into ", size(), " parts")));
  }
  what.count /= size();
  return Post(what, in, out, options);
}

Future<void> ProcessGroup::Barrier(const CollectiveOptions& options) {
  return Post(Collective{.kind = Kind::kBarrier}, {}, {}, options);
}

ProcessGroup::Clock::time_point ProcessGroup::DeadlineOf(
    const CollectiveOptions& options) const {
  const auto now = Clock::now();
  const auto timeout = options.timeout.value_or(options_.timeout);
  return timeout > std::chrono::hours(24 * 365) ? Clock::time_point::max()
                                                : now + timeout;
}

absl::Status ProcessGroup::CheckTensors(const Collective& what,
                                        const Tensor& in,
                                        const Tensor& out) const {
  const auto wrong = [&](const auto&... parts) {
    return absl::InvalidArgumentError(
        absl::StrCat(what.ToString(), ": ", parts...));
  };
  if (what.kind == Kind::kBarrier) return absl::OkStatus();
  if (what.root < -1 || what.root >= size())
    return wrong("the group has ", size(), " members");
  if (what.op == ReduceOp::kMean && !IsFloating(what.dtype))
    return wrong("a mean is of floating elements");
  const bool at_root = what.root < 0 || what.root == rank_;
  const bool all_to_all = what.kind == Kind::kAllToAll;
  for (const bool gives : {true, false}) {
    const Tensor& tensor = gives ? in : out;
    const bool needed =
        at_root || what.kind == Kind::kBroadcast ||
        (gives ? what.kind != Kind::kScatter : what.kind == Kind::kScatter);
    if (!tensor.defined()) {
      if (needed) return wrong("a tensor is undefined");
      continue;
    }
    const int64_t times = all_to_all ? size() : Times(what, gives, size());
    if (tensor.numel() != what.count * times)
      return wrong("a tensor of ", what.count * times,
                   " elements was expected, not ", tensor.numel());
    if (tensor.dtype() != what.dtype || !IsDense(tensor))
      return wrong("tensors must be dense and of one dtype");
    if (const absl::Status taken = Takes(tensor.device()); !taken.ok())
      return wrong(taken.message());
    if (in.defined() && tensor.device() != in.device())
      return wrong("tensors must be of one device");
  }
  if (all_to_all && in.storage() == out.storage())
    return wrong("what is given and what is got must not share memory");
  return absl::OkStatus();
}

// Each tensor must pass the checks of a single call, and all must have one
// dtype and device.
Future<void> ProcessGroup::PostMany(Collective what,
                                    const std::vector<Tensor>& tensors,
                                    const CollectiveOptions& options) {
  if (tensors.empty()) return ReadyFuture<void>(status());
  for (const Tensor& tensor : tensors) {
    what.count = tensor.defined() ? tensor.numel() : 0;
    absl::Status checked = CheckTensors(what, tensor, tensor);
    if (checked.ok() && tensor.device() != tensors.front().device()) {
      checked = absl::InvalidArgumentError(absl::StrCat(
          what.ToString(), ": tensors that travel as one must be of one ",
          "device, not ", tensor.device().ToString(), " beside ",
          tensors.front().device().ToString()));
    }
    if (!checked.ok()) return ReadyFuture<void>(checked);
    what.sizes.push_back(what.count);
  }
  what.count =
      std::accumulate(what.sizes.begin(), what.sizes.end(), int64_t{0});
  return Post({.what = std::move(what), .several = tensors}, options);
}

Future<void> ProcessGroup::Post(Collective what, const Tensor& in,
                                const Tensor& out,
                                const CollectiveOptions& options) {
  const absl::Status checked = CheckTensors(what, in, out);
  if (!checked.ok()) return ReadyFuture<void>(checked);
  return Post({.what = std::move(what), .in = in, .out = out}, options);
}

Future<void> ProcessGroup::Post(CollectiveWork work,
                                const CollectiveOptions& options) {
  CollectiveBackend& backend =
      BackendFor(!work.several.empty() ? work.several.front()
                 : work.in.defined()   ? work.in
                                       : work.out);
  if (backend.waits()) {
    const absl::Status checked = CheckNotRecorded(work.what.ToString());
    if (!checked.ok()) return ReadyFuture<void>(checked);
  }
  Promise<void> promise;
  MutexLock lock(post_mutex_);
  work.sequence = recorder_.Begin(work.what);
  work.deadline = DeadlineOf(options);
  if (!backend.waits()) {
    NoteRecordingLocked();
    Run(backend, work, promise);
    return promise.future();
  }
  const Timer::Id alarm = AlarmForLocked(work, promise);
  thread_.Post([self = shared_from_this(), &backend, work = std::move(work),
                promise, alarm] {
    // From here on the backend enforces the deadline.
    if (alarm != 0) self->agent_.timer().Cancel(alarm);
    self->Run(backend, work, promise);
  });
  return promise.future();
}

Future<void> ProcessGroup::Send(const Tensor& tensor, int to, int tag,
                                const CollectiveOptions& options) {
  if (to < 0 || to >= size() || to == rank_ || !tensor.defined()) {
    return ReadyFuture<void>(absl::InvalidArgumentError(absl::StrCat(
        "send: expected a tensor and another member's rank, got rank ", to)));
  }
  if (const absl::Status checked = CheckNotRecorded("send"); !checked.ok())
    return ReadyFuture<void>(checked);
  const auto peer = static_cast<size_t>(to);
  TaggedTensor sent{.from = ticket_, .tag = tag, .number = 0, .tensor = tensor};
  {
    MutexLock lock(mutex_);
    if (!broken_.ok()) return ReadyFuture<void>(broken_);
    sent.number = sent_[{to, tag}]++;
  }
  return Watch(agent_.Async<&collective_calls::TakeSent>(
                   members_[peer], CallOptions{.timeout = kNoLimit},
                   tickets_[peer], sent),
               {.kind = Kind::kSend,
                .dtype = tensor.dtype(),
                .count = tensor.numel(),
                .root = to,
                .tag = tag},
               options);
}

Future<void> ProcessGroup::Receive(const Tensor& into, int from, int tag,
                                   const CollectiveOptions& options) {
  if (from < 0 || from >= size() || from == rank_ || !into.defined()) {
    return ReadyFuture<void>(absl::InvalidArgumentError(absl::StrCat(
        "receive: expected a tensor and another member's rank, got rank ",
        from)));
  }
  if (const absl::Status checked = CheckNotRecorded("receive"); !checked.ok())
    return ReadyFuture<void>(checked);
  return Watch(mailbox_.Receive(tickets_[static_cast<size_t>(from)], tag, into),
               {.kind = Kind::kReceive,
                .dtype = into.dtype(),
                .count = into.numel(),
                .root = from,
                .tag = tag},
               options);
}

}  // namespace baton::rpc
