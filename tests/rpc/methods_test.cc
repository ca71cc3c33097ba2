// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpc/registry.h"
#include "tests/rpc/counter.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using ::testing::Contains;
using ::testing::ElementsAre;

struct Base {
  int Inherited(int x) { return x; }
};
struct Derived : Base {
  static std::unique_ptr<Derived> Make() { return nullptr; }
  using Exports = rpc::Methods<&Derived::Make, &Derived::Inherited>;
};
int One(int) { return 1; }
int Two(int) { return 2; }

static_assert(
    std::is_same_v<rpc::internal::ResultType<&Derived::Make>, Derived>);
static_assert(std::is_same_v<rpc::internal::ResultType<&Counter::Check>, void>);
static_assert(std::is_same_v<rpc::internal::ResultType<&Counter::AddTo>, int>);
static_assert(rpc::internal::IndexIn<&Derived::Inherited, Derived>::kIndex ==
              1);
static_assert(!rpc::internal::IndexIn<&Counter::NotExported, Counter>::kFound);

TEST(Registry, NamesItsMethods) {
  rpc::Registry registry;
  registry.Add<Derived>().AddFunction<&One>();
  EXPECT_THAT(registry.MethodNames(), Contains("Derived::Inherited"));
  EXPECT_THAT(registry.MethodNames(), Contains("One"));
}

TEST(Registry, DigestTellsContentsNotOrder) {
  rpc::Registry a, b, c;
  a.Add<Derived>().AddFunction<&One>();
  b.AddFunction<&One>().Add<Derived>();
  c.AddFunction<&Two>().Add<Derived>();
  EXPECT_EQ(a.Digest(), b.Digest());
  EXPECT_NE(a.Digest(), c.Digest());
}

TEST(Registry, RemembersADoubleRegistration) {
  rpc::Registry registry;
  registry.AddFunction<&One>().AddFunction<&One>();
  EXPECT_THAT(registry.status(), Fails(StatusCode::kAlreadyExists, "One"));
}

TEST(Registry, FindsOnlyWhatIsThere) {
  rpc::Registry registry;
  registry.Add<Derived>();
  const uint64_t type = rpc::internal::TypeId<Derived>();
  EXPECT_EQ((*registry.Find({type, 1}))->name, "Derived::Inherited");
  EXPECT_THAT(registry.Find({type, 2}),
              Fails(StatusCode::kUnimplemented, "Derived exports 2 methods"));
  EXPECT_FALSE(registry.Find({type + 1, 0}).ok());
}

}  // namespace
}  // namespace baton::testing
