// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/support/status_matchers.h"
#include "tools/view/cluster_tables.h"
#include "tools/view/table.h"

namespace baton::tools {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Fails;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;

int Twice(int x) { return 2 * x; }
int64_t Size(const Tensor& x) { return x.numel(); }

// Two workers that met at a rendezvous, over gRPC.
class ObserverTest : public ::testing::Test {
 protected:
  ObserverTest() : rendezvous_(*rpc::RendezvousServer::Make("127.0.0.1:0")) {
    auto bob = std::async(std::launch::async, [this] { return Join("bob"); });
    alice_ = Join("alice");
    bob_ = bob.get();
  }

  std::unique_ptr<rpc::Agent> Join(const std::string& name) {
    rpc::ClusterOptions options;
    options.name = name;
    options.rendezvous = rendezvous_->address();
    options.world_size = 2;
    options.rank = name == "alice" ? 0 : 1;
    rpc::Registry registry;
    registry.AddFunction<&Twice>();
    registry.AddFunction<&Size>();
    auto agent = rpc::JoinCluster(std::move(options), std::move(registry));
    EXPECT_THAT(agent, IsOk());
    return *std::move(agent);
  }

  std::unique_ptr<Observer> Look() {
    auto observer = Observer::Make({.rendezvous = rendezvous_->address()});
    EXPECT_THAT(observer, IsOk());
    return *std::move(observer);
  }

  const std::unique_ptr<rpc::RendezvousServer> rendezvous_;
  std::unique_ptr<rpc::Agent> alice_, bob_;
};

std::vector<std::string> ColumnOf(const rpc::View& table,
                                  const std::string& name) {
  std::vector<std::string> cells;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].name != name) continue;
    for (const auto& row : table.rows) cells.push_back(row[i]);
  }
  return cells;
}

TEST_F(ObserverTest, FindsAllByTheRendezvousAndByAnyWorker) {
  const std::string address = alice_->self().address;
  auto by_worker = Observer::Make({.worker = "alice=" + address});
  ASSERT_THAT(by_worker, IsOk());
  auto by_rendezvous = Look();
  for (Observer* observer : {by_worker->get(), by_rendezvous.get()}) {
    const auto reports = observer->Ask();
    ASSERT_THAT(reports, IsOk());
    const rpc::View table = WorkersTable(*reports);
    EXPECT_THAT(ColumnOf(table, "worker"), ElementsAre("alice", "bob"));
    EXPECT_THAT(ColumnOf(table, "state"), ElementsAre("idle", "idle"));
  }
}

TEST_F(ObserverTest, ShowsObjectsCallsTrafficAndChannels) {
  const RRef<int> held = alice_->Remote<&Twice>("bob", 21);
  ASSERT_EQ(*held.Fetch().Await(), 42);
  alice_->AddView("contexts", [] {
    return rpc::View{.name = "",
                     .columns = {{"creator", rpc::View::Unit::kText}},
                     .rows = {{"alice"}}};
  });
  auto observer = Look();
  const auto reports = observer->Ask();
  ASSERT_THAT(reports, IsOk());

  const rpc::View objects = ObjectsTable(*reports);
  EXPECT_THAT(ColumnOf(objects, "owner"), ElementsAre("bob"));
  EXPECT_THAT(ColumnOf(objects, "type"), ElementsAre("int"));
  EXPECT_THAT(ColumnOf(objects, "holders"), ElementsAre("alice"));
  EXPECT_THAT(ColumnOf(objects, "made_at"),
              ElementsAre(HasSubstr("observer_test.cc:")));
  const rpc::View methods = MethodsTable(*reports);
  EXPECT_THAT(ColumnOf(methods, "method"), Contains("Twice").Times(2));
  for (const std::string& p50 : ColumnOf(methods, "p50"))
    EXPECT_GT(std::stod(p50), 0);
  const rpc::View channels = ChannelsTable(*reports);
  EXPECT_THAT(ColumnOf(channels, "peer"), ElementsAre("bob", "alice"));
  EXPECT_THAT(ColumnOf(channels, "channel"), ElementsAre("grpc", "grpc"));
  const rpc::View contexts = ContributedTable(*reports, "contexts");
  EXPECT_THAT(ColumnOf(contexts, "worker"), ElementsAre("alice"));
  EXPECT_THAT(ColumnOf(contexts, "creator"), ElementsAre("alice"));
}

