// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/in_process.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/transports/deliveries.h"
#include "rpc/transports/packed.h"

namespace baton::rpc {
namespace {

// Converts tensors to the form in which they arrive at a peer with this device.
void Carry(std::vector<Tensor>& tensors, Device device) {
  for (Tensor& tensor : tensors) {
    if (tensor.device().is_cuda()) tensor = tensor.To(device);
    tensor = PackedCopy(std::move(tensor));
  }
}

}  // namespace

class InProcessTransport;

// The state that the transports of one network share. Its mutex guards the
// state of all of them, so that both ends of a connection change together.
class InProcessHub {
 public:
  std::string NewAddress() {
    MutexLock lock(mutex);
    return absl::StrCat("in-process:", next_address_++);
  }

  Mutex mutex;
  std::map<std::string, InProcessTransport*> by_address ABSL_GUARDED_BY(mutex);

 private:
  int next_address_ ABSL_GUARDED_BY(mutex) = 0;
};

class InProcessTransport final : public Transport {
 public:
  explicit InProcessTransport(std::shared_ptr<InProcessHub> hub)
      : hub_(std::move(hub)), address_(hub_->NewAddress()) {
    MutexLock lock(hub_->mutex);
    hub_->by_address[address_] = this;
  }

  ~InProcessTransport() override {
    Shutdown(std::chrono::milliseconds(0));
    MutexLock lock(hub_->mutex);
    hub_->by_address.erase(address_);
  }

  std::string address() const override { return address_; }
  absl::Status Start(const WorkerInfo& self, MessageHandler* handler) override;
  void AddPeer(const WorkerInfo& peer) override;
  void RemovePeer(const std::string& name) override;
  void Forget(const WorkerInfo& peer) override;
  void Disconnect(const std::string& name, Task then) override;
  void Send(const std::string& peer, Message message, Sent sent) override;
  std::vector<ChannelInfo> Channels() const override;
  void Shutdown(std::chrono::milliseconds timeout) override;

 private:
  Device DeviceOf(const std::string& peer) const;

  enum class State { kNew, kStarted, kShutDown };
  struct Peer {
    WorkerInfo info;
    bool connected = false;
    ChannelInfo traffic = {};  // only the counts
  };
  // Runs on the delivery thread.
  using Call = absl::AnyInvocable<void(MessageHandler&)>;

  // Hub::mutex is held in all of these; the analysis cannot follow it through
  // two transports that share one hub.
  absl::Status Deliver(const std::string& peer,
                       Message message) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Accept(const WorkerInfo& from,
              Message message) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  InProcessTransport* Find(const WorkerInfo& peer)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Break(const std::string& name, bool tell_self,
             const std::string& why) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Lost(const std::string& name,
            const std::string& why) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void PostCall(Call call) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  const std::shared_ptr<InProcessHub> hub_;
  const std::string address_;

  // Guarded by hub_->mutex.
  State state_ = State::kNew;
  WorkerInfo self_;
  std::map<std::string, Peer> peers_;
  std::vector<Call> early_;  // arrived before Start

  HandlerGate gate_;

