// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/ops/arithmetic.h"
#include "core/ops/optimizer.h"
#include "rpc/agent.h"
#include "tests/rpc/transport_conformance.h"
#include "tests/support/local_cluster.h"

// A tensor may be written in place as soon as it has been sent; the receiver
// gets the values that it had.
namespace baton::rpc {
namespace {

constexpr int64_t kLarge = int64_t{4} << 20;  // elements, 16 MB

int64_t CountOthers(const Tensor& x, double value) {
  const std::vector<float> values = x.ToVector<float>();
  // Where all are equal, each is the next one: sanitizers slow loops down.
  if (!values.empty() && values.front() == static_cast<float>(value) &&
      std::memcmp(values.data(), values.data() + 1,
                  (values.size() - 1) * sizeof(float)) == 0) {
    return 0;
  }
  return x.numel() -
         std::count(values.begin(), values.end(), static_cast<float>(value));
}

// In-place writes of several kinds, each of which adds 1 to every element.
void AddOne(const Tensor& x, int how) {
  const Tensor one = Tensor::Ones(x.shape());
  switch (how % 4) {
    case 0:
      x.Fill(x.Select(0, 0).Item() + 1);
      return;
    case 1:
      ops::AddInto(x, one, 1);
      return;
    case 2:
      ops::OptimizerStep({{{{.value = x, .grad = one}},
                           ops::SgdRule{.lr = 1, .maximize = true}}});
      return;
    default:
      x.CopyFrom(Tensor::Full(x.shape(), x.Select(0, 0).Item() + 1));
  }
}

// What bob has.
class Weights {
 public:
  Tensor values() const { return values_; }
  void Step(int how) { AddOne(values_, how); }
  int64_t CountOthersIn(const Tensor& x, double value) const {
    return CountOthers(x, value);
  }
  using Exports =
      Methods<&Weights::values, &Weights::Step, &Weights::CountOthersIn>;

 private:
  const Tensor values_ = Tensor::Zeros({kLarge});
};

int64_t CountOthersInAll(const std::vector<Tensor>& all, double value) {
  int64_t others = 0;
  for (const Tensor& x : all) others += CountOthers(x, value);
  return others;
}
Tensor Shared() {
  static const Tensor shared = Tensor::Zeros({kLarge});
  return shared;
}
std::unique_ptr<Weights> NewWeights() { return std::make_unique<Weights>(); }
void StepShared(int how) { AddOne(Shared(), how); }

class MakerOfKind final : public baton::testing::TransportMaker {
 public:
  explicit MakerOfKind(const TransportKind& kind) : make_(kind.network()) {}
  std::unique_ptr<Transport> Make(const Registry&) override { return make_(); }

 private:
  const std::function<std::unique_ptr<Transport>()> make_;
};

// Handlers run in the order of the calls, one at a time while none waits.
baton::testing::ClusterOptions OfOneThread(const TransportKind& kind) {
  return {.fill =
              [](Registry& registry) {
                registry.Add<Weights>();
                registry.AddFunction<&CountOthers>();
                registry.AddFunction<&CountOthersInAll>();
                registry.AddFunction<&NewWeights>();
                registry.AddFunction<&Shared>();
                registry.AddFunction<&StepShared>();
              },
          .worker_threads = 1,
          .lease = std::chrono::seconds(10),
          .transports = [kind] { return std::make_unique<MakerOfKind>(kind); }};
}

}  // namespace

TEST_P(TransportConformance, WritesRightAfterSendAreNotSeen) {
  MakePair();
  SentLog log;
  constexpr int kCount = 8;  // the first before there is a connection
  const Tensor tensor = Tensor::Zeros({kLarge});
  const Tensor small = Tensor::Zeros({25});
  for (int i = 0; i < kCount; ++i) {
    if (i == 1) AwaitChannel();
    alice_->transport->Send("bob", {"", {tensor, small}}, log.Next());
    AddOne(tensor, i);
    AddOne(small, i);
  }
  std::array<int, kCount> found{};
  const size_t hello = GetParam().channel.empty() ? 0 : 1;
  for (const auto& letter : bob_->mailbox.Await(kCount + hello)) {
    if (letter.message.tensors.empty()) continue;
    const double value = letter.message.tensors[0].Select(0, 0).Item();
    for (const Tensor& got : letter.message.tensors)
      EXPECT_EQ(CountOthers(got, value), 0);
    ++found.at(static_cast<size_t>(value));
  }
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(found[i], 1) << i;
  EXPECT_EQ(CountOthers(tensor, kCount), 0);
}

TEST_P(TransportConformance, NothingButWhatIsReceivedIsAllocatedToSend) {
  MakePair();
  AwaitChannel();
  const Tensor tensor = Tensor::Ones({kLarge});
  const MemoryStats before = CpuMemoryStats();
  // The peak is what is alive with this.
  const Tensor ballast = Tensor::Empty(
      {static_cast<int64_t>(before.peak_bytes - before.live_bytes)},
      {.dtype = DType::kU8});
  const size_t peak = CpuMemoryStats().peak_bytes;
  ASSERT_TRUE(alice_->SendTo("bob", {"", {tensor}}).ok());
  const auto letters = bob_->mailbox.Await(GetParam().channel.empty() ? 1 : 2);
  EXPECT_EQ(CountOthers(letters.back().message.tensors.at(0), 1), 0);
  EXPECT_LE(CpuMemoryStats().peak_bytes - peak, tensor.nbytes() + (1 << 20));
}

TEST_P(TransportConformance, WritesRightAfterAsyncAreNotSeen) {
  baton::testing::LocalCluster cluster(OfOneThread(GetParam()));
  Agent& alice = cluster["alice"];
  const Tensor x = Tensor::Zeros({kLarge});
  std::vector<Future<int64_t>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(alice.Async<&CountOthers>("bob", x, i));
    AddOne(x, i);
  }
  for (const auto& count : others) EXPECT_EQ(count.Await().value_or(-1), 0);
  cluster.ExpectIdle();
}

