// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/local_links.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::dist {

LocalLinks::LocalLinks(StageStreams streams, LocalLinks* previous,
                       const Options& options)
    : streams_(std::move(streams)), previous_(previous), options_(options) {
  if (previous_ != nullptr) previous_->next_ = this;
}

absl::StatusOr<Tensor> LocalLinks::TakeInput(int micro_batch) {
  return std::exchange(inputs_[micro_batch], Tensor());
}

absl::StatusOr<Tensor> LocalLinks::TakeGradient(int micro_batch) {
  return std::exchange(gradients_[micro_batch], Tensor());
}

void LocalLinks::SendOutput(int micro_batch, const Tensor& output) {
  next_->inputs_[micro_batch] =
      Send(micro_batch, output, next_->streams_.Forward(micro_batch));
}

void LocalLinks::SendGradient(int micro_batch, Tensor gradient) {
  if (previous_ == nullptr || !gradient.defined()) return;
  previous_->gradients_[micro_batch] =
      Send(micro_batch, gradient, previous_->streams_.Backward(micro_batch));
}

Tensor LocalLinks::Send(int micro_batch, const Tensor& value,
                        const Stream& user) const {
  const Device source = device(), target = user.device();
  if (source == target) return value;
  const Stream lane = Stream::ForCopies(source, target);
  const Stream maker = CurrentStream(source);
  if (options_.trace != nullptr || !options_.copy_streams) lane.WaitFor(maker);
  if (!options_.copy_streams) lane.WaitFor(user);
  Tensor arrived;
  {
    // Memory of the lane's own: that of a computing stream would come with its
    // waits.
    const StreamScope scope(lane);
    const auto copy = [&] { arrived = value.To(target); };
    if (options_.trace == nullptr) {
      copy();
    } else {
      options_.trace->Time(
          absl::StrCat("copy ", micro_batch), StepTrace::Kind::kCopy,
          absl::StrCat(source.ToString(), " to ", target.ToString()), lane,
          copy);
    }
  }
  if (!options_.copy_streams) {
    maker.WaitFor(lane);
    user.WaitFor(lane);
  }
  return arrived;
}

}  // namespace baton::dist
