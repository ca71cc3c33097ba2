// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker in a process of its own that sends back what it gets:
//   echo_peer NAME [inline | INCARNATION]
// Writes its address on a line of its own and ends when its input does.

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "tests/rpc/peer/serve.h"

namespace baton::rpc {
namespace {

class Echo final : public MessageHandler {
 public:
  explicit Echo(Transport& transport) : transport_(transport) {}
  // "ack..." asks for the header alone, "keep..." also that the tensors are
  // held until the end.
  void OnMessage(const WorkerInfo& from, Message message) override {
    if (message.header.rfind("keep", 0) == 0) {
      MutexLock lock(mutex_);
      kept_.insert(kept_.end(), message.tensors.begin(), message.tensors.end());
      message.tensors.clear();
    }
    if (message.header.rfind("ack", 0) == 0) message.tensors.clear();
    transport_.Send(from.name, std::move(message), nullptr);
  }
  void OnPeerLost(const WorkerInfo&, absl::Status) override {}

 private:
  Transport& transport_;
  Mutex mutex_;
  std::vector<Tensor> kept_ ABSL_GUARDED_BY(mutex_);
};

int Run(const std::string& name, bool inline_delivery, uint64_t incarnation) {
  return ServeTransport({.inline_delivery = inline_delivery}, name, incarnation,
                        [](Transport& transport) { return Echo(transport); });
}

}  // namespace
}  // namespace baton::rpc

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const bool inlined = argc > 2 && std::strcmp(argv[2], "inline") == 0;
  const bool numbered = argc > 2 && !inlined;
  return baton::rpc::Run(argv[1], inlined,
                         numbered ? std::strtoull(argv[2], nullptr, 10) : 4711);
}
