// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <vector>

#include "core/stream.h"

namespace baton::dist {

// Streams of one GPU beside its current one.
struct DeviceLanes {
  std::vector<Stream> forward, backward;  // as many as work at once
  std::vector<Stream> weights;            // for gradients nobody waits for
};
DeviceLanes MakeLanes(Device gpu, int at_once);

// What of the lanes a step uses.
struct LaneUse {
  bool several = false;  // micro-batches at once
  bool overlap = false;  // forwards beside backwards
  bool weights = false;  // gradients of weights apart
};

// Runs `copy`, which gives work to `lane`, in the turn of `computing` streams:
// after what they have been given, and before what they are given next.
template <typename Copy>
auto InTurn(const Stream& lane, const std::vector<Stream>& computing,
            const Copy& copy) {
  for (const Stream& stream : computing) lane.WaitFor(stream);
  auto result = copy();
  for (const Stream& stream : computing) stream.WaitFor(lane);
  return result;
}

// Which stream each stage of a DevicePipeline uses for what in one step. Stages
// without lanes of their own, and those on the CPU, use the current stream.
// Where lanes are used the current stream is not among them: it wrote the
// parameters. Confined to one thread.
class StageStreams {
 public:
  StageStreams(const std::vector<Device>& device_of_stage,
               const std::map<int, DeviceLanes>& lanes, LaneUse use);

  const Stream& Forward(size_t stage, size_t micro_batch) const {
    return Of(stages_[stage].forward, micro_batch);
  }
  const Stream& Backward(size_t stage, size_t micro_batch) const {
    return Of(stages_[stage].backward, micro_batch);
  }
  // None: with the backward.
  const std::vector<Stream>& Weights(size_t stage) const {
    return stages_[stage].weights;
  }
  // The one of stage `to` that uses what stage `from` sends it.
  const Stream& UserOf(size_t from, size_t to, size_t micro_batch) const {
    return from < to ? Forward(to, micro_batch) : Backward(to, micro_batch);
  }
  bool several(size_t stage) const { return stages_[stage].forward.size() > 1; }

  // Nothing begins before what the current streams have been given, and they go
  // on after all of it. A recording takes the others in by this.
  void Fork() const;
  void Join() const;

 private:
  static const Stream& Of(const std::vector<Stream>& streams, size_t turn) {
    return streams[turn % streams.size()];
  }
  std::vector<Stream> All() const;

  std::vector<DeviceLanes> stages_;
};

}  // namespace baton::dist
