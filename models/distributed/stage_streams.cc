// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_streams.h"

#include "absl/algorithm/container.h"
#include "core/storage.h"
#include "core/stream_use.h"

namespace baton::dist {
namespace {

// More streams would gain nothing: the largest kernels fill a GPU.
constexpr int kWeightStreams = 4;

}  // namespace

StageStreams StageStreams::Current(Device device) {
  const Stream current = CurrentStream(device);
  return {.forward = {current}, .backward = {current}};
}

StageStreams StageStreams::Make(Device gpu, int at_once) {
  StageStreams streams;
  for (int i = 0; i < at_once; ++i) {
    streams.forward.push_back(Stream::Next(gpu));
    streams.backward.push_back(Stream::Next(gpu));
  }
  for (int i = 0; i < kWeightStreams; ++i)
    streams.weights.push_back(Stream::Beside(Stream::Next(gpu)));
  return streams;
}

StageStreams StageStreams::For(const StepPlan& plan) const {
  StageStreams streams = Current(forward.front().device());
  // If there are separate streams, the current one is not used: it wrote the
  // parameters.
  if (plan.overlap || plan.at_once > 1) {
    streams.forward = forward;
    streams.backward = plan.overlap ? backward : forward;
  }
  const bool splits = absl::c_any_of(plan.program, [](const Instruction& step) {
    return step.op == StageOp::kInputGrad;
  });
  if (splits) streams.weights = weights;
  return streams;
}

std::vector<Stream> StageStreams::All() const {
  std::vector<Stream> all = forward;
  all.insert(all.end(), backward.begin(), backward.end());
  all.insert(all.end(), weights.begin(), weights.end());
  return all;
}

void StageStreams::Fork() const {
  for (const Stream& stream : All())
    stream.WaitFor(CurrentStream(stream.device()));
}

void StageStreams::Join() const {
  for (const Stream& stream : All()) {
    CurrentStream(stream.device()).WaitFor(stream);
    CurrentStream(stream.device()).WaitFor(Stream::Beside(stream));
  }
}

void AwaitValue(const Tensor& value, const Stream& stream) {
  StreamUse* const use = value.storage()->use().get();
  if (use == nullptr) return;
  if (stream.device().is_cuda() || value.device().is_cpu()) {
    use->Read(stream);
    return;
  }
  const Stream there = CurrentStream(value.device());
  use->Read(there);
  there.Synchronize();
}

}  // namespace baton::dist
