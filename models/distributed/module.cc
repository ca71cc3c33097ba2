// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/module.h"

namespace baton::dist {

void Place(nn::Module& module, const Placement& placement,
           const rpc::Compute& declared) {
  const DType dtype = placement.dtype.value_or(declared.dtype);
  // f32 by default does not change weights of f64.
  if (placement.dtype.has_value() || IsHalf(dtype))
    module.LowerPrecision(dtype);
  module.To(placement.device.value_or(declared.device));
}

Future<Variable> Output::Of(const Context& ctx, Answer answer) {
  const auto executor = answer.executor();
  return Future<Variable>::From(
      std::make_shared<Output>(ctx.call_scope(), std::move(answer)), executor);
}

Output::Answer Output::AnswerBehind(const Context& ctx,
                                    const Future<Variable>& output) {
  const auto source = std::dynamic_pointer_cast<Output>(output.source());
  const bool known = source != nullptr && source->scope_ == ctx.call_scope();
  return known ? source->answer_ : Answer();
}

Future<Variable> Output::Bring() {
  return answer_.Then(
      [scope = scope_](const rpc::ValueOrRRef<Variable>& answer) {
        return answer.Fetch(scope);
      });
}

}  // namespace baton::dist
