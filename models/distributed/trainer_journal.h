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

// An entry that a trainer writes for each state that the workers keep: what it
// knew when the step after that state began.
struct JournalEntry {
  uint64_t training = 0;  // a random number, by which workers identify it
  uint64_t trainer = 0;   // the writer's number, which grows
  int64_t step = 0;
  NamedTensors state{};  // after the step
  std::string writer{};  // the trainer's worker, for error messages
  std::vector<std::string> keepers{};  // the workers that keep the state
};

// Records the last steps of a training in a folder, so that a restarted trainer
// can continue it. Each entry is a small file, which is on disk when Write
// returns. Confined to one thread.
class TrainerJournal {
 public:
  // Makes the folder if it does not exist. Errors name the path that cannot be
  // read or made.
  static absl::StatusOr<TrainerJournal> Open(const std::string& folder);

  // Returns the latest trainer's entries, by step, as they were when the
  // journal was opened.
  const std::vector<JournalEntry>& found() const { return found_; }
  // Begins a training: writes an entry for step 0 that belongs to no trainer.
  // If another process has begun a training since the journal was opened, that
  // entry remains instead.
  absl::Status Begin(uint64_t training) const;
  // Returns PermissionDenied, which names the writer, if a later trainer has
  // written an entry, because it has then taken over the training.
  absl::Status Check(uint64_t trainer) const;
  // Writes the entry. Removes this trainer's other entries, except that of step
  // `before`, and all entries of earlier trainers. Returns PermissionDenied as
  // Check does.
  absl::Status Write(const JournalEntry& entry, int64_t before) const;
  // Ends the training: removes the entries of this trainer and of earlier ones.
  // If a later trainer has taken over the training, its entries remain.
  absl::Status Clear(uint64_t trainer) const;

 private:
  explicit TrainerJournal(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::vector<JournalEntry> found_;
};

}  // namespace baton::dist
