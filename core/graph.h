// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/stream.h"

namespace baton {

// GPU work that is recorded once and launched as a whole many times: the CPU
// then pays one launch for thousands of kernels. A recording consists of
// kernels and addresses: every replay reads and writes the tensors of the
// recording; host code, shapes and branches are as they were then. Tensors that
// live on after the recording, such as inputs, parameters and results, keep
// their memory; all other memory belongs to the graph until it is destroyed.
// Thread-compatible.
class Graph {
 public:
  // Records the work that `body` gives to streams of `devices` on the calling
  // thread, but no work of other threads. Nothing runs yet; call Replay for
  // results. `body` must not read values back (Item, ToVector, copies to the
  // CPU); if it does, or throws, Record throws Error and makes no recording.
  // Run the same work once before, so that algorithms have been chosen.
  static Graph Record(const std::vector<Device>& devices,
                      absl::FunctionRef<void()> body);
  // Returns whether the calling thread is within a Record's body.
  static bool IsRecording() { return CurrentRecording() != 0; }
  // Returns the recording's number, which is unique in the process; 0 outside
  // of a recording.
  static uint64_t CurrentRecording();
  // Within a Record's body: makes every Replay call `call` after its launch, to
  // update what the host knows of the work.
  static void AfterReplay(std::function<void()> call);

  // Launches the recording on the current streams of its devices, after earlier
  // work on the tensors that it uses. Returns before it has ended. Increments
  // the versions of what it writes; throws Error if a tensor that it uses no
  // longer exists. Without `timed`, the replay does not record times
  // (Event::RecordTime), which saves their cost.
  void Replay(bool timed = true) const;

  // Return the number of kernels, and of all nodes (with copies and fills).
  int64_t kernels() const;
  int64_t nodes() const;

 private:
  class Recording;
  explicit Graph(std::shared_ptr<const Recording> recording);

  std::shared_ptr<const Recording> recording_;
};

}  // namespace baton
