// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/cable.h"

#include <chrono>
#include <utility>
#include <vector>

namespace baton::testing {
namespace {

class CabledTransport final : public rpc::Transport {
 public:
  CabledTransport(Cable& cable, std::unique_ptr<rpc::Transport> inner)
      : cable_(cable),
        inner_(std::move(inner)),
        address_(cable.To(inner_->address())) {}

  std::string address() const override { return address_; }
  absl::Status Start(const rpc::WorkerInfo& self,
                     rpc::MessageHandler* handler) override {
    return inner_->Start(self, handler);
  }
  void AddPeer(const rpc::WorkerInfo& peer) override {
    inner_->AddPeer(Reached(peer));
  }
  void RemovePeer(const std::string& name) override {
    inner_->RemovePeer(name);
  }
  void Forget(const rpc::WorkerInfo& peer) override {
    inner_->Forget(Reached(peer));
  }
  void Disconnect(const std::string& name, Task then) override {
    inner_->Disconnect(name, std::move(then));
  }
  void Send(const std::string& peer, rpc::Message message, Sent sent) override {
    inner_->Send(peer, std::move(message), std::move(sent));
  }
  void Shutdown(std::chrono::milliseconds timeout) override {
    inner_->Shutdown(timeout);
  }

 private:
  rpc::WorkerInfo Reached(rpc::WorkerInfo peer) const {
    peer.address = cable_.To(peer.address);
    return peer;
  }

  Cable& cable_;
  const std::unique_ptr<rpc::Transport> inner_;
  const std::string address_;
};

}  // namespace

std::string Cable::To(const std::string& server) {
  MutexLock lock(mutex_);
  std::unique_ptr<Relay>& relay = relays_[server];
  if (relay == nullptr) {
    relay = std::make_unique<Relay>(server);
    if (cut_) relay->Cut();
  }
  return relay->address();
}

std::unique_ptr<rpc::Transport> Cable::Through(
    std::unique_ptr<rpc::Transport> transport) {
  return std::make_unique<CabledTransport>(*this, std::move(transport));
}

void Cable::Cut() {
  MutexLock lock(mutex_);
  cut_ = true;
  for (const auto& [server, relay] : relays_) relay->Cut();
}

void Cable::Mend() {
  MutexLock lock(mutex_);
  cut_ = false;
  for (const auto& [server, relay] : relays_) relay->Mend();
}

}  // namespace baton::testing
