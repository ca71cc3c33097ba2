// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>

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
  // Of a stage on these streams behind `previous`, which outlives it; null: the
  // first stage.
  LocalLinks(StageStreams streams, LocalLinks* previous,
             const Options& options);

  absl::Status ended() const override { return absl::OkStatus(); }
  absl::StatusOr<Tensor> TakeInput(int micro_batch) override;
  absl::StatusOr<Tensor> TakeGradient(int micro_batch) override;
  void SendOutput(int micro_batch, const Tensor& output) override;
  void SendGradient(int micro_batch, Tensor gradient) override;

 private:
  Device device() const { return streams_.forward.front().device(); }
  // `value` where `user` is, which will use it.
  Tensor Send(int micro_batch, const Tensor& value, const Stream& user) const;

  const StageStreams streams_;
  LocalLinks* const previous_;
  LocalLinks* next_ = nullptr;
  const Options options_;
  std::map<int, Tensor> inputs_, gradients_;  // that have come
};

}  // namespace baton::dist
