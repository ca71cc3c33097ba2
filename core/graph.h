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

// GPU work recorded once and launched as a whole, again and again: the CPU then
// pays one launch for thousands of kernels. What is recorded are kernels and
// addresses: every replay reads and writes the tensors of the recording, and
// host code, shapes and branches are what they were then. Tensors that live on
// after the recording, such as inputs, parameters and results, keep their
// memory; the rest is memory of the graph's own, kept until the graph is gone.
// Thread-compatible.
class Graph {
 public:
  // Records what `body` gives to streams of `devices` on the calling thread,
  // and nothing that other threads give them. None of it runs: replay for
  // results. `body` must not read values back (Item, ToVector, copies to the
  // CPU); that, and what it throws, throws Error and leaves no recording. Run
  // the same work once before, so that algorithms have been chosen.
  static Graph Record(const std::vector<Device>& devices,
                      absl::FunctionRef<void()> body);
  // Whether the calling thread is within a Record's body.
  static bool IsRecording() { return CurrentRecording() != 0; }
  // Its number, which no other of the process has; 0 for none.
  static uint64_t CurrentRecording();
  // Within a Record's body: every Replay calls `call` when it has launched, for
  // what the host keeps of the work.
  static void AfterReplay(std::function<void()> call);

  // Launches it on the current streams of its devices, after earlier work on
  // the tensors it uses. Returns before it has ended. Counts a version of what
  // it writes; throws Error where a tensor it was given is there no more. The
  // times of the recording (Event::RecordTime) take time themselves: without
  // `timed` they are left out.
  void Replay(bool timed = true) const;

  // Kernels in it, and all nodes (with copies and fills).
  int64_t kernels() const;
  int64_t nodes() const;

 private:
  class Recording;
  explicit Graph(std::shared_ptr<const Recording> recording);

  std::shared_ptr<const Recording> recording_;
};

}  // namespace baton
