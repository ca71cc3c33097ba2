// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/safetensors.h"

namespace baton::dist {

// What a trainer knew when the next step after a state that is kept began, or
// when it had a state kept.
struct JournalEntry {
  uint64_t training = 0;  // a random number, by which workers know it
  uint64_t trainer = 0;   // who wrote it: later ones have greater numbers
  int64_t step = 0;
  NamedTensors state{};                // after the step
  std::string writer{};                // the trainer's worker, for people
  std::vector<std::string> keepers{};  // the workers that keep the state
};

// The last steps of a training in a folder, for a trainer that is started
// again: a small file each, which has reached the disk when Write returns.
// Confined to one thread.
class TrainerJournal {
 public:
  // Makes the folder. Errors name what cannot be read or made.
  static absl::StatusOr<TrainerJournal> Open(const std::string& folder);

  // Those of the latest trainer, by steps, as they were when it was opened.
  const std::vector<JournalEntry>& found() const { return found_; }
  // Begins a training: an entry of no trainer, before any step. Where another
  // one has begun since this was opened, it remains.
  absl::Status Begin(uint64_t training) const;
  // PermissionDenied, which names the writer, if a later trainer than this one
  // has an entry: it has taken the training up.
  absl::Status Check(uint64_t trainer) const;
  // The trainer's entries of other steps than this one and `before` are
  // removed, and those of earlier trainers. PermissionDenied as of Check.
  absl::Status Write(const JournalEntry& entry, int64_t before) const;
  // The training is over: removes the entries of this trainer and of earlier
  // ones. A later one has taken the training up, and goes on.
  absl::Status Clear(uint64_t trainer) const;

 private:
  explicit TrainerJournal(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::vector<JournalEntry> found_;
};

}  // namespace baton::dist
