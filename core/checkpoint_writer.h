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
  int keep = 3;  // the number of newest checkpoints to keep; 0: all
};

// Copies of tensors in host memory. Copies from a GPU may still be in progress;
// later work on that GPU comes after them.
struct HostCopy {
  // Blocks until all copies are complete. Any thread may call it.
  const NamedTensors& Wait() const;

  NamedTensors tensors;
  std::vector<Event> ended;
};

// Host memory, pinned for tensors on a GPU, that is reused for repeated copies:
// allocating new memory takes longer than copying. Thread-compatible.
class HostCopies {
 public:
  // Overwrites the copies of the previous call where names and shapes are the
  // same; those must be complete.
  HostCopy Begin(const NamedTensors& tensors);
  // Gives up the copies; whoever still reads them keeps them.
  void Leave() { copies_.clear(); }

 private:
  NamedTensors copies_;
};

// Saves checkpoints while training goes on.
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
  // Waits for a save in progress; Wait returns its error.
  ~CheckpointWriter();

  // Returns when `state` may be changed: tensors on the CPU have been copied,
  // and those on a GPU will be copied before any work that is enqueued there
  // later. A thread writes the copies, whose memory is kept for the next save.
  // Only one save is in progress at a time: this first waits for the previous
  // one. If that failed, returns its error and begins nothing, so that calling
  // Save again retries.
  //
  // `others` begins the shards that other processes write, numbered from 1;
  // Save does not wait for its future, which only the manifest needs.
  using Shards = std::vector<Shard>;
  using Others =
      std::function<absl::StatusOr<Future<Shards>>(const CheckpointDraft&)>;
  absl::Status Save(int64_t step, const NamedTensors& state,
                    const Others& others = nullptr);

  // Waits until the checkpoint is on disk; returns the last Save's error, once.
  absl::Status Wait();

  const CheckpointOptions& options() const { return options_; }

 private:
  const CheckpointOptions options_;
  HostCopies copies_;
  Future<void> under_way_;
  ThreadPool pool_{1, "checkpoint"};
};

}  // namespace baton
