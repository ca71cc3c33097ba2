// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/stream.h"

namespace baton {

struct CheckpointOptions {
  std::string folder;
  int keep = 3;  // the newest so many; 0: all
};

// Copies of tensors in host memory. Those of a GPU may be under way: whatever
// is done to the tensors later on the GPU comes after them.
struct HostCopy {
  // Blocks until all are there. Of any thread.
  const NamedTensors& Wait() const;

  NamedTensors tensors;
  std::vector<Event> ended;
};

// Host memory, pinned for what is on a GPU, that tensors are copied to again
// and again: fresh memory takes longer than the copies. Thread-compatible.
class HostCopies {
 public:
  // In place of the copies of the call before, where names and shapes are the
  // same; those must have ended.
  HostCopy Begin(const NamedTensors& tensors);
  // Leaves the copies to those who still read them.
  void Leave() { copies_.clear(); }

 private:
  NamedTensors copies_;
};

// Saves a training while it goes on.
//
//   CheckpointWriter writer({.folder = "runs/a"});
//   ...
//   NamedTensors state = AsPart("model", model.StateDict());
//   state.merge(AsPart("optimizer", adam.SharedState()));
//   state.merge(AsPart("loader", loader.ExportState()));
//   RETURN_IF_ERROR(writer.Save(step, state));
//   ...
//   RETURN_IF_ERROR(writer.Wait());
//
// Thread-compatible.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(CheckpointOptions options);
  // Waits for the save that is under way; see Wait for how it ended.
  ~CheckpointWriter();

  // Returns when `state` may be changed: what is on the CPU has been copied,
  // and what is on a GPU will have been before anything that is begun there
  // later. A thread writes the copies, whose memory is kept for the next save.
  // One save is under way at a time: where the one before is, this waits for it
  // first. Gives the error of the one before, with nothing begun, so that to
  // call it again is to try again.
  //
  // `others`: begins the shards that other processes write, which number from 1
  // on; Save waits for the future that it gives for no longer than to write the
  // manifest.
  using Shards = std::vector<Shard>;
  using Others =
      std::function<absl::StatusOr<Future<Shards>>(const CheckpointDraft&)>;
  absl::Status Save(int64_t step, const NamedTensors& state,
                    const Others& others = nullptr);

  // Until the checkpoint is on the disk: how the last Save ended, once.
  absl::Status Wait();

  const CheckpointOptions& options() const { return options_; }

 private:
  const CheckpointOptions options_;
  HostCopies copies_;
  Future<void> under_way_;
  ThreadPool pool_{1, "checkpoint"};
};

}  // namespace baton
