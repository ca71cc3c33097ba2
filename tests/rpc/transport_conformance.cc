// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/transport_conformance.h"

#include <algorithm>
#include <cstring>
#include <ostream>

namespace baton::rpc {

Tensor Pattern(int64_t bytes, int first) {
  Tensor tensor = Tensor::Empty({bytes}, {.dtype = DType::kU8});
  constexpr int64_t kPeriod = 251;
  auto* data = static_cast<uint8_t*>(tensor.raw_data());
  for (int64_t i = 0; i < std::min(bytes, kPeriod); ++i) {
    data[i] = static_cast<uint8_t>((i + first) % kPeriod);
  }
  // The rest by copies, which sanitizers do not slow down.
  for (int64_t done = kPeriod; done < bytes; done *= 2) {
    std::memcpy(data + done, data,
                static_cast<size_t>(std::min(done, bytes - done)));
  }
  return tensor;
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  const Tensor x = a.Contiguous(), y = b.Contiguous();
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (x.nbytes() == 0 ||
          std::memcmp(x.raw_data(), y.raw_data(), x.nbytes()) == 0);
}

void PrintTo(const TransportKind& kind, std::ostream* out) {
  *out << kind.name;
}

std::unique_ptr<TestWorker> TransportConformance::NewWorker(
    const std::string& name, int rank) {
  if (!make_) make_ = GetParam().network();
  return std::make_unique<TestWorker>(name, rank, make_());
}

void TransportConformance::MakePair() {
  alice_ = NewWorker("alice", 0);
  bob_ = NewWorker("bob", 1);
  alice_->transport->AddPeer(bob_->info);
  bob_->transport->AddPeer(alice_->info);
  alice_->Start();
  bob_->Start();
}

void TransportConformance::AwaitChannel() {
  if (GetParam().channel.empty()) return;
  ASSERT_TRUE(alice_->SendTo("bob", {"hello", {}}).ok());
  for (TestWorker* worker : {alice_.get(), bob_.get()}) {
    EXPECT_TRUE(worker->AwaitChannel(GetParam().channel));
    if (GetParam().rings) {
      EXPECT_TRUE(worker->AwaitRings());
    }
  }
}

}  // namespace baton::rpc
