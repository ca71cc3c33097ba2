// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cuda/nccl.h"
#include "core/executor.h"
#include "core/tensor.h"

namespace baton::rpc {

// What was posted to a line, until it has ended. Confined to one thread.
class NcclPosts {
 public:
  explicit NcclPosts(std::shared_ptr<cuda::NcclLine> line)
      : line_(std::move(line)) {}

  // `given` runs once the GPU has been given it, `ended` once it has ended;
  // both in the order of the posts.
  absl::Status Add(const Tensor& tensor, Task given, Task ended);
  // To be called again and again until it says true: that all has ended. After
  // an error nothing more will run.
  absl::StatusOr<bool> Advance();
  // Whether somebody does so; whoever begins or stops says so.
  bool advancing = false;

 private:
  // Of the first so many posts, those of the front for which that is so.
  using Asked = absl::StatusOr<bool> (cuda::NcclLine::*)(uint64_t);
  absl::Status Run(std::deque<Task>& tasks, uint64_t& done, uint64_t of,
                   Asked is_so);

  const std::shared_ptr<cuda::NcclLine> line_;
  uint64_t posted_ = 0, were_given_ = 0, have_ended_ = 0;
  std::deque<Task> given_, ended_;
};

}  // namespace baton::rpc
