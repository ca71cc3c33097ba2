// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What an agent tells of itself: traffic and latency by method, where objects
// were made, what other layers show, traces.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <utility>

#include "rpc/histogram.h"
#include "rpc/introspection.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

void SlowCall(rpc::CallContext&) {
  // Long enough to stand out, short enough for a test: a wait that times out.
  Gate().Await(std::chrono::milliseconds(30));
}

class Recording : public ::testing::TestWithParam<TransportKind> {
 protected:
  Recording()
      : cluster_({.fill =
                      [](rpc::Registry& registry) {
                        FillCounter(registry);
                        registry.AddFunction<&SlowCall>();
                      },
                  .transports = MakerOf(GetParam())}),
        alice_(cluster_["alice"]),
        bob_(cluster_["bob"]) {}

  static const rpc::MethodStats* Find(const rpc::DebugInfo& info,
                                      const std::string& method) {
    for (const rpc::MethodStats& stats : info.methods) {
      if (stats.method == method) return &stats;
    }
    return nullptr;
  }

  LocalCluster cluster_;
  rpc::Agent& alice_;
  rpc::Agent& bob_;
};

INSTANTIATE_TEST_SUITE_P(Transports, Recording, kTransports, TransportName);

TEST_P(Recording, CountsCallsBytesAndFailuresOnBothSides) {
  const auto counter = *rpc::Create<Counter>(alice_, "bob", 2).Await();
  const Tensor x = Tensor::Ones({1000});
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(counter.Async<&Counter::Scale>(x).Await(), IsOk());
  EXPECT_FALSE(counter.Async<&Counter::Check>(false).Await().ok());
  const rpc::DebugInfo caller = alice_.GetDebugInfo();
  const rpc::DebugInfo callee = bob_.GetDebugInfo();
  for (const auto* info : {&caller, &callee}) {
    const bool incoming = info == &callee;
    const rpc::MethodStats* scale = Find(*info, "Counter::Scale");
    ASSERT_NE(scale, nullptr);
    EXPECT_EQ(scale->peer, incoming ? "alice" : "bob");
    EXPECT_EQ(scale->incoming, incoming);
    EXPECT_EQ(scale->calls, 5u);
    EXPECT_EQ(scale->failed, 0u);
    EXPECT_GE(scale->bytes_sent, 5 * x.nbytes());
    EXPECT_GE(scale->bytes_received, 5 * x.nbytes());
    EXPECT_LT(scale->bytes_sent, 6 * x.nbytes());
    EXPECT_EQ(std::accumulate(scale->latency.begin(), scale->latency.end(),
                              uint64_t{0}),
              5u);
    const rpc::MethodStats* check = Find(*info, "Counter::Check");
    ASSERT_NE(check, nullptr);
    EXPECT_EQ(check->calls, 1u);
    EXPECT_EQ(check->failed, 1u);
  }
}

