// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker in a process of its own that sends back what it gets:
//   echo_peer NAME [inline | INCARNATION | FOLDER]
// Writes its address on a line of its own and ends when its input does. FOLDER,
// with a '/', has its certificate and its key, by which it talks in TLS alone.

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "rpc/security.h"
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

int Run(const std::string& name, const std::string& how) {
  GrpcOptions options;
  uint64_t incarnation = 4711;
  if (how == "inline") {
    options.inline_delivery = true;
  } else if (how.find('/') != std::string::npos) {
    auto security =
        LoadSecurity({how + "/" + name + ".pem", how + "/" + name + ".key",
                      how + "/ca.pem", /*token=*/""},
                     name);
    if (!security.ok()) {
      std::cerr << security.status() << "\n";
      return 1;
    }
    options.security = *std::move(security);
  } else if (!how.empty()) {
    incarnation = std::strtoull(how.c_str(), nullptr, 10);
  }
  return ServeTransport(options, name, incarnation,
                        [](Transport& transport) { return Echo(transport); });
}

}  // namespace
}  // namespace baton::rpc

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return baton::rpc::Run(argv[1], argc > 2 ? argv[2] : "");
}
