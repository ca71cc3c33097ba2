// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>

#include "core/ops/matmul.h"
#include "rpc/agent.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

// Many calls and large ones, handlers that call on, and calls that cannot work.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using ::testing::AnyOf;
using ::testing::ElementsAre;

Tensor Square(const Tensor& x) { return ops::Matmul(x, x); }

int Sink(std::vector<Tensor> tensors, std::string text) {
  return static_cast<int>(tensors.size() + text.size());
}

// Goes around the ring; each answers before the next has.
Promise<int>* arrived = nullptr;
void Hop(rpc::CallContext& call, int hops) {
  if (hops == 0) {
    arrived->Set(static_cast<int>(call.agent().self().rank));
    return;
  }
  const int size = static_cast<int>(call.agent().workers().size());
  const int next = (static_cast<int>(call.agent().self().rank) + 1) % size;
  call.agent()
      .Async<&Hop>(rpc::Rank{next}, hops - 1)
      .OnReady([](const absl::Status& status) {
        if (!status.ok()) arrived->Set(status);
      });
}

// Answers every trainer of a round with the sum of their gradients, once all
// of them have come. No thread waits.
class Server {
 public:
  explicit Server(int trainers) : trainers_(trainers) {}
  Future<Tensor> Reduce(const Tensor& gradient) {
    Promise<Tensor> full;
    Future<Tensor> answer;
    Tensor sum;
    {
      MutexLock lock(mutex_);
      if (came_ == 0) sum_ = Tensor::Zeros(gradient.shape());
      for (int64_t i = 0; i < gradient.numel(); ++i) {
        sum_.data<float>()[i] += gradient.data<float>()[i];
      }
      answer = round_.future();
      if (++came_ < trainers_) return answer;
      came_ = 0;
      full = std::exchange(round_, Promise<Tensor>());
      sum = sum_;
    }
    full.Set(sum);
    return answer;
  }
  using Exports = rpc::Methods<rpc::kConstructor<int>, &Server::Reduce>;

 private:
  const int trainers_;
  Mutex mutex_;
  int came_ ABSL_GUARDED_BY(mutex_) = 0;
  Tensor sum_ ABSL_GUARDED_BY(mutex_);
  Promise<Tensor> round_ ABSL_GUARDED_BY(mutex_);
};

// Some rounds of a trainer, at its own worker.
absl::StatusOr<Tensor> Train(rpc::CallContext& call, RRef<Server> server,
                             float gradient, int rounds) {
  Tensor last;
  for (int i = 0; i < rounds; ++i) {
    ASSIGN_OR_RETURN(
        last,
        server.Async<&Server::Reduce>(call, Tensor::Full({2}, gradient + i))
            .Await());
  }
  return last;
}

void FillForStress(rpc::Registry& registry) {
  FillCounter(registry);
  registry.Add<Server>()
      .AddFunction<&Square>()
      .AddFunction<&Sink>()
      .AddFunction<&Hop>()
      .AddFunction<&Train>();
}

class StressTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  ~StressTest() override { cluster_.ExpectIdle(); }
  LocalCluster cluster_{{.names = {"alice", "bob", "carol"},
                         .fill = &FillForStress,
                         .transports = MakerOf(GetParam())}};
  rpc::Agent& alice_ = cluster_["alice"];
};
INSTANTIATE_TEST_SUITE_P(, StressTest, kTransports, TransportName);