TEST_P(TransportConformance, WritesRightAfterAnAnswerAreNotSeen) {
  baton::testing::LocalCluster cluster(OfOneThread(GetParam()));
  Agent& alice = cluster["alice"];
  for (const std::string of : {"bob", "alice"}) {
    SCOPED_TRACE(of);
    const RRef<Weights> weights = alice.Remote<&NewWeights>(of);
    const double first = Shared().Select(0, 0).Item();
    const RRef<Tensor> shared = alice.Remote<&Shared>(of);
    for (const auto& ready : {shared.Ready(), weights.Ready()})
      ASSERT_TRUE(ready.Await().ok());
    std::vector<Future<Tensor>> fetched, answers;
    for (int i = 0; i < 4; ++i) {
      fetched.push_back(shared.Fetch());
      answers.push_back(weights.Async<&Weights::values>());
      EXPECT_TRUE(alice.Async<&StepShared>(of, i).Await().ok());
      EXPECT_TRUE(weights.Async<&Weights::Step>(i).Await().ok());
    }
    for (int i = 0; i < 4; ++i) {
      const auto values = fetched[i].Await(), answer = answers[i].Await();
      ASSERT_TRUE(values.ok() && answer.ok()) << values.status();
      EXPECT_EQ(CountOthers(*values, first + i), 0) << i;
      EXPECT_EQ(CountOthers(*answer, i), 0) << i;
    }
  }
}

TEST_P(TransportConformance, WritesBeforeTheObjectIsKnownAreNotSeen) {
  baton::testing::LocalCluster cluster(OfOneThread(GetParam()));
  for (const int64_t size : {int64_t{100}, kLarge}) {
    const Tensor x = Tensor::Ones({size});
    for (const std::string to : {"bob", "alice"}) {
      const auto object = cluster["alice"].Remote<&NewWeights>(to);
      const auto others = object.Async<&Weights::CountOthersIn>(x, 1);
      x.Fill(2);
      EXPECT_EQ(others.Await().value_or(-1), 0)
          << size << " elements to " << to;
      x.Fill(1);
    }
  }
}

TEST_P(TransportConformance, WritesBeforeAnotherArgumentIsThereAreNotSeen) {
  baton::testing::LocalCluster cluster(OfOneThread(GetParam()));
  const Tensor x = Tensor::Ones({kLarge});
  const Tensor small = Tensor::Ones({2, 3}).Transpose(0, 1);
  for (const std::string to : {"bob", "alice"}) {
    const Promise<double> value;
    const auto others = cluster["alice"].Async<&CountOthersInAll>(
        to, std::vector<Tensor>{x, small}, value.future());
    x.Fill(2);
    small.Fill(2);
    value.Set(1.0);
    EXPECT_EQ(others.Await().value_or(-1), 0) << to;
    x.Fill(1);
    small.Fill(1);
  }
}

}  // namespace baton::rpc
