// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/counter.h"

namespace baton::testing {

absl::StatusOr<std::unique_ptr<Counter>> Counter::Make(int start) {
  if (start < 0) return absl::InvalidArgumentError("starts below zero");
  return std::make_unique<Counter>(start);
}

absl::Status Counter::Check(bool fine) const {
  return fine ? absl::OkStatus() : absl::DataLossError("not fine");
}

Tensor Counter::Scale(const Tensor& x) const {
  Tensor y = x.Clone();
  for (int64_t i = 0; i < y.numel(); ++i) {
    y.data<float>()[i] *= static_cast<float>(value_.load());
  }
  return y;
}

absl::StatusOr<int> Counter::AddTo(rpc::CallContext& call, RRef<Counter> other,
                                   int n) {
  if (!other.confirmed()) return absl::InternalError("not confirmed");
  return other.Async<&Counter::Add>(call, n).Await();
}

int Sum(int a, int b) { return a + b; }

std::string WhoCalls(rpc::CallContext& call) { return call.caller().name; }

void FillCounter(rpc::Registry& registry) {
  registry.Add<Counter>();
  registry.AddFunction<&Sum>();
  registry.AddFunction<&WhoCalls>();
  registry.AddFunction<&Counter::AddTo>();
}

}  // namespace baton::testing
