// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_options.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/call.h"

namespace baton::rpc {
namespace {

using internal::kIsLeading;
using internal::Leading;
using std::chrono::milliseconds;

TEST(Target, IsNamedByWhatACallerHas) {
  const auto named = [](const Target& target) { return target.ToString(); };
  EXPECT_EQ(named("alice"), "alice");
  EXPECT_EQ(named(std::string("alice")), "alice");
  EXPECT_EQ(named(Rank{1}), "rank 1");
  EXPECT_EQ(named(WorkerInfo{"alice", Rank{1}, 1, "unix:alice"}), "alice");
}

TEST(Target, KeepsTheKindOfItsKey) {
  EXPECT_EQ(std::get<std::string>(Target("7").key()), "7");
  EXPECT_EQ(std::get<Rank>(Target(Rank{7}).key()), Rank{7});
  const WorkerInfo info{"alice", Rank{1}, 4711, "host:80"};
  EXPECT_EQ(std::get<WorkerInfo>(Target(info).key()), info)
      << "with the incarnation that the call is for";
}

TEST(Target, KnowsWhereItWasWritten) {
  const Target targets[] = {"alice", std::string("alice"), Rank{1},
                            WorkerInfo{}};
  const int here = __LINE__;
  for (const Target& target : targets) {
    EXPECT_STREQ(target.where().file, __FILE__);
    EXPECT_LT(target.where().line, here);
    EXPECT_GE(target.where().line, here - 2);
  }
  EXPECT_EQ(Target("alice", Place{"a.cc", 3}).where().ToString(), "a.cc:3");
}

TEST(CallOptions, LimitNothingUnlessTold) {
  const CallOptions options;
  EXPECT_FALSE(options.timeout.has_value());
  EXPECT_FALSE(options.cancel.cancelled());
}

class NoScope final : public CallScope {
 public:
  std::unique_ptr<Crossing> BeginSend(const WorkerInfo&) override {
    return nullptr;
  }
  std::string FinishSend(Crossing&) override { return ""; }
  absl::StatusOr<std::unique_ptr<Crossing>> BeginReceive(
      const WorkerInfo&, const std::string&) override {
    return absl::UnimplementedError("never called");
  }
  absl::Status FinishReceive(Crossing&) override { return absl::OkStatus(); }
};

// As dist::Context.
struct Holder {
  std::shared_ptr<NoScope> scope = std::make_shared<NoScope>();
  std::shared_ptr<CallScope> call_scope() const { return scope; }
};

template <typename... T>
constexpr bool kLead = (kIsLeading<T> && ...);
template <typename... T>
constexpr bool kAnyLeads = (kIsLeading<T> || ...);
static_assert(kLead<CallOptions, const CallOptions&, CallContext&>);
static_assert(kLead<const std::shared_ptr<CallScope>&, std::shared_ptr<NoScope>,
                    NoScope&, const Holder&>);
static_assert(!kAnyLeads<int, std::string, milliseconds, Target, CancelToken,
                         std::shared_ptr<int>>,
              "these are arguments");

// What the call's method would be given.
std::vector<int> Split(Leading& leading, auto&&... all) {
  return internal::SplitLeading(
      leading, [](auto... left) { return std::vector<int>{left...}; },
      std::forward<decltype(all)>(all)...);
}

TEST(Leading, TakesWhatStandsBeforeTheArgumentsInAnyOrder) {
  const CancelSource source;
  const CallOptions options{.timeout = milliseconds(7),
                            .cancel = source.token()};
  const Holder holder;
  Leading one, other;
  EXPECT_EQ(Split(one, options, holder, 1, 2), (std::vector<int>{1, 2}));
  EXPECT_EQ(Split(other, holder, options), std::vector<int>{});
  source.Cancel();
  for (const Leading& leading : {one, other}) {
    EXPECT_EQ(leading.options.timeout, milliseconds(7));
    EXPECT_TRUE(leading.options.cancel.cancelled());
    EXPECT_EQ(leading.scope, holder.scope);
    EXPECT_FALSE(leading.parent.has_value());
  }
}

TEST(Leading, TakesAScopeInEveryForm) {
  const Holder holder;
  const auto taken = [](auto& scope) {
    Leading leading;
    Split(leading, scope);
    return leading.scope;
  };
  EXPECT_EQ(taken(holder), holder.scope);
  EXPECT_EQ(taken(holder.scope), holder.scope);
  EXPECT_EQ(taken(*holder.scope), holder.scope);
}

TEST(Leading, TakesTheScopeOfTheCallThatIsServed) {
  const auto state = std::make_shared<CallContext::State>();
  state->caller.name = "bob";
  state->scope = std::make_shared<NoScope>();
  CallContext context(state);
  Leading leading;
  Split(leading, context);
  EXPECT_EQ(leading.scope, state->scope);
  ASSERT_TRUE(leading.parent.has_value());
  EXPECT_EQ(leading.parent->caller().name, "bob");
}

TEST(Leading, PrefersTheScopeThatWasNamed) {
  const auto state = std::make_shared<CallContext::State>();
  state->scope = std::make_shared<NoScope>();
  CallContext context(state);
  const Holder holder;
  Leading before, after;
  Split(before, holder, context);
  Split(after, context, holder);
  EXPECT_EQ(before.scope, holder.scope);
  EXPECT_EQ(after.scope, holder.scope);
  EXPECT_TRUE(before.parent.has_value());
  EXPECT_TRUE(after.parent.has_value());
}

TEST(Leading, IsEmptyWithoutAny) {
  Leading leading;
  EXPECT_EQ(Split(leading, 1, 2, 3), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(leading.scope, nullptr);
  EXPECT_FALSE(leading.parent.has_value());
  EXPECT_FALSE(leading.options.timeout.has_value());
}

}  // namespace
}  // namespace baton::rpc
