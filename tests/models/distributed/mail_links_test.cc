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
  Tensor output;
  Promise<Tensor> answer;
};
std::shared_ptr<MailLinks> LinksThatKeep(std::vector<Sent>& sent) {
  return std::make_shared<
      MailLinks>(StageSpec{.index = 0, .count = 2}, [&sent](
                                                        int,
                                                        const Tensor& output,
                                                        MailLinks::Deadline) {
    return sent.emplace_back(Sent{output, Promise<Tensor>()}).answer.future();
  });
}

TEST(MailLinks, TheAnswerToAnOutputIsItsGradient) {
  std::vector<Sent> sent;
  const auto links = LinksThatKeep(sent);
  links->SendOutput(0, Tensor::Ones({2}));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].output.numel(), 2);
  sent[0].answer.Set(Tensor::Ones({3}));
  const auto gradient = links->TakeGradient(0);
  ASSERT_TRUE(gradient.ok());
  EXPECT_EQ(gradient->numel(), 3);
}

TEST(MailLinks, ALostNextStageEndsTheStep) {
  std::vector<Sent> sent;
  const auto links = LinksThatKeep(sent);
  links->SendOutput(4, Tensor::Ones({2}));
  sent[0].answer.Set(absl::UnavailableError("gone"));
  const absl::Status status = links->TakeGradient(4).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("stage 0 of 2: micro-batch 4 at the next stage: gone"));
  EXPECT_EQ(links->ended(), status);
}

TEST(MailLinks, FailureEndsWaitsAndAnswers) {
  MailLinks links(StageSpec(), nullptr);
  EXPECT_TRUE(links.ended().ok());
  Future<Tensor> answer = links.PutInput(0, Tensor::Ones({1}));
  EXPECT_FALSE(links.PutInput(0, Tensor::Ones({1})).Await().ok());
  links.Fail(absl::CancelledError("first"));
  links.Fail(absl::InternalError("second"));
  EXPECT_TRUE(absl::IsCancelled(links.ended()));
  EXPECT_TRUE(absl::IsCancelled(answer.Await().status()));
  EXPECT_TRUE(absl::IsCancelled(links.TakeInput(0).status()));
  EXPECT_TRUE(absl::IsCancelled(links.PutInput(1, Tensor()).Await().status()));
  EXPECT_TRUE(absl::IsCancelled(links.TakeGradient(0).status()));
}

TEST(MailLinks, WaitsHaveADeadlineThatSaysWhatIsMissing) {
  MailLinks links(StageSpec(), nullptr);
  links.set_deadline(MailLinks::Deadline::clock::now());
  absl::Status status = links.TakeGradient(3).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("gradient of micro-batch 3"));
}

}  // namespace
}  // namespace baton::dist