TEST_P(StressTest, LightCallsFromAllToAll) {
  std::vector<std::thread> threads;
  for (size_t from = 0; from < cluster_.size(); ++from) {
    threads.emplace_back([&, from] {
      std::vector<Future<int>> sums;
      for (int i = 0; i < 3000; ++i) {
        sums.push_back(cluster_[from].Async<&Sum>(rpc::Rank{i % 3}, i, 7));
      }
      auto all = WaitAll(sums).Await();
      ASSERT_THAT(all, IsOk());
      for (int i = 0; i < 3000; ++i) EXPECT_EQ((*all)[i], i + 7);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(StressTest, HeavyComputationsOverlap) {
  constexpr int64_t kSize = 256;
  std::vector<Future<Tensor>> squares;
  for (int i = 0; i < 24; ++i) {
    squares.push_back(alice_.Async<&Square>(
        rpc::Rank{i % 3}, Tensor::Full({kSize, kSize}, 1 + i % 2)));
  }
  auto all = WaitAll(squares).Await();
  ASSERT_THAT(all, IsOk());
  for (int i = 0; i < 24; ++i) {
    const float expected = i % 2 == 0 ? 1 : 4;
    EXPECT_EQ((*all)[i].Flatten().Select(0, kSize).Item(), expected * kSize);
  }
}

TEST_P(StressTest, HeavyPayloadsOfManyTensors) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < 64; ++i) {
    tensors.push_back(Tensor::Full({1 + i * 1000}, i));
  }
  const std::string text(1 << 20, 'x');
  std::vector<Future<int>> calls;
  for (int i = 0; i < 6; ++i) {
    calls.push_back(alice_.Async<&Sink>(rpc::Rank{i % 3}, tensors, text));
  }
  for (const Future<int>& call : calls) {
    EXPECT_EQ(call.Await().value_or(-1), 64 + (1 << 20));
  }
}

TEST_P(StressTest, AChainThatNobodyAwaitsEnds) {
  Promise<int> end;
  arrived = &end;
  EXPECT_THAT(alice_.Async<&Hop>("bob", 100).Await(), IsOk());
  auto rank = end.future().Await(8s);
  ASSERT_THAT(rank, IsOk());
  EXPECT_EQ(*rank, 101 % 3);
}

TEST_P(StressTest, AParameterServerAnswersAllTrainersOfARoundAtOnce) {
  RRef<Server> server = *rpc::Create<Server>(alice_, "alice", 3).Await();
  std::vector<Future<Tensor>> trainers;
  for (int rank = 0; rank < 3; ++rank) {
    trainers.push_back(alice_.Async<&Train>(rpc::Rank{rank}, server,
                                            static_cast<float>(10 * rank), 20));
  }
  for (const Future<Tensor>& trainer : trainers) {
    auto last = trainer.Await();
    ASSERT_THAT(last, IsOk());
    EXPECT_THAT(last->ToVector<float>(), ElementsAre(87, 87));  // 30 + 3 * 19
  }
}

TEST_P(StressTest, AResultMayGoOnFromThreadToThread) {
  Future<int> sum = alice_.Async<&Sum>("bob", 0, 0);
  for (int i = 1; i <= 200; ++i) {
    sum = sum.Then([this, i](int before) {
      return alice_.Async<&Sum>(rpc::Rank{i % 3}, before, 1);
    });
  }
  EXPECT_EQ(sum.Await().value_or(-1), 200);
}

TEST_P(StressTest, OneFailureAmongManyEndsTheWaitAtOnce) {
  RRef<Server> server = *rpc::Create<Server>(alice_, "bob", 2).Await();
  // Waits for a second trainer, which comes last.
  Future<Tensor> waiting = server.Async<&Server::Reduce>(Tensor::Ones({1}));
  Future<void> failing = alice_.Async<&Sum>("nobody", 1, 2).Then([](int) {});
  Future<void> all = WaitAll({waiting.Then([](const Tensor&) {}), failing});
  EXPECT_THAT(all.Await(20s), Fails(StatusCode::kNotFound, "nobody"));
  EXPECT_FALSE(waiting.ready());
  EXPECT_THAT(server.Async<&Server::Reduce>(Tensor::Ones({1})).Await(), IsOk());
  EXPECT_THAT(waiting.Await(), IsOk());
}

TEST_P(StressTest, CallsToADeadWorkerFailAndOthersWork) {
  ASSERT_THAT(alice_.Async<&Sum>("bob", 1, 2).Await(), IsOk());
  cluster_.Kill("bob");
  for (int i = 0; i < 3; ++i) {
    auto sum = alice_.Async<&Sum>("bob", {.timeout = 200ms}, 1, 2).Await();
    EXPECT_THAT(sum, AnyOf(Fails(StatusCode::kUnavailable, "bob, Sum"),
                           Fails(StatusCode::kDeadlineExceeded, "bob, Sum")));
    RRef<int> kept =
        alice_.Remote<&Sum>("bob", rpc::CallOptions{.timeout = 200ms}, 1, 2);
    EXPECT_FALSE(kept.Fetch().Await(5s).ok());
  }
  EXPECT_EQ(alice_.Async<&Sum>("carol", 1, 2).Await().value_or(-1), 3);
}

TEST_P(StressTest, HandlersThatAnswerLaterHoldNoThread) {
  RRef<Server> server = *rpc::Create<Server>(alice_, "bob", 201).Await();
  std::vector<Future<Tensor>> waiting;
  for (int i = 0; i < 200; ++i) {
    waiting.push_back(server.Async<&Server::Reduce>(Tensor::Ones({1})));
  }
  EXPECT_EQ(alice_.Async<&Sum>("bob", 1, 2).Await().value_or(-1), 3);
  EXPECT_FALSE(waiting[0].ready());
  ASSERT_THAT(server.Async<&Server::Reduce>(Tensor::Ones({1})).Await(), IsOk());
  for (const Future<Tensor>& one : waiting) {
    EXPECT_EQ(one.Await()->Select(0, 0).Item(), 201);
  }
}

}  // namespace
}  // namespace baton::testing
