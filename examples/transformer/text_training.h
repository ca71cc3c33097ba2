// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/support/measurement.h"
#include "examples/support/pipeline_settings.h"
#include "examples/support/remote_model.h"
#include "examples/transformer/language_model.h"
#include "models/distributed/transformer_stage.h"
#include "rpc/agent.h"

namespace baton::examples {

// The command line of transformer_pipeline, checked.
struct TextSettings : PipelineSettings {
  TextTask task;
  int compute_threads = 0;  // per stage; 0: the worker's own setting
};
absl::StatusOr<TextSettings> TextSettingsFromFlags();

// Returns cuts that divide the work of blocks and head evenly. InvalidArgument
// if there are more stages than blocks and head.
absl::StatusOr<std::vector<std::string>> EvenCuts(
    const models::TransformerOptions& model, int stages);

// A Transformer whose stages live at workers.
using RemoteTransformer = RemoteModel<dist::TransformerStage>;
RemoteTransformer::Spec SpecOf(const TextTask& task);

// Trains a new model in each variant on the same batches of the text. A repeat
// is a step; the details have the loss of every step and the loss on the text's
// last tenth. Shows progress. If the settings ask for it, chooses the stages
// first. Returns FailedPrecondition if a worker computes in fp16, in which
// gradients vanish.
absl::StatusOr<std::vector<Measurement>> TrainOnText(
    rpc::Agent& agent, std::vector<std::string> workers, TextSettings settings);

}  // namespace baton::examples
