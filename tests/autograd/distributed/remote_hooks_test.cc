// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/remote_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "tests/autograd/distributed/remote_math.h"
#include "tests/support/status_matchers.h"

namespace baton::dist {
namespace {

using absl::StatusCode;
using testing::Fails;
using testing::IsOk;

Variable Parameter(double value) { return Leaf(value); }
Variable Constant(double value) { return Leaf(value).Detach(); }

// Whose parameters nobody registered.
struct Bag {
  std::vector<Variable> Parameters() const { return {Leaf(1)}; }
};
std::unique_ptr<Bag> MakeBag() { return std::make_unique<Bag>(); }

Tensor TenTimes(const Tensor& gradient) { return ops::MulScalar(gradient, 10); }
Tensor TooLarge(const Tensor&) { Fail("clip", "too large"); }
Tensor Unknown(const Tensor&) { return Tensor(); }

class RemoteHooksTest : public ThreeWorkers {
 protected:
  RemoteHooksTest()
      : ThreeWorkers([](rpc::Registry& registry) {
          registry.AddFunction<&Parameter>()
              .AddFunction<&Constant>()
              .AddFunction<&MakeBag>();
          RegisterGradientHook<&TenTimes>(registry);
          RegisterGradientHook<&TooLarge>(registry);
        }),
        w_(*rpc::CreateBy<&Parameter>(agent(), "bob", 3.0).Await()) {}
  // Of the sum of w x, x being 2.
  absl::StatusOr<double> Gradient() {
    Context ctx(agent());
    ASSIGN_OR_RETURN(Variable w, w_.Fetch(ctx).Await());
    ASSIGN_OR_RETURN(auto gradients, ctx.Grad({autograd::Sum(w * 2.0)}, {w_}));
    return First(gradients[0]);
  }
  RRef<Variable> w_;
};
INSTANTIATE_TEST_SUITE_P(, RemoteHooksTest, testing::kTransports,
                         testing::TransportName);

TEST_P(RemoteHooksTest, ChangeAGradientAtItsOwnerUntilTheyAreRemoved) {
  EXPECT_EQ(*Gradient(), 2);
  auto hooks = AddGradientHook<&TenTimes>(agent(), w_).Await();
  ASSERT_THAT(hooks, IsOk());
  EXPECT_EQ(hooks->owner().name, "bob");
  EXPECT_EQ(*Gradient(), 20);
  ASSERT_THAT(hooks->Async<&RemoteHooks::Remove>().Await(), IsOk());
  EXPECT_EQ(*Gradient(), 2);
}

TEST_P(RemoteHooksTest, ThatThrowEndThePassAndAreNamed) {
  auto hooks = AddGradientHook<&TooLarge>(agent(), w_).Await();
  ASSERT_THAT(hooks, IsOk());
  EXPECT_THAT(Gradient(), Fails(StatusCode::kInvalidArgument, "hook TooLarge"));
  EXPECT_THAT(Gradient(), Fails(StatusCode::kInvalidArgument, "bob"));
  ASSERT_THAT(hooks->Async<&RemoteHooks::Remove>().Await(), IsOk());
  EXPECT_EQ(*Gradient(), 2);
}

TEST_P(RemoteHooksTest, ThatCannotBeAreRefused) {
  EXPECT_THAT(AddGradientHook<&Unknown>(agent(), w_).Await(),
              Fails(StatusCode::kUnimplemented,
                    "bob, Unknown: not registered on this worker: call "
                    "dist::RegisterGradientHook<&Unknown>(registry) before "
                    "joining, in every process"));
  const RRef<Bag> bag = *rpc::CreateBy<&MakeBag>(agent(), "carol").Await();
  EXPECT_THAT(AddGradientHook<&TenTimes>(agent(), bag).Await(),
              Fails(StatusCode::kUnimplemented,
                    "carol, parameters of Bag: not registered on this worker: "
                    "call dist::RegisterParameters<Bag>(registry) before "
                    "joining, in every process"));
  const RRef<Variable> constant =
      *rpc::CreateBy<&Constant>(agent(), "carol", 3.0).Await();
  EXPECT_THAT(AddGradientHook<&TenTimes>(agent(), constant).Await(),
              Fails(StatusCode::kInvalidArgument, "does not require grad"));
}

}  // namespace
}  // namespace baton::dist
