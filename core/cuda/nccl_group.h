// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/stream.h"
#include "core/tensor.h"

// Collective operations of GPUs through NCCL. Each GPU belongs to a member of a
// group, in this process or another. The library is opened when it is first
// needed; no build links it. core/no_cuda/nccl has the same symbols for builds
// without NCCL's header, where they fail with FailedPrecondition.
namespace baton::cuda {

// Returns a version such as "2.28.9"; all members need the same.
// FailedPrecondition says what is missing here.
absl::StatusOr<std::string> NcclVersion();

// Returns an id that all members of one group, and nobody else, must know. This
// process listens for the members, where NCCL_SOCKET_IFNAME and NCCL itself
// choose, until all have joined.
absl::StatusOr<std::string> NewNcclId();

enum class NcclReduction : uint8_t { kSum, kMean, kMin, kMax, kProduct };

// One GPU's part of a communicator. Each call enqueues one collective on its
// stream, after all earlier work on the tensors; later users of the tensors
// wait for it there. Calls may be recorded (core/graph.h), and every replay
// repeats them. All members must make the same calls in the same order. They
// must have made the first call of each kind before they record one, because it
// may wait for the other members.
//
// Tensors are dense and of one dtype; `in` may be `out`. Sums of bool are "or",
// products "and". Errors: Cancelled after Abort, Unavailable with NCCL's words.
// Only one call at a time is allowed; Abort and queries may run at any time, on
// any thread.
class NcclGroup {
 public:
  virtual ~NcclGroup() = default;  // aborts

  virtual const Stream& stream() const = 0;

  virtual absl::Status AllReduce(const Tensor& out, const Tensor& in,
                                 NcclReduction reduction) = 0;
  // Copies the root's `in` to every member's `out`. Only the root has an `in`.
  virtual absl::Status Broadcast(const Tensor& out, const Tensor& in,
                                 int root) = 0;
  // These do several at once, in place, in one launch.
  virtual absl::Status AllReduceMany(const std::vector<Tensor>& tensors,
                                     NcclReduction reduction) = 0;
  virtual absl::Status BroadcastMany(const std::vector<Tensor>& tensors,
                                     int root) = 0;
  virtual absl::Status Reduce(const Tensor& out, const Tensor& in,
                              NcclReduction reduction, int root) = 0;
  virtual absl::Status AllGather(const Tensor& out, const Tensor& in) = 0;
  virtual absl::Status ReduceScatter(const Tensor& out, const Tensor& in,
                                     NcclReduction reduction) = 0;
  // Sends part i of `in`, of `count` elements, to to[i], and receives part i of
  // `out` from from[i]. `in` is undefined if nothing is sent, and `out` if
  // nothing is received. Not in place.
  virtual absl::Status Exchange(const Tensor& out, const Tensor& in,
                                int64_t count, const std::vector<int>& to,
                                const std::vector<int>& from) = 0;

  // Returns a query, to be repeated until it returns true: whether the present
  // work of `stream` has ended. It fails with what the GPU, or a member's NCCL,
  // reports. WhenEnded throws Error. Not within a recording.
  using Query = absl::AnyInvocable<absl::StatusOr<bool>()>;
  virtual Query WhenEnded(const Stream& stream) = 0;

  // Ends collectives in progress, whatever the other members do. Their tensors
  // may then contain anything, and replays do nothing from now on. Does not
  // wait.
  virtual void Abort() = 0;
};

// Joins a group of `size` members by rank, each on a GPU of its own. All give
// the same id, which NewNcclId() made. The future is done once all have joined.
// NCCL waits for that without a limit, on a thread that nobody else waits for.
Future<std::shared_ptr<NcclGroup>> JoinNcclGroup(const std::string& id,
                                                 int rank, int size,
                                                 int device);

}  // namespace baton::cuda
