// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/soak/soak_load.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::testing {
namespace {

constexpr int kUnderWay = 32;
constexpr int64_t kSmall = 16;       // floats: 64 bytes
constexpr int64_t kLarge = 1 << 18;  // 1 MB
constexpr int kLargeInHundred = 5;
constexpr int kEmptyInHundred = 50;

void Nothing() {}
Tensor Echo(const Tensor& tensor) { return tensor; }
int64_t Size(const Tensor& tensor) { return tensor.numel(); }
// Asks the owner, whoever that is.
Future<int64_t> Look(rpc::CallContext& call, RRef<Tensor> there) {
  return there.Fetch(call).Then(&Size);
}

absl::Status Expect(const Tensor& tensor, int64_t elements, float value) {
  const bool right = tensor.numel() == elements &&
                     tensor.data<float>()[0] == value &&
                     tensor.data<float>()[elements - 1] == value;
  return right ? absl::OkStatus()
               : absl::DataLossError(absl::StrCat(
                     "not ", elements, " elements of the value ", value));
}

}  // namespace

void SoakLoad::FillRegistry(rpc::Registry& registry) {
  registry.AddFunction<&Nothing>();
  registry.AddFunction<&Echo>();
  registry.AddFunction<&Look>();
}

SoakLoad::SoakLoad(rpc::Agent& agent) : agent_(agent) {
  for (const rpc::WorkerInfo& worker : agent.workers()) {
    if (worker.name != agent.self().name) others_.push_back(worker.name);
  }
}

const std::string& SoakLoad::Other(Random& random) const {
  return others_[random() % others_.size()];
}

Future<void> SoakLoad::Echoed(const std::string& worker, int64_t elements,
                              float value) {
  // The large ones go in place while there is room, and come back by copy.
  Tensor tensor = agent_.EmptyFor(worker, {elements}).value();
  tensor.Fill(value);
  return agent_.Async<&Echo>(worker, std::move(tensor))
      .Then([elements, value](const Tensor& tensor) {
        return Expect(tensor, elements, value);
      });
}

Future<void> SoakLoad::Call(Random& random) {
  const auto kind = static_cast<int>(random() % 100);
  const auto value = static_cast<float>(random() % 1000);
  const std::string& worker = Other(random);
  if (kind < kEmptyInHundred) return agent_.Async<&Nothing>(worker);
  return Echoed(worker, kind < 100 - kLargeInHundred ? kSmall : kLarge, value);
}

// The handle here may go before the other worker's has come to be.
Future<void> SoakLoad::Life(Random& random) {
  const auto value = static_cast<float>(random() % 1000);
  const RRef<Tensor> there =
      agent_.Remote<&Echo>(Other(random), Tensor::Full({kSmall}, value));
  const Future<int64_t> seen = agent_.Async<&Look>(Other(random), there);
  return there.Fetch().Then([seen, value](const Tensor& home) {
    absl::Status status = Expect(home, kSmall, value);
    return seen.Then([status = std::move(status)](int64_t size) {
      if (size == kSmall) return status;
      return absl::Status(absl::DataLossError("another size was seen"));
    });
  });
}

absl::Status SoakLoad::Run(int calls, int rrefs, uint64_t seed) {
  Random random(seed);
  while (calls + rrefs > 0) {
    std::vector<Future<void>> under_way;
    while (calls + rrefs > 0 && under_way.size() < kUnderWay) {
      const bool life = random() % static_cast<uint64_t>(calls + rrefs) <
                        static_cast<uint64_t>(rrefs);
      under_way.push_back(life ? Life(random) : Call(random));
      --(life ? rrefs : calls);
    }
    RETURN_IF_ERROR(WaitAll(under_way).Await());
  }
  return absl::OkStatus();
}

}  // namespace baton::testing
