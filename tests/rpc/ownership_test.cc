// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/ownership.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace baton::rpc::internal {
namespace {

using absl::StatusCode;
using baton::testing::Fails;
using baton::testing::IsOk;

struct QuietPort final : Ownership::Port {
  bool SendControl(const WorkerInfo&, ControlItem,
                   std::function<void()>) override {
    return true;
  }
  absl::Status CheckWorker(const WorkerInfo&) override {
    return absl::OkStatus();
  }
  void Discard(std::vector<std::shared_ptr<void>>) override {}
  void OnOwnershipChanged() override {}
};

class OwnershipTest : public ::testing::Test {
 protected:
  const WorkerInfo alice_{"alice", Rank{0}, 1, ""};
  const WorkerInfo bob_{"bob", Rank{1}, 2, ""};
  const std::shared_ptr<QuietPort> port_ = std::make_shared<QuietPort>();
  const std::shared_ptr<Ownership> table_ =
      std::make_shared<Ownership>(alice_, std::weak_ptr<AgentCore>(), port_);
};

// Number 0 marks an owner's own reference; nobody may send it.
TEST_F(OwnershipTest, GrantsWithoutANumberAreRefused) {
  const RRefId id{2, 5};
  EXPECT_THAT(table_->BeginCreation(id, {2, 0}, bob_, "Thing"),
              Fails(StatusCode::kInvalidArgument, "grant"));
  EXPECT_THAT(table_->Import(bob_, {{id, {2, 0}, 7, bob_}}),
              Fails(StatusCode::kInvalidArgument, "grant"));
  EXPECT_THAT(table_->Import(bob_, {{{2, 0}, {2, 6}, 7, bob_}}),
              Fails(StatusCode::kInvalidArgument, "no object"));
  EXPECT_EQ(table_->counts().objects, 0u);
  EXPECT_EQ(table_->counts().grants, 0u);
  EXPECT_THAT(table_->BeginCreation(id, {2, 6}, bob_, "Thing"), IsOk());
  table_->FinishCreation(id, absl::CancelledError("the test ends"));
  table_->OnControl(bob_, {ControlKind::kAdd, id, {2, 0}});
  table_->OnControl(bob_, {ControlKind::kDelete, id, {2, 6}});
  EXPECT_EQ(table_->counts().objects, 0u);
}

}  // namespace
}  // namespace baton::rpc::internal
