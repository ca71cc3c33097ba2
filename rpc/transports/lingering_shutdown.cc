// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/lingering_shutdown.h"

#include <pthread.h>

#include <thread>
#include <utility>
#include <vector>

#include "core/future.h"
#include "core/log.h"
#include "core/mutex.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

// If the socket takes what is written, its streams end within this time.
constexpr milliseconds kEndPatience{500};

void WaitForTheEnd(std::shared_ptr<LingeringTransport> transport,
                   const Promise<void>& ended) {
  pthread_setname_np(pthread_self(), "baton-undertake");
  transport->AwaitEnd();
  transport.reset();
  ended.Set(absl::OkStatus());
}

class BoundedTransport final : public Transport {
 public:
  explicit BoundedTransport(std::shared_ptr<LingeringTransport> transport)
      : transport_(std::move(transport)) {}
  ~BoundedTransport() override { Shutdown(milliseconds(0)); }

  std::string address() const override { return transport_->address(); }
  absl::Status Start(const WorkerInfo& self, MessageHandler* handler) override {
    return transport_->Start(self, handler);
  }
  void AddPeer(const WorkerInfo& peer) override { transport_->AddPeer(peer); }
  void RemovePeer(const std::string& name) override {
    transport_->RemovePeer(name);
  }
  void Forget(const WorkerInfo& peer) override { transport_->Forget(peer); }
  void Disconnect(const std::string& name, Task then) override {
    transport_->Disconnect(name, std::move(then));
  }
  void Send(const std::string& peer, Message message, Sent sent) override {
    transport_->Send(peer, std::move(message), std::move(sent));
  }
  Tensor EmptyFor(const std::string& peer, const Shape& shape,
                  const TensorOptions& options) override {
    return transport_->EmptyFor(peer, shape, options);
  }
  std::vector<ChannelInfo> Channels() const override {
    return transport_->Channels();
  }
  std::vector<TensorChannelInfo> TensorChannels() override {
    return transport_->TensorChannels();
  }
  void Shutdown(milliseconds timeout) override;

 private:
  const std::shared_ptr<LingeringTransport> transport_;
  Mutex shutdown_mutex_;  // one Shutdown at a time
  bool shut_down_ ABSL_GUARDED_BY(shutdown_mutex_) = false;
};

void BoundedTransport::Shutdown(milliseconds timeout) {
  MutexLock one(shutdown_mutex_);
  if (std::exchange(shut_down_, true)) return;
  transport_->Shutdown(timeout);
  const Promise<void> ended;
  std::thread thread(WaitForTheEnd, transport_, ended);
  if (ended.future().Await(kEndPatience).ok()) {
    thread.join();
    return;
  }
  thread.detach();
  LogWarning("a transport is left behind: ", transport_->Remains());
}

}  // namespace

std::unique_ptr<Transport> WithLingeringShutdown(
    std::shared_ptr<LingeringTransport> transport) {
  return std::make_unique<BoundedTransport>(std::move(transport));
}

}  // namespace baton::rpc
