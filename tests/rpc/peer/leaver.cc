// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker in a process of its own that ends while much that it sends is under
// way:
//   leaver NAME PEER_NAME PEER_ADDRESS
// Writes "up" once the peer has taken a message. At the next line of its input
// it sends more than any socket holds, shuts down within half a second, writes
// how many ms that took and ends.

#include <chrono>
#include <iostream>
#include <string>

#include "core/future.h"
#include "rpc/transports/grpc.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Deaf final : MessageHandler {
  void OnMessage(const WorkerInfo&, Message) override {}
  void OnPeerLost(const WorkerInfo&, absl::Status) override {}
};

// With a tensor for the bulk stream, which is up then.
absl::Status Greet(Transport& transport, const std::string& peer) {
  Promise<void> sent;
  transport.Send(peer, {"ping", {Tensor::Zeros({100'000})}},
                 [sent](const absl::Status& status) { sent.Set(status); });
  return sent.future().Await(std::chrono::seconds(20));
}

void Leave(Transport& transport, const std::string& peer) {
  const Tensor large = Tensor::Zeros({4 << 20});
  for (int i = 0; i < 16; ++i) transport.Send(peer, {"", {large}}, nullptr);
  const auto start = steady_clock::now();
  transport.Shutdown(milliseconds(500));
  std::cout << (steady_clock::now() - start) / milliseconds(1) << std::endl;
}

int Run(const std::string& name, const WorkerInfo& peer) {
  auto transport = MakeGrpcTransport({});
  if (!transport.ok()) return 1;
  Deaf deaf;
  const WorkerInfo self{name, Rank{2}, 4712, (*transport)->address()};
  if (!(*transport)->Start(self, &deaf).ok()) return 1;
  (*transport)->AddPeer(peer);
  if (!Greet(**transport, peer.name).ok()) return 1;
  std::cout << "up" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  Leave(**transport, peer.name);
  return 0;
}

}  // namespace
}  // namespace baton::rpc

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return baton::rpc::Run(argv[1], {argv[2], baton::rpc::Rank{1}, 0, argv[3]});
}
