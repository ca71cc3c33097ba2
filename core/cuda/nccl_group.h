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

// What GPUs do together by NCCL, each for a member of a group, of this process
// or of another. The library is opened when it is first asked for; no build
// links it. core/no_cuda/nccl has the same symbols for builds without its
// header, which fail with FailedPrecondition.
namespace baton::cuda {

// As in "2.28.9"; all members need the same. FailedPrecondition says what is
// missing here.
absl::StatusOr<std::string> NcclVersion();

// What the members of one group, and nobody else, must know. This process
// listens for them where NCCL_SOCKET_IFNAME and NCCL itself choose, until all
// have come.
absl::StatusOr<std::string> NewNcclId();

enum class NcclReduction : uint8_t { kSum, kMean, kMin, kMax, kProduct };

// One GPU's part of a communicator. Each call gives its stream one collective,
// behind all earlier work on the tensors, and whatever comes to use them later
// waits for it there; also within a recording (core/graph.h), every replay of
// which does what was recorded. All members make the same calls in the same
// order, and the first ones before what they do together is recorded: a call of
// a new kind may wait for the others'.
//
// Tensors are dense and of one dtype; `in` may be `out`. Sums of bool are "or",
// products "and". Errors: Cancelled after Abort, Unavailable with NCCL's words.
// One call at a time; Abort and queries at any time, on any thread.
class NcclGroup {
 public:
  virtual ~NcclGroup() = default;  // aborts

  virtual const Stream& stream() const = 0;

  virtual absl::Status AllReduce(const Tensor& out, const Tensor& in,
                                 NcclReduction reduction) = 0;
  // At the root alone: `in`; `out`.
  virtual absl::Status Broadcast(const Tensor& out, const Tensor& in,
                                 int root) = 0;
  // Several in place, in one launch.
  virtual absl::Status AllReduceMany(const std::vector<Tensor>& tensors,
                                     NcclReduction reduction) = 0;
  virtual absl::Status BroadcastMany(const std::vector<Tensor>& tensors,
                                     int root) = 0;
  virtual absl::Status Reduce(const Tensor& out, const Tensor& in,
                              NcclReduction reduction, int root) = 0;
  virtual absl::Status AllGather(const Tensor& out, const Tensor& in) = 0;
  virtual absl::Status ReduceScatter(const Tensor& out, const Tensor& in,
                                     NcclReduction reduction) = 0;
  // Part i of `in`, of `count` elements, to to[i], and from from[i] part i of
  // `out`; one that is not given or got is undefined. Not in place.
  virtual absl::Status Exchange(const Tensor& out, const Tensor& in,
                                int64_t count, const std::vector<int>& to,
                                const std::vector<int>& from) = 0;

  // Whether what `stream` has been given by now has ended, to be asked again
  // and again until it has; fails for what the GPU, or a member's NCCL,
  // reports. Throws Error. Not within a recording.
  using Query = absl::AnyInvocable<absl::StatusOr<bool>()>;
  virtual Query WhenEnded(const Stream& stream) = 0;

  // Ends what is under way, whatever the others do; its tensors may be anything
  // then, and what is replayed does nothing from now on. Waits for nothing.
  virtual void Abort() = 0;
};

// Of `size` members by rank, each on a GPU of its own. NewNcclId() makes the id
// that all give. Ends once all have come, which NCCL waits for without a limit:
// on a thread that nobody else waits for.
Future<std::shared_ptr<NcclGroup>> JoinNcclGroup(const std::string& id,
                                                 int rank, int size,
                                                 int device);

}  // namespace baton::cuda
