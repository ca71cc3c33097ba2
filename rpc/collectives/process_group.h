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
#include "core/timer.h"
#include "rpc/agent.h"
#include "rpc/collectives/backend.h"
#include "rpc/collectives/collectives.h"
#include "rpc/collectives/slot_queues.h"

namespace baton::rpc {

class NcclBackend;

struct GroupOptions {
  std::string name = "world";  // equal at all members; messages contain it
  // The names of the workers, in the order of their ranks; empty: all workers
  // of the cluster except spares (rpc/spares.h).
  std::vector<std::string> members{};
  // How long all members may take to come, and the default for collectives.
  std::chrono::milliseconds timeout{60'000};
  // Members on one machine exchange elements through shared memory.
  bool shared_memory = true;
  // If every member has declared its own GPU (rpc/worker.h), NCCL runs
  // collectives of tensors on these GPUs. Must be equal at all members.
  bool gpus = true;
};

struct CollectiveOptions {
  std::optional<std::chrono::milliseconds> timeout{};  // unset: the group's
};

// A group of workers that run collectives: each member calls the same
// collectives in the same order, and a call ends when this member's part is
// done.
//
//   ASSIGN_OR_RETURN(auto group, rpc::ProcessGroup::Make(agent).Await());
//   RETURN_IF_ERROR(group->AllReduce(gradient, rpc::ReduceOp::kMean).Await());
//
// Tensors must be dense, with the same number of elements, dtype and memory
// order at all members, and must not be touched until the call has ended.
// Results are bitwise equal at all members. The calls of one member run one
// after the other on a thread of the group. Send and Receive run concurrently
// with them, in order for each pair of members and tag.
//
// Calls with GPU tensors run by NCCL, one after the other, concurrently with
// those of the CPU. Before such a call returns, it is enqueued on a stream of
// the group, behind all earlier work on its tensors; later GPU work on these
// tensors comes after it. So a caller waits for the end of the call only to
// learn whether it succeeded. The first call of a kind may block until the
// others have made theirs. A graph that is being recorded (core/graph.h) holds
// such calls, and each replay repeats them, with the group's timeout. CPU
// collectives cannot be recorded.
//
// Errors: InvalidArgument for an invalid call, which changes nothing. Any other
// error breaks the group permanently for all of its members: Unavailable names
// a worker that has left or is lost, which is noticed within two seconds if its
// connections end, as they do with a process, and otherwise when its lease has
// passed; DeadlineExceeded and FailedPrecondition name, from the records of all
// members' calls, the member that was missing or called something else. A
// deadline also passes while a call waits for those before it. The results of
// failed calls are unspecified. The remaining members can go on with Shrink.
//
// A group must not outlive its agent. Thread-safe.
class ProcessGroup final : public std::enable_shared_from_this<ProcessGroup> {
 public:
  using Made = Future<std::shared_ptr<ProcessGroup>>;
  // Makes a group. Done once all members have called it.
  static Made Make(Agent& agent, GroupOptions options = {});
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const Agent& agent() const { return agent_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<WorkerInfo>& members() const { return members_; }
  // Returns the path of elements from a member: "shared memory", "messages" or
  // "self".
  std::string PathFrom(int rank) const;
  // Returns OK if tensors on this device can be used; InvalidArgument says why
  // not.
  absl::Status Takes(Device device) const;
  // Returns the stream on which collectives of this GPU's tensors run.
  Stream StreamOf(Device device) const;

  // Makes a group of some of the members; all of these must call it.
  Made Sub(const std::string& name, const std::vector<int>& ranks);
  // Makes a group of the members that are not lost, in the same order; all of
  // them must call it. It breaks this group if it was not broken yet.
  Made Shrink();

  // Reduces the tensors of all members, in place at all of them. kMean requires
  // a floating dtype.
  Future<void> AllReduce(const Tensor& tensor, ReduceOp op = ReduceOp::kSum,
                         const CollectiveOptions& options = {});
  // Copies the root's elements to all members, in place.
  Future<void> Broadcast(const Tensor& tensor, int root = 0,
                         const CollectiveOptions& options = {});
  // The same for several tensors of one dtype and device, which travel as one:
  // on the CPU as one tensor, on a GPU in one launch of NCCL's. All members
  // must pass equally many tensors of the same sizes.
  Future<void> AllReduceMany(const std::vector<Tensor>& tensors,
                             ReduceOp op = ReduceOp::kSum,
                             const CollectiveOptions& options = {});
  Future<void> BroadcastMany(const std::vector<Tensor>& tensors, int root = 0,
                             const CollectiveOptions& options = {});
  // Reduces the tensors of all members, in place at the root; those of the
  // other members are not changed.
  Future<void> Reduce(const Tensor& tensor, int root = 0,
                      ReduceOp op = ReduceOp::kSum,
                      const CollectiveOptions& options = {});
  // `all` has size() times the elements of `one`: one block for each member,
  // that of rank 0 first. For Gather and Scatter, `all` may be undefined at
  // members other than the root.
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
  // Ends when all members have called it and the group's earlier work on this
  // member's GPU has ended.
  Future<void> Barrier(const CollectiveOptions& options = {});
  // Tensors may have any strides. A Send is done when the tensor has been
  // received.
  Future<void> Send(const Tensor& tensor, int to, int tag = 0,
                    const CollectiveOptions& options = {});
  Future<void> Receive(const Tensor& into, int from, int tag = 0,
                       const CollectiveOptions& options = {});

  // Returns why the group is broken; OK if it is not.
  absl::Status status() const;
  // Breaks the group at all members.
  void Abort(const absl::Status& why);
  // Returns the latest calls of this member: collectives in their order, then
  // sends and receives in theirs.
  std::vector<FlightRecord> records() const;

  // These are called for messages of other members and for changes of
  // membership.
  Future<void> TakeChunk(const ChunkMessage& chunk);
  Future<void> TakeSent(const TaggedTensor& sent);
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
  // Called once all members are open: sets gpu_, or no_gpu_ to the reason why
  // there is none.
  Made MeetGpus();
  absl::Status TryToMeetGpus();
  struct GpuCard;
  absl::StatusOr<std::vector<GpuCard>> ExchangeGpuCards();
  absl::Status CheckGpuCards(const std::vector<GpuCard>& cards) const;
  absl::Status JoinGpus(const std::string& id);

  CollectiveBackend& BackendFor(const Tensor& tensor) const;
  Future<void> Post(Collective what, const Tensor& in, const Tensor& out,
                    const CollectiveOptions& options);
  // `work` has its what, in, out and several set.
  Future<void> Post(CollectiveWork work, const CollectiveOptions& options);
  Future<void> PostMany(Collective what, const std::vector<Tensor>& tensors,
                        const CollectiveOptions& options);
  Clock::time_point DeadlineOf(const CollectiveOptions& options) const;
  absl::Status CheckTensors(const Collective& what, const Tensor& in,
                            const Tensor& out) const;
  // Sets a timer that fails a call which is still queued at its deadline.
  // Returns 0 if calls before it must end earlier anyway.
  Timer::Id AlarmForLocked(const CollectiveWork& work,
                           const Promise<void>& promise)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(post_mutex_);
  void Run(CollectiveBackend& backend, const CollectiveWork& work,
           const Promise<void>& promise);
  static Future<void> Begin(CollectiveBackend& backend,
                            const CollectiveWork& work);
  // Finds out what is wrong, breaks the group and fails the caller's promise.
  void Fail(const Collective& what, uint64_t sequence,
            const absl::Status& status, const Promise<void>& promise);
  // Counts a call in the current recording, whose replays are run as
  // collectives of the group.
  void NoteRecordingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(post_mutex_);
  void OnReplay(int64_t collectives);
  void Compare(std::function<void(std::vector<MemberFlight>)> then);
  // Returns false if the group is broken already or not open yet.
  bool Break(const absl::Status& why);
  // Records a send or receive until it is done, or its deadline has passed.
  Future<void> Watch(Future<void> done, const Collective& what,
                     const CollectiveOptions& options);

  Agent& agent_;
  const std::shared_ptr<Collectives> collectives_;
  const GroupOptions options_;
  const std::shared_ptr<FutexEvent> wakeup_;
  const std::shared_ptr<MessageQueues> messages_;
  uint64_t ticket_ = 0;
  std::shared_ptr<SharedQueues> queues_;  // to this member; null if unused

  // Set by Open, before the group is handed out.
  int rank_ = -1;
  std::vector<WorkerInfo> members_;
  std::vector<uint64_t> tickets_;
  std::vector<std::string> paths_;
  std::unique_ptr<CollectiveBackend> backend_;
  // Set by MeetGpus, likewise.
  std::unique_ptr<NcclBackend> gpu_;  // null: see no_gpu_
  absl::Status no_gpu_;

  FlightRecorder recorder_;  // of collectives
  FlightRecorder passed_;    // of sends and receives
  MemberMailbox mailbox_;
  Mutex post_mutex_;  // calls are queued in the order of their numbers
  // The latest deadline of the calls queued so far.
  Clock::time_point latest_ ABSL_GUARDED_BY(post_mutex_);
  uint64_t recording_ ABSL_GUARDED_BY(post_mutex_) = 0;  // the latest recording
  // The number of calls in that recording, shared with its replays.
  std::shared_ptr<int64_t> recorded_ ABSL_GUARDED_BY(post_mutex_);
  mutable Mutex mutex_;
  NcclBackend* open_gpu_ ABSL_GUARDED_BY(mutex_) = nullptr;  // gpu_
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;  // will be broken
  std::vector<Promise<void>> waiting_ ABSL_GUARDED_BY(mutex_);  // fail in Break
  std::map<std::pair<int, int>, uint64_t> sent_ ABSL_GUARDED_BY(mutex_);
  ThreadPool thread_{1, "baton-group"};  // last: it uses the members above
};

}  // namespace baton::rpc
