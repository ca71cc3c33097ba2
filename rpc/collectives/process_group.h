// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/agent.h"
#include "rpc/collectives/backend.h"
#include "rpc/collectives/collectives.h"
#include "rpc/collectives/slot_queues.h"

namespace baton::rpc {

class NcclBackend;

struct GroupOptions {
  std::string name = "world";  // the same of all members; for people, too
  // Workers by name, in the order of their ranks; empty: all of the cluster
  // but spares (rpc/spares.h).
  std::vector<std::string> members{};
  // For all to come, and of collectives that name none.
  std::chrono::milliseconds timeout{60'000};
  // Members of one machine pass elements through memory that they share.
  bool shared_memory = true;
  // Where each has declared a GPU (rpc/compute.h) of its own, what lies there
  // goes by NCCL. The same of all.
  bool gpus = true;
};

struct CollectiveOptions {
  std::optional<std::chrono::milliseconds> timeout{};  // unset: the group's
};

// Workers that do things together: each calls the same collectives in the same
// order, and each call ends when this member's part is done.
//
//   ASSIGN_OR_RETURN(auto group, rpc::ProcessGroup::Make(agent).Await());
//   RETURN_IF_ERROR(group->AllReduce(gradient, rpc::ReduceOp::kMean).Await());
//
// Tensors are dense, of the same number of elements, dtype and memory order at
// all members, and are not to be touched until the call has ended; results are
// the same bit for bit at all. Calls of one member run one after the other, on
// a thread of the group; Send and Receive run beside them, in the order of each
// pair and tag.
//
// Tensors of GPUs go by NCCL, one after the other, beside those of the CPU.
// Such a call is given to a stream of its own, behind all earlier work on its
// tensors, before it returns, and what the GPU is given for them next comes
// after it: so nobody needs to wait for its end but to know that it went well.
// The first call of a kind may wait until the others have made theirs. A
// recording (core/graph.h) holds such calls, and each replay does them again,
// with the group's deadline; other calls are not recorded.
//
// Errors: InvalidArgument for a call that cannot be, which changes nothing. Any
// other error breaks the group, for all of its members and for good, within two
// seconds of a worker's death: Unavailable names a worker that is lost or has
// left; DeadlineExceeded and FailedPrecondition say which member was not there,
// or did something else, by the record of what each has called. Results of
// calls that fail may be anything. Those that are left go on with Shrink.
//
// A group must not outlive its agent. Thread-safe.
class ProcessGroup final : public std::enable_shared_from_this<ProcessGroup> {
 public:
  using Made = Future<std::shared_ptr<ProcessGroup>>;
  // Once all members have called it.
  static Made Make(Agent& agent, GroupOptions options = {});
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<WorkerInfo>& members() const { return members_; }
  // How elements come from a member: "shared memory", "messages", "self".
  std::string PathFrom(int rank) const;
  // OK where it may be given tensors of this device; InvalidArgument says why
  // not.
  absl::Status Takes(Device device) const;
  // The stream that carries what is done with this GPU's tensors.
  Stream StreamOf(Device device) const;

  // A group of some of its members, who all call this.
  Made Sub(const std::string& name, const std::vector<int>& ranks);
  // Of those that are not lost, in the same order; all of them call it, and
  // this group is broken by it, if it was not.
  Made Shrink();

  // In place. kMean is for floating dtypes.
  Future<void> AllReduce(const Tensor& tensor, ReduceOp op = ReduceOp::kSum,
                         const CollectiveOptions& options = {});
  // The root's elements to all, in place.
  Future<void> Broadcast(const Tensor& tensor, int root = 0,
                         const CollectiveOptions& options = {});
  // The same of several tensors of one dtype and device, which travel as one:
  // for little a single message on the CPU, and one launch of NCCL's. All have
  // as many, of the same sizes.
  Future<void> AllReduceMany(const std::vector<Tensor>& tensors,
                             ReduceOp op = ReduceOp::kSum,
                             const CollectiveOptions& options = {});
  Future<void> BroadcastMany(const std::vector<Tensor>& tensors, int root = 0,
                             const CollectiveOptions& options = {});
  // In place at the root; the others' stay as they are.
  Future<void> Reduce(const Tensor& tensor, int root = 0,
                      ReduceOp op = ReduceOp::kSum,
                      const CollectiveOptions& options = {});
  // `all` has size() times the elements of `one`, that of rank 0 first; those
  // of all are what is given or got of each. At other members than the root the
  // tensor of all may be undefined.
  Future<void> AllGather(const Tensor& all, const Tensor& one,
                         const CollectiveOptions& options = {});
  Future<void> ReduceScatter(const Tensor& one, const Tensor& all,
                             ReduceOp op = ReduceOp::kSum,
                             const CollectiveOptions& options = {});
  Future<void> Gather(const Tensor& all, const Tensor& one, int root = 0,
                      const CollectiveOptions& options = {});
  Future<void> Scatter(const Tensor& one, const Tensor& all, int root = 0,
                       const CollectiveOptions& options = {});
  // Part i of `in` goes to rank i, as part rank() of its `out`.
  Future<void> AllToAll(const Tensor& out, const Tensor& in,
                        const CollectiveOptions& options = {});
  // When all have come, and what this member's GPU was given has ended.
  Future<void> Barrier(const CollectiveOptions& options = {});
  // Of any strides. A Send ends when it has been received.
  Future<void> Send(const Tensor& tensor, int to, int tag = 0,
                    const CollectiveOptions& options = {});
  Future<void> Receive(const Tensor& into, int from, int tag = 0,
                       const CollectiveOptions& options = {});