TEST_F(ObserverTest, ShowsWhatWentThroughSharedMemory) {
  auto observer = Look();
  const Tensor large = Tensor::Zeros({1 << 18});
  rpc::View table;
  // The first ones may go otherwise: it is opened beside them.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    ASSERT_THAT(alice_->Async<&Size>("bob", large).Await(), IsOk());
    const auto reports = observer->Ask();
    ASSERT_THAT(reports, IsOk());
    table = TensorChannelsTable(*reports);
    ASSERT_EQ(table.rows.size(), 4u) << TableText(table);
  } while (ColumnOf(table, "bytes_received")[2] == "0" &&
           std::chrono::steady_clock::now() < deadline);
  EXPECT_THAT(ColumnOf(table, "worker"),
              ElementsAre("alice", "alice", "bob", "bob"));
  EXPECT_THAT(ColumnOf(table, "channel"),
              ElementsAre("shared memory", "TCP", "shared memory", "TCP"));
  EXPECT_EQ(ColumnOf(table, "state")[0], "open");
  EXPECT_EQ(ColumnOf(table, "state")[1], "not open");
  EXPECT_EQ(ColumnOf(table, "why_not")[1],
            "shared memory is tried for this pair");
  EXPECT_EQ(ColumnOf(table, "bytes_sent")[0], "1048576") << TableText(table);
  EXPECT_EQ(ColumnOf(table, "bytes_received")[2], "1048576");
  EXPECT_EQ(ColumnOf(table, "tensors_sent")[2], "0");
}

TEST_F(ObserverTest, LeavesNothingBehind) {
  std::vector<std::string> observers;
  for (int i = 0; i < 3; ++i) {
    const auto observer = Look();
    ASSERT_THAT(observer->Ask(), IsOk());
    observers.push_back(observer->agent().self().name);
  }
  // Heard of as soon as its connections end.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (const std::string& name : observers) {
    while (alice_->Find(name).ok() &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_FALSE(alice_->Find(name).ok()) << name;
  }
  const rpc::DebugInfo info = alice_->GetDebugInfo();
  EXPECT_THAT(info.methods, IsEmpty());
  EXPECT_THAT(info.channels, IsEmpty());
  EXPECT_THAT(info.tensor_channels, IsEmpty());
}

TEST_F(ObserverTest, IsNoWorkerOfTheClusterThatItLooksAt) {
  auto observer = Look();
  ASSERT_THAT(observer->Ask(), IsOk());
  EXPECT_THAT(alice_->Find(observer->agent().self().name), IsOk());
  for (const rpc::Agent* agent : {alice_.get(), bob_.get()})
    EXPECT_THAT(agent->workers(), SizeIs(2)) << agent->self().name;
}

TEST_F(ObserverTest, AWorkerThatLeftIsStruckOffAndTheOthersShown) {
  auto observer = Look();
  ASSERT_THAT(observer->Ask(), IsOk());
  bob_->Shutdown({.timeout = std::chrono::milliseconds(500)}).IgnoreError();
  const auto reports = observer->Ask();
  ASSERT_THAT(reports, IsOk());
  const rpc::View table = WorkersTable(*reports);
  EXPECT_THAT(ColumnOf(table, "worker"), ElementsAre("alice"));
  EXPECT_THAT(ColumnOf(table, "state"), ElementsAre("idle"));
}

TEST_F(ObserverTest, AWorkerDoesNotNameThoseThatHaveLeft) {
  auto observer = Observer::Make({.worker = "alice=" + alice_->self().address});
  ASSERT_THAT(observer, IsOk());
  ASSERT_THAT(alice_->Async<&Twice>("bob", 1).Await(), IsOk());
  EXPECT_THAT(*(*observer)->Workers(), SizeIs(2));
  bob_->Shutdown({.timeout = std::chrono::milliseconds(500)}).IgnoreError();
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (alice_->Find("bob").ok() &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_THAT(*(*observer)->Workers(), SizeIs(1));
}

TEST(Observer, SaysWhatIsWrongWithWhatItWasGiven) {
  EXPECT_THAT(Observer::Make({}),
              Fails(absl::StatusCode::kInvalidArgument, "--rendezvous"));
  EXPECT_THAT(Observer::Make({.worker = "a=h:1,b=h:2"}),
              Fails(absl::StatusCode::kInvalidArgument, "names one"));
  auto observer = Observer::Make(
      {.worker = "a=127.0.0.1:1", .timeout = std::chrono::milliseconds(200)});
  ASSERT_THAT(observer, IsOk());
  EXPECT_THAT((*observer)->Ask(),
              Fails(absl::StatusCode::kUnavailable, "127.0.0.1:1"));
}

TEST(ClusterTables, AWorkerThatDoesNotAnswerHasItsReasonInItsLine) {
  const std::vector<WorkerReport> reports = {
      {.worker = {"bob", rpc::Rank{1}, 1, "h:1"},
       .status = absl::UnavailableError("nobody is there")}};
  const rpc::View table = WorkersTable(reports);
  EXPECT_THAT(ColumnOf(table, "state"), ElementsAre("no answer"));
  EXPECT_THAT(ColumnOf(table, "address"), ElementsAre("h:1"));
  EXPECT_THAT(ColumnOf(table, "detail"), ElementsAre("nobody is there"));
  // Nothing stands behind what may be long.
  EXPECT_EQ(table.columns.back().name, "detail");
}

}  // namespace
}  // namespace baton::tools
