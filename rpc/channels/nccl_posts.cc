// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl_posts.h"

#include <utility>

#include "core/status.h"

namespace baton::rpc {

absl::Status NcclPosts::Add(const Tensor& tensor, Task given, Task ended) {
  RETURN_IF_ERROR(line_->Post(tensor));
  ++posted_;
  given_.push_back(std::move(given));
  ended_.push_back(std::move(ended));
  return absl::OkStatus();
}

absl::Status NcclPosts::Run(std::deque<Task>& tasks, uint64_t& done,
                            uint64_t of, Asked is_so) {
  while (done < of) {
    ASSIGN_OR_RETURN(const bool so, ((*line_).*is_so)(done + 1));
    if (!so) break;
    ++done;
    Task task = std::move(tasks.front());
    tasks.pop_front();
    std::move(task)();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> NcclPosts::Advance() {
  absl::Status status =
      Run(given_, were_given_, posted_, &cuda::NcclLine::HaveBeenGiven);
  // What ended before a failure has ended, though.
  status.Update(
      Run(ended_, have_ended_, were_given_, &cuda::NcclLine::HaveEnded));
  if (status.ok()) return ended_.empty();
  given_.clear();
  ended_.clear();
  return status;
}

}  // namespace baton::rpc
