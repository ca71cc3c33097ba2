// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/local_links.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// For waits of GPUs, which only their own host can give up.
constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();

}  // namespace

LocalLinks::LocalLinks(int stage, StageStreams streams,
                       std::map<int, LocalLinks>& all, Options options)
    : stage_(stage),
      streams_(std::move(streams)),
      all_(all),
      options_(std::move(options)) {}

LinkWindow* LocalLinks::WindowTo(int stage) const {
  const auto found = options_.windows.find(stage);
  return found == options_.windows.end() ? nullptr : found->second.get();
}

template <typename T>
T LocalLinks::TakeFrom(Box<T>& box, int stage, int micro_batch) {
  auto found = box.extract({stage, micro_batch});
  return found.empty() ? T() : std::move(found.mapped());
}

absl::StatusOr<Outputs> LocalLinks::TakeInputs(int source, int micro_batch) {
  if (LinkWindow* window = WindowTo(source)) {
    const StreamScope scope(streams_.Forward(micro_batch));
    return window->Take(micro_batch, kNoDeadline);
  }
  return TakeFrom(inputs_, source, micro_batch);
}

absl::StatusOr<Values> LocalLinks::TakeGradients(int target, int micro_batch) {
  if (LinkWindow* window = WindowTo(target)) {
    const StreamScope scope(streams_.Backward(micro_batch));
    ASSIGN_OR_RETURN(Outputs back, window->Take(micro_batch, kNoDeadline));
    return std::move(back.values);
  }
  return TakeFrom(gradients_, target, micro_batch);
}

void LocalLinks::SendThrough(LinkWindow& window, int stage, int micro_batch,
                             const Outputs& outputs) const {
  const auto send = [&] {
    const absl::Status sent = window.Send(micro_batch, outputs);
    if (!sent.ok()) throw Error(sent);
  };
  if (options_.trace == nullptr) return send();
  const Stream copy_stream = window.CopyStream();
  copy_stream.WaitFor(CurrentStream(copy_stream.device()));
  options_.trace->Time({.name = absl::StrCat(StepTrace::kCopyOf, micro_batch),
                        .kind = StepTrace::Kind::kCopy,
                        .track = absl::StrCat("stage ", stage_, " to ", stage),
                        .link = LinkEnds{stage_, stage}},
                       copy_stream, send);
}

void LocalLinks::SendOutputs(int target, int micro_batch,
                             const Outputs& outputs) {
  if (LinkWindow* window = WindowTo(target))
    return SendThrough(*window, target, micro_batch, outputs);
  LocalLinks& user = At(target);
  user.inputs_[{stage_, micro_batch}] = {
      SendAll(target, micro_batch, outputs.values,
              user.streams_.Forward(micro_batch)),
      outputs.constants};
}

void LocalLinks::SendGradients(int source, int micro_batch, Values gradients) {
  if (LinkWindow* window = WindowTo(source))
    return SendThrough(*window, source, micro_batch,
                       {std::move(gradients), {}});
  LocalLinks& user = At(source);
  user.gradients_[{stage_, micro_batch}] = SendAll(
      source, micro_batch, gradients, user.streams_.Backward(micro_batch));
}

Values LocalLinks::SendAll(int to, int micro_batch, const Values& values,
                           const Stream& user) const {
  Values arrived;
  for (const Tensor& value : values)
    arrived.push_back(value.defined() ? Send(to, micro_batch, value, user)
                                      : Tensor());
  return arrived;
}

Tensor LocalLinks::Send(int to, int micro_batch, const Tensor& value,
                        const Stream& user) const {
  const Device source = device(), target = user.device();
  if (source == target) return value;
  const Stream copy_stream = Stream::ForCopies(source, target);
  const Stream maker = CurrentStream(source);
  if (options_.trace != nullptr || !options_.copy_streams)
    copy_stream.WaitFor(maker);
  if (!options_.copy_streams) copy_stream.WaitFor(user);
  Tensor arrived;
  {
    // Allocate on the copy stream: memory of a computing stream would make the
    // copy wait for that stream's work.
    const StreamScope scope(copy_stream);
    const auto copy = [&] { arrived = value.To(target); };
    if (options_.trace == nullptr) {
      copy();
    } else {
      options_.trace->Time(
          {.name = absl::StrCat(StepTrace::kCopyOf, micro_batch),
           .kind = StepTrace::Kind::kCopy,
           .track = absl::StrCat(source.ToString(), " to ", target.ToString()),
           .link = LinkEnds{stage_, to}},
          copy_stream, copy);
    }
  }
  if (!options_.copy_streams) {
    maker.WaitFor(copy_stream);
    user.WaitFor(copy_stream);
  }
  return arrived;
}

}  // namespace baton::dist