  // Last: its destructor runs the remaining tasks, which use the members above.
  ThreadPool thread_{1, "baton-inproc"};
};

absl::Status InProcessTransport::Start(const WorkerInfo& self,
                                       MessageHandler* handler) {
  RETURN_IF_ERROR(CheckWorkerName(self.name));
  MutexLock lock(hub_->mutex);
  if (state_ != State::kNew) {
    return absl::FailedPreconditionError(
        absl::StrCat("the transport of ", self.name, " was started before"));
  }
  state_ = State::kStarted;
  self_ = self;
  gate_.Open(handler);
  for (Call& call : early_) PostCall(std::move(call));
  early_.clear();
  return absl::OkStatus();
}

void InProcessTransport::AddPeer(const WorkerInfo& peer) {
  MutexLock lock(hub_->mutex);
  auto found = peers_.find(peer.name);
  if (found != peers_.end() && found->second.info == peer) return;
  Break(peer.name, true, "replaced by a new incarnation");
  peers_[peer.name] = {.info = peer};
}

void InProcessTransport::RemovePeer(const std::string& name) {
  MutexLock lock(hub_->mutex);
  Break(name, false, "the peer closed the connection");
  peers_.erase(name);
}

void InProcessTransport::Forget(const WorkerInfo& peer) {
  MutexLock lock(hub_->mutex);
  auto found = peers_.find(peer.name);
  if (found == peers_.end() || found->second.connected ||
      found->second.info.incarnation != peer.incarnation) {
    return;
  }
  peers_.erase(found);
}

void InProcessTransport::Disconnect(const std::string& name, Task then) {
  MutexLock lock(hub_->mutex);
  Break(name, true, "the connection was severed");
  if (then != nullptr) thread_.Post(std::move(then));
}

void InProcessTransport::Send(const std::string& peer, Message message,
                              Sent sent) {
  absl::Status status = CheckTensors(message);
  if (status.ok()) {
    status = CatchErrors([&] { Carry(message.tensors, DeviceOf(peer)); });
  }
  if (status.ok()) {
    MutexLock lock(hub_->mutex);
    status = Deliver(peer, std::move(message));
  }
  thread_.Post([sent = std::move(sent), status]() mutable { sent(status); });
}

// Returns the CPU for an unknown peer, for which Deliver reports the error.
Device InProcessTransport::DeviceOf(const std::string& peer) const {
  MutexLock lock(hub_->mutex);
  const auto found = peers_.find(peer);
  return found == peers_.end() ? Device::Cpu()
                               : found->second.info.compute.device;
}

std::vector<ChannelInfo> InProcessTransport::Channels() const {
  std::vector<ChannelInfo> channels;
  MutexLock lock(hub_->mutex);
  for (const auto& [name, peer] : peers_) {
    ChannelInfo channel = peer.traffic;
    if (!peer.connected &&
        channel.messages_sent + channel.messages_received == 0) {
      continue;
    }
    channel.peer = name;
    channel.name = "in-process";
    channel.detail = peer.info.address;
    channel.up = peer.connected;
    channels.push_back(std::move(channel));
  }
  return channels;
}

void InProcessTransport::Shutdown(std::chrono::milliseconds) {
  {
    MutexLock lock(hub_->mutex);
    state_ = State::kShutDown;
    early_.clear();
    for (auto& [name, peer] : peers_) {
      Break(name, false, absl::StrCat("worker ", self_.name, " shut down"));
    }
  }
  gate_.Close();
  AwaitPosted(thread_);
}

absl::Status InProcessTransport::Deliver(const std::string& peer,
                                         Message message) {
  if (state_ == State::kNew) {
    return absl::FailedPreconditionError("Send before Start");
  }
  if (state_ == State::kShutDown) {
    return absl::UnavailableError(
        absl::StrCat("the transport of ", self_.name, " is shut down"));
  }
  if (peer == self_.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", peer, " sends to itself"));
  }
  auto found = peers_.find(peer);
  if (found == peers_.end()) {
    return absl::NotFoundError(
        absl::StrCat("worker ", self_.name, " knows no worker ", peer));
  }
  InProcessTransport* target = Find(found->second.info);
  if (target == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "worker ", peer, " at ", found->second.info.address, " is not there"));
  }
  found->second.connected = true;
  ++found->second.traffic.messages_sent;
  found->second.traffic.bytes_sent += BytesOf(message);
  target->Accept(self_, std::move(message));
  return absl::OkStatus();
}

void InProcessTransport::Accept(const WorkerInfo& from, Message message) {
  Peer& peer = peers_[from.name];
  if (!(peer.info == from)) {
    if (peer.connected) Lost(from.name, "replaced by a new incarnation");
    peer.info = from;
  }
  peer.connected = true;
  ++peer.traffic.messages_received;
  peer.traffic.bytes_received += BytesOf(message);
  PostCall([from, message = std::move(message)](MessageHandler& h) mutable {
    h.OnMessage(from, std::move(message));
  });
}

InProcessTransport* InProcessTransport::Find(const WorkerInfo& peer) {
  auto found = hub_->by_address.find(peer.address);
  if (found == hub_->by_address.end()) return nullptr;
  InProcessTransport* target = found->second;
  if (target->state_ == State::kShutDown) return nullptr;
  if (target->state_ == State::kStarted && !(target->self_ == peer)) {
    return nullptr;
  }
  return target;
}

// Breaks both ends of the connection to `name`.
void InProcessTransport::Break(const std::string& name, bool tell_self,
                               const std::string& why) {
  auto found = peers_.find(name);
  if (found == peers_.end() || !found->second.connected) return;
  auto other = hub_->by_address.find(found->second.info.address);
  if (other != hub_->by_address.end() && other->second != this) {
    other->second->Lost(self_.name, why);
  }
  if (tell_self) Lost(name, why);
  found->second.connected = false;
}

void InProcessTransport::Lost(const std::string& name, const std::string& why) {
  auto found = peers_.find(name);
  if (found == peers_.end() || !found->second.connected) return;
  found->second.connected = false;
  PostCall([info = found->second.info, why](MessageHandler& h) {
    h.OnPeerLost(info,
                 absl::UnavailableError(absl::StrCat(
                     "lost the connection to worker ", info.name, ": ", why)));
  });
}

void InProcessTransport::PostCall(Call call) {
  if (state_ == State::kShutDown) return;
  if (state_ == State::kNew) {
    early_.push_back(std::move(call));
    return;
  }
  thread_.Post([this, call = std::move(call)]() mutable { gate_.Pass(call); });
}

InProcessNetwork::InProcessNetwork() : hub_(std::make_shared<InProcessHub>()) {}
InProcessNetwork::~InProcessNetwork() = default;

std::unique_ptr<Transport> InProcessNetwork::NewTransport() {
  return std::make_unique<InProcessTransport>(hub_);
}

}  // namespace baton::rpc
