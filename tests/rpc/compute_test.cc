// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "rpc/rendezvous.pb.h"
#include "rpc/rendezvous_wire.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using absl::StatusCode;
using rpc::Compute;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Compute, IsReadAsItIsWritten) {
  const std::string written[] = {"cpu", "cuda:3 bf16 deterministic",
                                 "cuda:0 tf32", "cpu f16"};
  for (const std::string& text : written) {
    const auto compute = Compute::Parse(text);
    ASSERT_THAT(compute, IsOk()) << text;
    EXPECT_EQ(compute->ToString(), text);
  }
  EXPECT_EQ(*Compute::Parse(""), Compute{});
  EXPECT_EQ(*Compute::Parse("cuda:1 bf16"),
            (Compute{Device::Cuda(1), DType::kBF16}));
}

TEST(Compute, OfAStrangerIsRefusedAndPrintable) {
  for (const std::string text :
       {"tpu", "cpu\nfake line", "cuda:1  tf32", "cuda:1 fast", " "}) {
    const absl::Status status = Compute::Parse(text).status();
    EXPECT_THAT(status,
                Fails(StatusCode::kInvalidArgument, "how a worker computes"))
        << text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
  EXPECT_LT(Compute::Parse(std::string(1 << 20, 'x')).status().message().size(),
            200u);
}

TEST(Compute, OfAStrangerMakesNoMember) {
  rpc::wire::JoinRequest join;
  join.mutable_self()->set_name("mallory");
  join.mutable_self()->set_compute("tpu");
  EXPECT_THAT(rpc::internal::FromWire(join),
              Fails(StatusCode::kInvalidArgument, "\"tpu\" does not say"));
  rpc::wire::RenewAnswer answer;
  *answer.add_members() = join.self();
  EXPECT_THAT(rpc::internal::FromWire(answer),
              Fails(StatusCode::kInvalidArgument, "\"tpu\" does not say"));
}

}  // namespace
}  // namespace baton::testing
