// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <utility>

#include "models/distributed/link_window.h"
#include "models/distributed/stage_links.h"
#include "models/distributed/stage_streams.h"
#include "models/distributed/step_trace.h"

namespace baton::dist {

// Links between stages whose programs one thread runs, each instruction after
// what it needs, and from these to stages of other processes, through windows
// of GPUs. Nothing is waited for on the host, and what goes to another device
// is copied there. Confined to that thread.
class LocalLinks final : public StageLinks {
 public:
  struct Options {
    // Copies between GPUs run on streams of their own, beside the computing.
    // Off: after what the computing streams of both have been given, and before
    // what they are given next.
    bool copy_streams = true;
    StepTrace* trace = nullptr;  // times copies
    WindowMap windows = {};      // to stages that are not among `all`
  };
  // Of a stage on these streams. `all`, which outlive it, are those that the
  // thread runs, by stage.
  LocalLinks(int stage, StageStreams streams, std::map<int, LocalLinks>& all,
             Options options);

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
  LocalLinks& At(int stage) const { return all_.at(stage); }
  LinkWindow* WindowTo(int stage) const;
  void SendThrough(LinkWindow& window, int stage, int micro_batch,
                   const Outputs& outputs) const;
  Device device() const { return streams_.forward.front().device(); }
  // `values` where `user` is, which will use them.
  Values SendAll(int micro_batch, const Values& values,
                 const Stream& user) const;
  Tensor Send(int micro_batch, const Tensor& value, const Stream& user) const;

  const int stage_;
  const StageStreams streams_;
  std::map<int, LocalLinks>& all_;
  const Options options_;
  Box<Outputs> inputs_;  // that have come
  Box<Values> gradients_;
};

}  // namespace baton::dist
