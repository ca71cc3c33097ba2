// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/device_streams.h"

namespace baton::dist {
namespace {

// More gain nothing: the largest kernels fill a GPU.
constexpr int kWeightLanes = 4;

}  // namespace

DeviceLanes MakeLanes(Device gpu, int at_once) {
  DeviceLanes lanes;
  for (int i = 0; i < at_once; ++i) {
    lanes.forward.push_back(Stream::Next(gpu));
    lanes.backward.push_back(Stream::Next(gpu));
  }
  for (int i = 0; i < kWeightLanes; ++i)
    lanes.weights.push_back(Stream::Beside(Stream::Next(gpu)));
  return lanes;
}

StageStreams::StageStreams(const std::vector<Device>& device_of_stage,
                           const std::map<int, DeviceLanes>& lanes,
                           LaneUse use) {
  for (Device device : device_of_stage) {
    const Stream current = CurrentStream(device);
    DeviceLanes& stage = stages_.emplace_back(DeviceLanes{
        .forward = {current}, .backward = {current}, .weights = {}});
    if (device.is_cpu()) continue;
    const DeviceLanes& own = lanes.at(device.index());
    if (use.overlap || use.several) {
      stage.forward = own.forward;
      stage.backward = use.overlap ? own.backward : own.forward;
    }
    if (use.weights) stage.weights = own.weights;
  }
}

std::vector<Stream> StageStreams::All() const {
  std::vector<Stream> all;
  for (const DeviceLanes& stage : stages_) {
    for (const auto* streams :
         {&stage.forward, &stage.backward, &stage.weights})
      all.insert(all.end(), streams->begin(), streams->end());
  }
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

}  // namespace baton::dist
