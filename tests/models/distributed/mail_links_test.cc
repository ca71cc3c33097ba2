// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/mail_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace baton::dist {
namespace {

using ::testing::HasSubstr;

struct Sent {
  int target = 0;
  Values outputs;
  Promise<Values> answer;
};
std::shared_ptr<MailLinks> LinksThatKeep(std::vector<Sent>& sent) {
  return std::make_shared<MailLinks>(
      StageSpec{.index = 0, .count = 3},
      [&sent](int target, int, const Outputs& outputs, MailLinks::Deadline) {
        return sent
            .emplace_back(Sent{target, outputs.values, Promise<Values>()})
            .answer.future();
      });
}

TEST(MailLinks, TheAnswersToOutputsAreTheirGradients) {
  std::vector<Sent> sent;
  const auto links = LinksThatKeep(sent);
  links->SendOutputs(1, 0, {{Tensor::Ones({2}), Tensor::Ones({4})}});
  links->SendOutputs(2, 0, {{Tensor::Ones({2})}});
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].target, 1);
  ASSERT_EQ(sent[0].outputs.size(), 2U);
  EXPECT_EQ(sent[0].outputs[1].numel(), 4);
  sent[1].answer.Set(Values{Tensor::Ones({5})});
  sent[0].answer.Set(Values{Tensor::Ones({3}), Tensor()});
  const auto gradients = links->TakeGradients(1, 0);
  ASSERT_TRUE(gradients.ok());
  ASSERT_EQ(gradients->size(), 2U);
  EXPECT_EQ((*gradients)[0].numel(), 3);
  EXPECT_FALSE((*gradients)[1].defined());
  const auto of_skip = links->TakeGradients(2, 0);
  ASSERT_TRUE(of_skip.ok());
  EXPECT_EQ(of_skip->front().numel(), 5);
}

TEST(MailLinks, AllIsDeliveredOnceAllIsAnswered) {
  std::vector<Sent> sent;
  const auto links = LinksThatKeep(sent);
  links->SendOutputs(1, 0, {{Tensor::Ones({2})}});
  links->SendOutputs(1, 1, {{Tensor::Ones({2})}});
  sent[1].answer.Set(Values());
  links->EndDeliveries();
  EXPECT_FALSE(links->delivered().ready());
  sent[0].answer.Set(Values());
  EXPECT_TRUE(links->delivered().Await().ok());
  const auto idle = LinksThatKeep(sent);
  EXPECT_FALSE(idle->delivered().ready());
  idle->EndDeliveries();
  EXPECT_TRUE(idle->delivered().Await().ok());
}

TEST(MailLinks, ADeliveryThatIsRefusedIsKnownAtOnce) {
  std::vector<Sent> sent;
  const auto links = LinksThatKeep(sent);
  links->SendOutputs(1, 0, {{Tensor::Ones({2})}});
  links->SendOutputs(1, 1, {{Tensor::Ones({2})}});
  sent[1].answer.Set(absl::ResourceExhaustedError("no memory"));
  ASSERT_TRUE(links->delivered().ready());
  EXPECT_TRUE(absl::IsResourceExhausted(links->delivered().Await()));
  sent[0].answer.Set(Values());
}

TEST(MailLinks, InputsAreKeptByTheStageThatTheyComeFrom) {
  MailLinks links(StageSpec{.index = 2, .count = 3}, nullptr);
  Future<Values> skipped = links.PutInputs(0, 1, {{Tensor::Ones({2})}});
  Future<Values> passed = links.PutInputs(1, 1, {{Tensor::Ones({3})}});
  EXPECT_EQ(links.TakeInputs(1, 1)->values.front().numel(), 3);
  EXPECT_EQ(links.TakeInputs(0, 1)->values.front().numel(), 2);
  links.SendGradients(0, 1, {Tensor::Ones({4})});
  EXPECT_FALSE(passed.ready());
  EXPECT_EQ(skipped.Await()->front().numel(), 4);
}

TEST(MailLinks, ALostStageEndsTheStep) {
  std::vector<Sent> sent;
  const auto links = LinksThatKeep(sent);
  links->SendOutputs(2, 4, {{Tensor::Ones({2})}});
  sent[0].answer.Set(absl::UnavailableError("gone"));
  const absl::Status status = links->TakeGradients(1, 4).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("stage 0 of 3: micro-batch 4 at stage 2: gone"));
  EXPECT_EQ(links->ended(), status);
}

TEST(MailLinks, FailureEndsWaitsAndAnswers) {
  MailLinks links(StageSpec(), nullptr);
  EXPECT_TRUE(links.ended().ok());
  Future<Values> answer = links.PutInputs(0, 0, {{Tensor::Ones({1})}});
  EXPECT_FALSE(links.PutInputs(0, 0, {{Tensor::Ones({1})}}).Await().ok());
  links.Fail(absl::CancelledError("first"));
  links.Fail(absl::InternalError("second"));
  EXPECT_TRUE(absl::IsCancelled(links.ended()));
  EXPECT_TRUE(absl::IsCancelled(answer.Await().status()));
  EXPECT_TRUE(absl::IsCancelled(links.TakeInputs(0, 0).status()));
  EXPECT_TRUE(absl::IsCancelled(links.PutInputs(0, 1, {}).Await().status()));
  EXPECT_TRUE(absl::IsCancelled(links.TakeGradients(1, 0).status()));
}

TEST(MailLinks, WaitsHaveADeadlineThatSaysWhatIsMissing) {
  MailLinks links(StageSpec(), nullptr);
  links.Begin(/*step=*/1, MailLinks::Deadline::clock::now(), {});
  absl::Status status = links.TakeGradients(1, 3).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("gradient of micro-batch 3 from stage 1"));
}

}  // namespace
}  // namespace baton::dist
