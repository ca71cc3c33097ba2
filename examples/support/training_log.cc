// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/training_log.h"

#include <algorithm>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/log.h"

ABSL_FLAG(std::string, tensorboard, "",
          "write loss, rate and throughput of each step into this folder, for "
          "tensorboard --logdir");

namespace baton::examples {
namespace {

// Returns a run's name as a folder's: "pipelined 20" becomes "pipelined_20".
std::string FolderOf(std::string run) {
  for (char& c : run) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' &&
        c != '.')
      c = '_';
  }
  return run;
}

void Complain(const absl::Status& status) {
  LogWarning("--tensorboard: ", status.message(), "; the training goes on");
}

}  // namespace

TrainingLog::TrainingLog(const std::string& run, std::string items, RateOf rate,
                         int64_t first)
    : items_(std::move(items)), rate_(std::move(rate)), next_(first) {
  const std::string folder = absl::GetFlag(FLAGS_tensorboard);
  if (folder.empty()) return;
  auto file = EventFile::Make(absl::StrCat(folder, "/", FolderOf(run)));
  if (file.ok()) {
    file_ = *std::move(file);
  } else {
    Complain(file.status());
  }
}

void TrainingLog::Step(double loss, int64_t items) {
  Add(next_++, items, {{"loss", loss}});
}

void TrainingLog::Add(int64_t step, int64_t items,
                      std::vector<Scalar> scalars) {
  if (file_ == nullptr) return;
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> since = now - std::exchange(last_, now);
  scalars.push_back({"rate", rate_(std::max<int64_t>(step - 1, 0))});
  if (items > 0) {
    scalars.push_back({absl::StrCat(items_, " per second"),
                       static_cast<double>(items) / since.count()});
  }
  const absl::Status written = file_->Add(step, scalars);
  if (written.ok()) return;
  Complain(written);
  file_ = nullptr;
}

}  // namespace baton::examples