TEST_P(Recording, LatencyIsWhatTheCallTook) {
  ASSERT_THAT(alice_.Async<&SlowCall>("bob").Await(), IsOk());
  for (const rpc::Agent* agent : {&alice_, &bob_}) {
    const rpc::DebugInfo info = agent->GetDebugInfo();
    const rpc::MethodStats* slow = Find(info, "SlowCall");
    ASSERT_NE(slow, nullptr);
    EXPECT_GE(slow->total_us, 30'000u);
    EXPECT_GE(rpc::QuantileUs(slow->latency, 0.99), 30'000 * 7 / 8);
  }
}

TEST_P(Recording, CallsOfAllTypesOfFetchCountAsOne) {
  const auto one = alice_.Remote<&Sum>("bob", 1, 2);
  EXPECT_THAT(one.Fetch().Await(), IsOk());
  EXPECT_NE(Find(alice_.GetDebugInfo(), "RRef::Fetch"), nullptr);
  EXPECT_NE(Find(bob_.GetDebugInfo(), "RRef::Fetch"), nullptr);
}

TEST_P(Recording, ObjectsTellWhereTheyWereMadeAndWhatTheyHold) {
  const int line = __LINE__ + 1;
  const auto remote = alice_.Remote<&Sum>("bob", 1, 2);
  const auto counter = *rpc::Create<Counter>(alice_, "bob", 2).Await();
  const auto scaled = counter.Remote<&Counter::Scale>(Tensor::Ones({1000}));
  ASSERT_THAT(scaled.Ready().Await(), IsOk());
  ASSERT_THAT(remote.Ready().Await(), IsOk());
  std::map<std::string, rpc::ObjectInfo> objects;
  for (const auto& object : bob_.GetDebugInfo().objects)
    objects[object.type] = object;
  ASSERT_EQ(objects.size(), 3u);
  const std::string file = "recording_test.cc:";
  EXPECT_EQ(objects["int"].made_at, file + std::to_string(line));
  EXPECT_EQ(objects["int"].made_by, "alice");
  EXPECT_EQ(objects["int"].bytes, 4);
  EXPECT_EQ(objects["Counter"].made_at, file + std::to_string(line + 1));
  EXPECT_EQ(objects["Counter"].bytes, -1);
  EXPECT_EQ(objects["Tensor"].made_at, "Counter::Scale");
  EXPECT_EQ(objects["Tensor"].bytes, 4000);
}

TEST_P(Recording, LocalObjectsTellItToo) {
  const int line = __LINE__ + 1;
  const auto mine = RRef<Tensor>::Make(alice_, Tensor::Ones({10}));
  const auto made = alice_.Remote<&Sum>("alice", 1, 2);
  ASSERT_THAT(made.Ready().Await(), IsOk());
  for (const auto& object : alice_.GetDebugInfo().objects) {
    const bool tensor = object.type == "Tensor";
    EXPECT_EQ(object.made_at,
              "recording_test.cc:" + std::to_string(tensor ? line : line + 1));
    EXPECT_EQ(object.made_by, "alice");
    EXPECT_EQ(object.bytes, tensor ? 40 : 4);
  }
}

TEST_P(Recording, AShutdownSaysWhereWhatItLeftBehindWasMade) {
  const int line = __LINE__ + 1;
  const auto leaked = *rpc::Create<Counter>(alice_, "bob", 2).Await();
  const absl::Status left =
      bob_.Shutdown({.timeout = std::chrono::milliseconds(100)});
  EXPECT_THAT(std::string(left.message()),
              HasSubstr("held by alice, made by alice at recording_test.cc:" +
                        std::to_string(line)));
}

TEST_P(Recording, AnotherLayersTableIsShown) {
  bob_.AddView("colours", [] {
    return rpc::View{.name = "",
                     .columns = {{"colour", rpc::View::Unit::kText}},
                     .rows = {{"red"}, {"blue"}}};
  });
  const auto info = alice_.Async<&rpc::Introspection::Describe>("bob").Await();
  ASSERT_THAT(info, IsOk());
  ASSERT_EQ(info->views.size(), 1u);
  EXPECT_EQ(info->views[0].name, "colours");
  EXPECT_EQ(info->views[0].rows[1][0], "blue");
}

TEST_P(Recording, TheChannelIsNamed) {
  ASSERT_EQ(*alice_.Async<&Sum>("bob", 1, 2).Await(), 3);
  const auto channels = alice_.GetDebugInfo().channels;
  ASSERT_EQ(channels.size(), 1u);
  EXPECT_EQ(channels[0].peer, "bob");
  EXPECT_EQ(channels[0].name,
            GetParam() == TransportKind::kInProcess ? "in-process" : "grpc");
}

TEST_P(Recording, ATraceHasBothSidesOfEachCallUnderOneNumber) {
  ASSERT_EQ(*alice_.Async<&Sum>("bob", 1, 2).Await(), 3);
  for (rpc::Agent* agent : {&alice_, &bob_}) {
    agent->tracer()->Start(
        100, rpc::Tracer::Clock::now() + std::chrono::seconds(60));
  }
  ASSERT_EQ(*alice_.Async<&Sum>("bob", 1, 2).Await(), 3);
  ASSERT_FALSE(
      alice_.Async<&Counter::AddTo>("bob", RRef<Counter>(), 1).Await().ok());
  const auto made = alice_.tracer()->Take().events;
  const auto served = bob_.tracer()->Take().events;
  ASSERT_EQ(made.size(), 2u);
  ASSERT_EQ(served.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(made[i].kind, rpc::TraceEvent::Kind::kCall);
    EXPECT_EQ(served[i].kind, rpc::TraceEvent::Kind::kServe);
    EXPECT_EQ(made[i].name, served[i].name);
    EXPECT_EQ(made[i].number, served[i].number);
    EXPECT_EQ(made[i].peer, "bob");
    EXPECT_EQ(served[i].peer, "alice");
    EXPECT_EQ(made[i].ok, i == 0);
    EXPECT_EQ(served[i].ok, i == 0);
    // One clock here.
    EXPECT_LE(made[i].begin_ns, made[i].mid_ns);
    EXPECT_LE(made[i].mid_ns, served[i].begin_ns);
    EXPECT_LE(served[i].begin_ns, served[i].mid_ns);
    EXPECT_LE(served[i].mid_ns, served[i].end_ns);
    EXPECT_LE(served[i].end_ns, made[i].end_ns);
  }
  EXPECT_GT(made[0].request_bytes, 0u);
  EXPECT_EQ(made[0].request_bytes, served[0].request_bytes);
  EXPECT_EQ(made[0].answer_bytes, served[0].answer_bytes);
}

TEST(Tracer, KeepsNothingWhileItIsOff) {
  rpc::Tracer tracer;
  bool asked = false;
  {
    const rpc::TraceSpan span(tracer, "track", [&] {
      asked = true;
      return std::string("work");
    });
  }
  tracer.Add({});
  EXPECT_FALSE(asked);
  EXPECT_THAT(tracer.Take().events, IsEmpty());
}

TEST(Tracer, EndsAtItsLimitAndByItself) {
  rpc::Tracer tracer;
  const auto now = rpc::Tracer::Clock::now();
  tracer.Start(2, now + std::chrono::seconds(60));
  for (int i = 0; i < 5; ++i) {
    const rpc::TraceSpan span(tracer, "track",
                              [&] { return std::to_string(i); });
  }
  const rpc::TraceLog log = tracer.Take();
  ASSERT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.events[1].name, "1");
  EXPECT_EQ(log.events[1].peer, "track");
  EXPECT_LE(log.events[1].begin_ns, log.events[1].end_ns);
  EXPECT_EQ(log.dropped, 3u);
  tracer.Start(2, now - std::chrono::seconds(1));
  tracer.Add({});
  EXPECT_FALSE(tracer.on());
  EXPECT_THAT(tracer.Take().events, IsEmpty());
}

rpc::TraceEvent Ended(std::string name, int64_t at) {
  return {.name = std::move(name), .peer = "track", .end_ns = at};
}

// Counts how it is called, and gives two events that ended at 1 and at 3.
class CountingSource final : public rpc::TraceSource {
 public:
  void Start(size_t limit) override {
    ++starts;
    last_limit = limit;
    running = true;
  }
  rpc::TraceLog Take() override {
    rpc::TraceLog log;
    if (!std::exchange(running, false)) return log;
    log.events = {Ended("first", 1), Ended("third", 3)};
    log.dropped = 5;
    log.notes = {"note"};
    return log;
  }
  int starts = 0;
  size_t last_limit = 0;
  bool running = false;
};

TEST(Tracer, TakesWhatItsSourcesRecordedMeanwhile) {
  rpc::Tracer tracer;
  const auto source = std::make_shared<CountingSource>();
  tracer.AddSource(source);
  EXPECT_THAT(tracer.Take().events, IsEmpty());
  EXPECT_EQ(source->starts, 0);
  const auto later = rpc::Tracer::Clock::now() + std::chrono::seconds(60);
  tracer.Start(7, later);
  tracer.Start(9, later);  // it is on
  EXPECT_EQ(source->starts, 1);
  EXPECT_EQ(source->last_limit, 7u);
  tracer.Add(Ended("second", 2));
  const rpc::TraceLog log = tracer.Take();
  ASSERT_EQ(log.events.size(), 3u);
  EXPECT_EQ(log.events[0].name, "first");
  EXPECT_EQ(log.events[1].name, "second");
  EXPECT_EQ(log.events[2].name, "third");
  EXPECT_EQ(log.dropped, 5u);
  EXPECT_THAT(log.notes, ::testing::ElementsAre("note"));
  EXPECT_FALSE(source->running);
  EXPECT_THAT(tracer.Take().events, IsEmpty());
}

TEST(Tracer, EndsItsSourcesWhenItEndsByItself) {
  rpc::Tracer tracer;
  const auto source = std::make_shared<CountingSource>();
  tracer.AddSource(source);
  tracer.Start(2, rpc::Tracer::Clock::now() - std::chrono::seconds(1));
  EXPECT_TRUE(source->running);
  tracer.Add({});
  EXPECT_FALSE(source->running);
  EXPECT_THAT(tracer.Take().events, IsEmpty());
}

}  // namespace
}  // namespace baton::testing
