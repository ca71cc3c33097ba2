// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/exports.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "core/status.h"
#include "rpc/agent.h"
#include "rpc/rref.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using absl::StatusCode;
using testing::Fails;

// An object that is made by its constructor, which knows who calls.
class Ticket {
 public:
  Ticket(const CallContext& call, std::string text, int64_t count)
      : text_(call.caller().name + ": " + std::move(text)) {
    Require(count > 0, "ticket", "no seats");
  }
  std::string Text() const { return text_; }
  using Exports =
      Methods<&Ticket::Text, kConstructor<CallContext&, std::string, int64_t>>;

 private:
  const std::string text_;
};

struct Base {
  static std::unique_ptr<Base> Make() { return std::make_unique<Base>(); }
};
struct Derived : Base {
  explicit Derived(int) {}
  using Exports = Methods<kConstructor<int>>;
};
struct Silent {
  using Exports = Methods<>;
};
static_assert(internal::CanBeMade<Base>);
static_assert(!internal::CanBeMade<Silent>);
static_assert(std::is_same_v<decltype(internal::MakerOf<Derived>()),
                             std::unique_ptr<Derived> (*)(int)>);

class ConstructorTest : public ::testing::Test {
 protected:
  static testing::ClusterOptions Options() {
    testing::ClusterOptions options;
    options.names = {"alice", "bob"};
    options.fill = [](Registry& registry) { registry.Add<Ticket>(); };
    return options;
  }
  testing::LocalCluster cluster_{Options()};
  Agent& alice_ = cluster_["alice"];
};

TEST_F(ConstructorTest, MakesAnObjectForAnotherWorker) {
  const auto ticket = Create<Ticket>(alice_, "bob", "seat 4", 1).Await();
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_EQ(ticket->owner().name, "bob");
  EXPECT_EQ(*ticket->Async<&Ticket::Text>().Await(), "alice: seat 4");
}

TEST_F(ConstructorTest, ThatThrowsFailsTheCall) {
  EXPECT_THAT(Create<Ticket>(alice_, "bob", "seat 4", 0).Await(),
              Fails(StatusCode::kInvalidArgument,
                    "bob, Ticket::Make: [ticket] no seats"));
}

}  // namespace
}  // namespace baton::rpc
