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

// What transformer_pipeline is told on the command line, checked.
struct TextSettings : PipelineSettings {
  TextTask task;
  int compute_threads = 0;  // of each stage; 0: the worker's own setting
};
absl::StatusOr<TextSettings> TextSettingsFromFlags();

// Cuts that share the work of the blocks and the head evenly. InvalidArgument
// for more stages than blocks and head.
absl::StatusOr<std::vector<std::string>> EvenCuts(
    const models::TransformerOptions& model, int stages);

// A Transformer whose stages live at workers.
using RemoteTransformer = RemoteModel<dist::TransformerStage>;
RemoteTransformer::Spec SpecOf(const TextTask& task);

// Trains a new model in each variant on the same batches of the text: a repeat
// is a step, and the details have the loss of every step and that of the text's
// last tenth. Shows progress. Stages are chosen first where settings say so.
// FailedPrecondition where a worker computes in fp16, whose gradients vanish.
absl::StatusOr<std::vector<Measurement>> TrainOnText(
    rpc::Agent& agent, std::vector<std::string> workers, TextSettings settings);

}  // namespace baton::examples
