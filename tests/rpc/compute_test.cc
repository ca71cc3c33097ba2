// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "rpc/rendezvous.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/transports/hello.h"
#include "rpc/worker.h"
#include "tests/support/local_cluster.h"
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

TEST(Compute, RefusesOtherTextWithAPrintableError) {
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

TEST(Compute, OfAMemberIsCheckedWhenItJoins) {
  rpc::wire::Worker mallory;
  rpc::ToWire({"mallory", rpc::Rank{-1}, 1, "here:1"}, mallory);
  mallory.set_compute("tpu");
  rpc::wire::JoinRequest join;
  join.set_cluster("baton");
  join.set_world_size(1);
  *join.mutable_self() = mallory;
  EXPECT_THAT(rpc::internal::CheckJoin(join),
              Fails(StatusCode::kInvalidArgument, "\"tpu\" does not say"));
  mallory.set_rank(0);
  EXPECT_THAT(rpc::FromWire(mallory),
              Fails(StatusCode::kInvalidArgument, "\"tpu\" does not say"));
}

// Has its tensors where it says.
class Desk {
 public:
  explicit Desk(Device device) : device_(device) {}
  Device device() const { return device_; }
  std::optional<DType> dtype() const { return std::nullopt; }
  Device WhereIs(const Tensor& x, int) { return x.device(); }
  int Count(int n) { return n + 1; }
  using Exports = rpc::Methods<rpc::kConstructor<const Device&>, &Desk::WhereIs,
                               &Desk::Count>;

 private:
  const Device device_;
};

class DeskTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  DeskTest()
      : cluster_({.fill = [](rpc::Registry& registry) { registry.Add<Desk>(); },
                  .transports = MakerOf(GetParam())}) {}
  RRef<Desk> On(Device device) {
    return *rpc::Create<Desk>(cluster_["alice"], "bob", device).Await();
  }
  LocalCluster cluster_;
};
INSTANTIATE_TEST_SUITE_P(, DeskTest, kTransports, TransportName);

TEST_P(DeskTest, TensorsOfACallComeToTheObjectsDevice) {
  const Tensor x = Tensor::Ones({4});
  const auto here = On(Device::Cpu()).Async<&Desk::WhereIs>(x, 1).Await();
  ASSERT_THAT(here, IsOk());
  EXPECT_TRUE(here->is_cpu());
  // No machine has so many GPUs: the way there is what fails.
  const RRef<Desk> nowhere = On(Device::Cuda(99));
  EXPECT_EQ(*nowhere.Async<&Desk::Count>(1).Await(), 2);
  const absl::Status status =
      nowhere.Async<&Desk::WhereIs>(x, 1).Await().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("Desk::WhereIs"));
}

}  // namespace
}  // namespace baton::testing
