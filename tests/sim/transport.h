// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/executor.h"
#include "rpc/transport.h"
#include "rpc/transports/failure_detector.h"
#include "tests/sim/network.h"

namespace baton::sim {

class SimTransport;

// Finds the transports of a simulation by address.
class Exchange {
 public:
  explicit Exchange(Network& network) : network_(network) {}

  Network& network() { return network_; }
  std::string Add(SimTransport* transport, int machine);
  // Returns null if nobody listens there any more.
  SimTransport* Find(const std::string& address) const;
  void Remove(const std::string& address);
  // The process of that group has ended. Its kernel resets its connections,
  // unless the machine lost power (`silently`).
  void OnKilled(int group, bool silently);
  // Breaks the connection between two machines at both ends, as a reset does.
  void Sever(int a, int b);
  uint64_t NewConnection() { return ++connections_; }

 private:
  Network& network_;
  std::map<std::string, SimTransport*> by_address_;
  uint64_t connections_ = 0;
  int addresses_ = 0;
};

// An rpc::Transport over the simulated network. Two workers have one
// connection, which takes a packet in each direction to make. A reset breaks
// it, and so does the other end's silence (rpc/transports/failure_detector.h).
// It takes no lock, so the running thread keeps its turn in all calls.
// Construct it on a thread of its group.
class SimTransport final : public rpc::Transport {
 public:
  SimTransport(Exchange& exchange, int machine,
               std::chrono::milliseconds lease);
  ~SimTransport() override;

  std::string address() const override { return address_; }
  absl::Status Start(const rpc::WorkerInfo& self,
                     rpc::MessageHandler* handler) override;
  void AddPeer(const rpc::WorkerInfo& peer) override;
  void RemovePeer(const std::string& name) override;
  void Forget(const rpc::WorkerInfo& peer) override;
  void Disconnect(const std::string& name, Task then) override;
  void Send(const std::string& peer, rpc::Message message, Sent sent) override;
  void Shutdown(std::chrono::milliseconds timeout) override;

  int machine() const { return machine_; }
  int group() const { return group_; }

 private:
  friend class Exchange;
  enum class State { kIdle, kDialing, kUp };
  struct Outgoing {
    rpc::Message message;
    Sent sent;
  };
  struct Peer {
    rpc::WorkerInfo info;
    State state = State::kIdle;
    uint64_t connection = 0;
    bool torn = false;  // what is sent on this connection is lost
    Nanos dial_until{0};
    rpc::FailureDetector failure_detector;
    std::deque<Outgoing> outbox;
    Nanos counted_from{0};
    int counted = 0;  // messages since then
  };
  // The first packet of a connection in each direction, which identifies its
  // sender.
  struct Hello {
    uint64_t connection;
    rpc::WorkerInfo from;
    rpc::WorkerInfo to;
    std::chrono::milliseconds lease;
  };
  using Call = absl::AnyInvocable<void()>;

  void RunCalls();
  // Runs the call on the transport's thread.
  void Post(Call call);
  // Fails the run if a worker sends far too many messages.
  void Count(Peer& peer);
  Peer* FindUp(const std::string& name, uint64_t connection);

  void Dial(Peer& peer);
  void TryToDial(Peer& peer);
  void DialFailed(const std::string& name, uint64_t connection,
                  const std::string& why, bool at_once);
  void BecomeUp(Peer& peer, uint64_t connection,
                std::chrono::milliseconds lease);
  void AwaitBeat(Peer& peer);
  void Beat(const std::string& name, uint64_t connection);
  // Sends the waiting messages, soon or now.
  void LeaveSoon(Peer& peer);
  void Leave(Peer& peer);
  void Carry(const std::string& address,
             const std::shared_ptr<const rpc::Message>& message,
             uint64_t connection);
  // Call this when a message was lost: what follows it on its connection is
  // lost, too, and the connection soon breaks.
  void Tear(Peer& peer);
  void Break(Peer& peer, const absl::Status& why, bool tell);
  void Replace(Peer& peer, const rpc::WorkerInfo& by);

  // Runs `arrive` on the peer's machine when the packet has arrived there.
  using Arrive = std::function<void(SimTransport& to)>;
  void Tell(const std::string& address, bool ordered, Arrive arrive);
  void Reset(const std::string& address, uint64_t connection);
  void OnHello(const Hello& hello);
  void OnAnswer(const Hello& answer);
  void OnReset(const std::string& from, uint64_t connection);
  void OnBeat(const std::string& from, uint64_t connection);
  void OnData(const std::string& from, const std::string& address,
              uint64_t connection,
              const std::shared_ptr<const rpc::Message>& message);

  Exchange& exchange_;
  const int machine_;
  const int group_;
  const std::chrono::milliseconds lease_;
  const std::string address_;
  rpc::WorkerInfo self_;
  rpc::MessageHandler* handler_ = nullptr;
  bool shut_ = false;
  bool ended_ = false;
  bool ending_ = false;
  std::map<std::string, Peer> peers_;
  // Earlier incarnations of workers, by name. They are refused while another
  // one is known.
  std::map<std::string, std::set<uint64_t>> past_;
  std::deque<Call> calls_;
};

}  // namespace baton::sim
