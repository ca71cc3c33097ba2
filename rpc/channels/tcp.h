// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/socket_poller.h"
#include "rpc/channels/tcp_connect.h"
#include "rpc/channels/tcp_socket.h"
#include "rpc/channels/tcp_tensors.h"

namespace baton::rpc {

struct TcpOptions {
  // The worker's own host, on which it also listens for tensors, at the port
  // `port` (0 for any free one), and the host that peers are told.
  // Without a host there is no channel.
  std::string listen_host = {};
  uint16_t port = 0;
  std::string told_host = {};
  // Elements travel within TLS if either end sets this.
  bool tls = false;
  // Checks an address before it is dialed, such as "10.0.0.1:5", and returns an
  // error if it must not be. Null allows any.
  std::function<absl::Status(const std::string& address)> check = nullptr;
  // The time within which both ends must have shown their keys.
  std::chrono::milliseconds opening{10'000};
  // When the socket ends, the channel waits so long for the connection to end,
  // which gives the better reason.
  std::chrono::milliseconds grace{500};
};

// Makes the channel of TCP connections of their own, for CPU tensors between
// workers that do not share memory. Only the kernels copy elements: they are
// written from the sender's tensor, which must not change until it has left,
// and read into the receiver's. The two ends show each other the keys of this
// connection, which they were told by gRPC. With TLS they derive from both keys
// what they show and the secret of a TLS 1.3 connection, so that neither key is
// seen on the network. If there can be no channel, the kind offers the reason.
std::shared_ptr<ChannelKind> MakeTcp(const TcpOptions& options);

// The keys of a connection and, with TLS, the secrets derived from them.
struct TcpSecrets {
  TcpKeys keys;
  std::optional<TlsSetup> tls;
};

// What all ends of a worker share.
struct TcpParts {
  std::shared_ptr<SocketPoller> reader, writer;
  std::shared_ptr<ThreadPool> executor;  // asks the resolver
  std::shared_ptr<TcpListener> listener;
  TcpOptions options;
};

// One end of a socket between two workers (rpc/wire.proto has its messages).
class TcpEnd final : public Channel,
                     public std::enable_shared_from_this<TcpEnd> {
 public:
  TcpEnd(const TcpParts& parts, TcpSecrets secrets,
         std::shared_ptr<ChannelPort> port);

  // One of the two is called, once: DialAtStart on the end that dialed, Expect
  // on the other one, which waits for the key.
  void DialAtStart(std::string host, uint16_t port);
  absl::Status Expect();

  void Start() override;
  void OnControl(std::string payload) override;
  std::optional<Ticket> Export(const Tensor& tensor) override;
  void Withdraw(uint64_t lease) override { sends_.Withdraw(lease); }
  Future<void> Send(uint64_t lease) override;
  absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                  const std::string& ticket) override;
  // Always an error: leases end here, when the tensor has left.
  absl::Status OnReleased(uint64_t lease) override;
  void OnLost() override;
  TensorChannelInfo info() const override;

 private:
  // Gets the addresses of the host that the peer named, and dials them unless
  // one must not be dialed. Calls the port only later.
  void Dial(absl::StatusOr<TcpAddresses> addresses);
  absl::Status CheckAll(const TcpAddresses& addresses) const;
  void Dialed(absl::StatusOr<Fd> socket);
  void Adopt(Fd socket);
  // Reports that the channel cannot open or, once open, that the connection
  // must end.
  void Fail(const std::string& why, bool tell = true);
  // Fails with `why`, a string literal, if the channel is not open in time.
  void FailUnlessOpened(SocketPoller& poller, const char* why);
  // The socket has ended, perhaps because the connection is ending.
  void Ended(const absl::Status& why);
  SocketPoller::Then Read(const std::shared_ptr<TcpStream>& stream);
  SocketPoller::Then Write(TcpStream& stream);
  // Continues the handshake, with whose end the channel is open. Returns
  // Cancelled while it is under way, or if the connection has ended.
  absl::Status Open(const std::shared_ptr<TcpStream>& stream);

  const std::weak_ptr<SocketPoller> reader_, writer_;
  const std::weak_ptr<ThreadPool> executor_;
  const std::shared_ptr<TcpListener> listener_;
  const TcpOptions options_;
  const TcpKeys keys_;
  const std::optional<TlsSetup> tls_;
  const std::shared_ptr<ChannelPort> port_;
  std::string dial_host_;  // constant from before the start
  uint16_t dial_port_ = 0;
  TcpSends sends_;
  TcpReceipts receipts_;
  std::atomic<bool> open_{false};
  bool opened_ = false;  // for good; used by the reader only
  mutable Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;             // failed, or lost
  std::shared_ptr<TcpDial> dial_ ABSL_GUARDED_BY(mutex_);  // under way
  std::shared_ptr<TcpStream> stream_ ABSL_GUARDED_BY(mutex_);
  uint64_t reads_ ABSL_GUARDED_BY(mutex_) = 0;  // ids in the pollers
  uint64_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton::rpc
