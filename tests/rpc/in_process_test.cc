// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/in_process.h"

#include "tests/rpc/transport_conformance.h"

namespace baton::rpc {
namespace {

INSTANTIATE_TEST_SUITE_P(InProcess, TransportConformance,
                         ::testing::Values(TransportKind{
                             .name = "Plain",
                             .network =
                                 [] {
                                   auto network =
                                       std::make_shared<InProcessNetwork>();
                                   return [network] {
                                     return network->NewTransport();
                                   };
                                 }}),
                         ::testing::PrintToStringParamName());

TEST(InProcess, WritesRightAfterSendAreNotSeen) {
  InProcessNetwork network;
  TestWorker alice("alice", 0, network.NewTransport());
  TestWorker bob("bob", 1, network.NewTransport());
  alice.Start();
  bob.Start();
  alice.transport->AddPeer(bob.info);
  const Tensor tensor = Tensor::Ones({1000});
  alice.transport->Send("bob", {"", {tensor}}, [](absl::Status) {});
  tensor.Fill(2);
  EXPECT_EQ(bob.mailbox.Await(1).at(0).message.tensors.at(0).ToVector<float>(),
            std::vector<float>(1000, 1));
}

TEST(InProcess, ATensorThatIsGivenUpIsNotCopied) {
  InProcessNetwork network;
  TestWorker alice("alice", 0, network.NewTransport());
  TestWorker bob("bob", 1, network.NewTransport());
  alice.Start();
  bob.Start();
  alice.transport->AddPeer(bob.info);
  Message message;
  message.tensors.push_back(Tensor::Ones({1000}));
  const uint64_t id = message.tensors[0].storage()->id();
  alice.transport->Send("bob", std::move(message), [](absl::Status) {});
  EXPECT_EQ(bob.mailbox.Await(1).at(0).message.tensors.at(0).storage()->id(),
            id);
}

}  // namespace
}  // namespace baton::rpc
