// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <map>
#include <utility>

#include "models/distributed/stage_links.h"
#include "models/distributed/stage_streams.h"
#include "models/distributed/step_trace.h"

namespace baton::dist {

// Links between stages whose programs one thread runs, each instruction after
// what it needs: nothing is waited for on the host, and what goes to another
// device is copied there. Confined to that thread.
class LocalLinks final : public StageLinks {
 public:
  struct Options {
    // Copies between GPUs run on streams of their own, beside the computing.
    // Off: after what the computing streams of both have been given, and before
    // what they are given next.
    bool copy_streams = true;
    StepTrace* trace = nullptr;  // times copies
  };
  // Of a stage on these streams. `all`, which outlive it, are the pipeline's,
  // in the order of its stages.
  LocalLinks(int stage, StageStreams streams, std::deque<LocalLinks>& all,
             const Options& options);

  absl::Status ended() const override { return absl::OkStatus(); }
  absl::StatusOr<Outputs> TakeInputs(int source, int micro_batch) override;
  absl::StatusOr<Values> TakeGradients(int target, int micro_batch) override;
  void SendOutputs(int target, int micro_batch,
                   const Outputs& outputs) override;
  void SendGradients(int source, int micro_batch, Values gradients) override;

 private:
  template <typename T>
  using Box = std::map<std::pair<int, int>, T>;  // by stage, micro-batch

  template <typename T>
  static T TakeFrom(Box<T>& box, int stage, int micro_batch);
  LocalLinks& At(int stage) const { return all_[static_cast<size_t>(stage)]; }
  Device device() const { return streams_.forward.front().device(); }
  // `values` where `user` is, which will use them.
  Values SendAll(int micro_batch, const Values& values,
                 const Stream& user) const;
  Tensor Send(int micro_batch, const Tensor& value, const Stream& user) const;

  const int stage_;
  const StageStreams streams_;
  std::deque<LocalLinks>& all_;
  const Options options_;
  Box<Outputs> inputs_;  // that have come
  Box<Values> gradients_;
};

}  // namespace baton::dist