  // Why it is broken; OK while it is not.
  absl::Status status() const;
  // Breaks it at all members.
  void Abort(const absl::Status& why);
  // What this member has called lately.
  std::vector<FlightRecord> records() const { return recorder_.Records(); }

  // From others: what a part of the group is told.
  Future<void> TakeChunk(const ChunkMessage& chunk);
  Future<void> TakeLetter(const Letter& letter);
  void OnBroken(const absl::Status& why);
  void OnMember(const MemberEvent& event);

 private:
  using Clock = std::chrono::steady_clock;
  struct Seating;
  ProcessGroup(Agent& agent, std::shared_ptr<Collectives> collectives,
               GroupOptions options, std::shared_ptr<FutexEvent> wakeup);

  static Made MakeSeated(Agent& agent, GroupOptions options, Seating seating);
  static Future<GroupRoster> Join(Agent& agent, Seating seating,
                                  GroupRequest request, size_t host);
  absl::StatusOr<GroupRequest> RequestFor(const Seating& seating);
  absl::Status Open(const GroupRequest& request, const GroupRoster& roster);
  SlotQueues::Ends EndsWith(const GroupHello& hello, int seat,
                            const GroupRequest& own, bool* shared);
  std::string NameOfRank(int rank) const;  // "rank 1 (bob)"
  // Once all are open: makes gpu_, or says in no_gpu_ why there is none.
  Made MeetGpus();
  absl::Status TryToMeetGpus();
  struct GpuCard;
  absl::StatusOr<std::vector<GpuCard>> ExchangeGpuCards();
  absl::Status CheckGpuCards(const std::vector<GpuCard>& cards) const;
  absl::Status JoinGpus(const std::string& id);

  CollectiveBackend& BackendFor(const Tensor& tensor) const;
  Future<void> Post(Collective what, const Tensor& in, const Tensor& out,
                    const CollectiveOptions& options);
  // With what, in, out and several.
  Future<void> Post(CollectiveWork work, const CollectiveOptions& options);
  Future<void> PostMany(Collective what, const std::vector<Tensor>& tensors,
                        const CollectiveOptions& options);
  Clock::time_point DeadlineOf(const CollectiveOptions& options) const;
  absl::Status CheckTensors(const Collective& what, const Tensor& in,
                            const Tensor& out) const;
  void Run(CollectiveBackend& backend, const CollectiveWork& work,
           const Promise<void>& promise);
  static Future<void> Begin(CollectiveBackend& backend,
                            const CollectiveWork& work);
  // Finds out what is wrong, breaks the group and tells the caller.
  void Fail(const Collective& what, uint64_t sequence,
            const absl::Status& status, const Promise<void>& promise);
  // A recording that has one more of these calls is replayed with the group.
  void NoteRecordingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(post_mutex_);
  void OnReplay(int64_t collectives);
  void Compare(std::function<void(std::vector<MemberFlight>)> then);
  // False where it is broken already.
  bool Break(const absl::Status& why);
  Future<void> Watch(Future<void> done, const std::string& what,
                     const CollectiveOptions& options);

  Agent& agent_;
  const std::shared_ptr<Collectives> collectives_;
  const GroupOptions options_;
  const std::shared_ptr<FutexEvent> wakeup_;
  const std::shared_ptr<MessageQueues> messages_;
  uint64_t ticket_ = 0;
  std::shared_ptr<SharedQueues> queues_;  // to this member; null: none

  // Set by Open, before anybody else has the group.
  int rank_ = -1;
  std::vector<WorkerInfo> members_;
  std::vector<uint64_t> tickets_;
  std::vector<std::string> paths_;
  std::unique_ptr<CollectiveBackend> backend_;
  // Set by MeetGpus, likewise.
  std::unique_ptr<NcclBackend> gpu_;  // null: why
  absl::Status no_gpu_;

  FlightRecorder recorder_;
  MemberMailbox mailbox_;
  Mutex post_mutex_;  // keeps numbers and queue in one order
  uint64_t recording_ ABSL_GUARDED_BY(post_mutex_) = 0;  // the last one
  // Calls in it, which its replays share.
  std::shared_ptr<int64_t> recorded_ ABSL_GUARDED_BY(post_mutex_);
  mutable Mutex mutex_;
  NcclBackend* open_gpu_ ABSL_GUARDED_BY(mutex_) = nullptr;  // gpu_
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;                // soon broken
  std::vector<Promise<void>> waiting_ ABSL_GUARDED_BY(mutex_);  // for why
  std::map<std::pair<int, int>, uint64_t> sent_ ABSL_GUARDED_BY(mutex_);
  ThreadPool thread_{1, "baton-group"};  // last: it uses the rest
};

}  // namespace baton::rpc
