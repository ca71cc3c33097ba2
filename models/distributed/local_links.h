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
// those that it needs, and through windows of GPUs to stages of other
// processes. The host never waits. Values for another device are copied there.
// Confined to that thread.
class LocalLinks final : public StageLinks {
 public:
  struct Options {
    // Whether copies between GPUs run on separate streams, concurrently with
    // computing. If not, a copy begins after the earlier work of both GPUs'
    // computing streams, and their later work waits for it.
    bool copy_streams = true;
    StepTrace* trace = nullptr;  // times copies
    WindowMap windows = {};      // to stages that are not in `all`
    // Other links of the step: when they end, so do these. Null: none.
    const StageLinks* others = nullptr;
  };
  // The links of a stage that uses these streams. `all` has the links of the
  // thread's stages, by stage, and must outlive this object.
  LocalLinks(int stage, StageStreams streams, std::map<int, LocalLinks>& all,
             Options options);

  absl::Status ended() const override {
    return options_.others ? options_.others->ended() : absl::OkStatus();
  }
  bool MayWait(int stage) const override { return WindowTo(stage) != nullptr; }
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
  // Copies `values` to the device of `user`, the stream of stage `to` that will
  // use them.
  Values SendAll(int to, int micro_batch, const Values& values,
                 const Stream& user) const;
  Tensor Send(int to, int micro_batch, const Tensor& value,
              const Stream& user) const;

  const int stage_;
  const StageStreams streams_;
  std::map<int, LocalLinks>& all_;
  const Options options_;
  Box<Outputs> inputs_;  // received ones
  Box<Values> gradients_;
};

}  // namespace baton::dist
