// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "examples/support/optimizer_flags.h"
#include "models/data/text.h"
#include "models/transformer.h"

namespace baton::examples {

// The command line of programs that train a Transformer on the bytes of a text,
// checked.
struct TextTask {
  models::TransformerOptions model;
  std::string text;  // a file or a folder of files
  int64_t batch = 16;
  int64_t steps = 200;
  Stepping stepping;

  int64_t tokens() const { return batch * model.context; }  // in a batch
};

// Reads the parsed flags. InvalidArgument names the flag that is wrong and says
// what it takes.
absl::StatusOr<TextTask> TextTaskFromFlags();

// A text divided for training and, its last tenth, for validation.
struct Texts {
  data::ByteText training, validation;
};
absl::StatusOr<Texts> ReadTexts(const TextTask& task);

// Returns the mean of `loss_of` over windows spread over the text.
absl::StatusOr<double> ValidationLoss(
    const data::ByteText& text, const TextTask& task,
    const std::function<absl::StatusOr<double>(const data::TokenBatch&)>&
        loss_of);

}  // namespace baton::examples
