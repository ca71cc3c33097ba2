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

// What the programs that train a Transformer on the bytes of a text are told on
// the command line, checked.
struct TextTask {
  models::TransformerOptions model;
  std::string text;  // a file or a folder of files
  int64_t batch = 16;
  int64_t steps = 200;
  Stepping stepping;

  int64_t tokens() const { return batch * model.context; }  // of a batch
};

// From the flags, after they are parsed. InvalidArgument names the flag that is
// wrong and says what it takes.
absl::StatusOr<TextTask> TextTaskFromFlags();

// The last tenth is kept apart, to show what was learnt.
struct Texts {
  data::ByteText training, validation;
};
absl::StatusOr<Texts> ReadTexts(const TextTask& task);

// Mean of `loss_of` over windows of the text that lie apart.
absl::StatusOr<double> ValidationLoss(
    const data::ByteText& text, const TextTask& task,
    const std::function<absl::StatusOr<double>(const data::TokenBatch&)>&
        loss_of);

}  // namespace baton::examples
