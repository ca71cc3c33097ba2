// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"

// NCCL: tensors from the GPU of one process to that of another one, of this
// machine or not. Its library is opened when it is first asked for; no build
// links it. core/no_cuda/nccl has the same symbols for builds without its
// header, which fail with FailedPrecondition.
namespace baton::cuda {

// As in "2.28.9"; both ends of a line need the same. FailedPrecondition says
// what is missing here.
absl::StatusOr<std::string> NcclVersion();

// What the two ends of one line, and nobody else, must know. This process
// listens for them where NCCL_SOCKET_IFNAME and NCCL itself choose, until both
// have come.
absl::StatusOr<std::string> NewNcclId();

// One way from a process to another: a communicator of the two alone, and a
// stream of its own, so that neither waits for what is on its way back. What it
// has been given runs until the other end was given its part too.
//
// Until the first post has ended, and in Abort, NCCL calls what the driver
// keeps waiting until this GPU is idle, and every launch of this process with
// it: meanwhile nothing may run there that only a launch here, or in a process
// that is kept waiting too, can end. No call but Abort waits otherwise. After
// an error the line is of no use but to be aborted. Thread-safe.
class NcclLine {
 public:
  virtual ~NcclLine() = default;  // aborts
  // Whether the other end has come. Asked again and again until it has.
  virtual absl::StatusOr<bool> IsOpen() = 0;
  // Sends the elements of a tensor without gaps, or receives them, after all
  // that was posted before: the n-th post of one end is the n-th of the other,
  // of as many bytes. What was given to write what is sent has ended; the
  // memory stays until this has ended, or Abort has.
  virtual absl::Status Post(const Tensor& tensor) = 0;
  // Whether the first so many posts have been given to the GPU. From then on
  // what receives is the last that writes the tensor, as its users see it: they
  // wait for it on the GPU as for any other, and where an abort ends it they
  // find all bits set, so no number, where bytes are missing. Asked again and
  // again: it moves them on. The first of either end is given once both ends
  // have posted theirs.
  virtual absl::StatusOr<bool> HaveBeenGiven(uint64_t posts) = 0;
  // Whether the first so many posts have ended, also where others have failed
  // since. Asked again and again: it moves them on.
  virtual absl::StatusOr<bool> HaveEnded(uint64_t posts) = 0;
  // Calls that begin from now on give the GPU nothing: Post fails with
  // Cancelled, and so do HaveBeenGiven and HaveEnded, unless the answer is yes
  // by what was given before, which runs on. At any time, on any thread. Where
  // several lines of one GPU are to be aborted it comes first, on all of them:
  // an Abort, which waits for the GPU to be idle, would wait for what the
  // others still gave. A line that is aborted alone need not be closed.
  virtual void Close() = 0;
  // Ends what is under way, whatever the other end does; calls that begin from
  // now on fail with Cancelled as after Close, and so does IsOpen. May take
  // long. Neither this nor Close waits for other calls, which may be waiting
  // for this very abort.
  virtual void Abort() = 0;
};
// One of the two `sends`, the other one receives, each on its GPU `device`: not
// the same one. FailedPrecondition or Unavailable with NCCL's words.
absl::StatusOr<std::shared_ptr<NcclLine>> JoinNccl(const std::string& id,
                                                   bool sends, int device);

}  // namespace baton::cuda
