// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp.h"

#include <optional>
#include <string>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/machine.h"
#include "rpc/security.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

constexpr uint32_t kSharedMemory = 1;

// Both ends call this with their two offers. With TLS the keys stay secret:
// what the ends show each other on the network is derived from them.
TcpSecrets SecretsOf(const wire::TcpOffer& ours, const wire::TcpOffer& theirs,
                     bool dialed) {
  if (!ours.tls() && !theirs.tls())
    return {{ours.key(), theirs.key()}, std::nullopt};
  const auto shown = [](const std::string& key) {
    return ProveToken(key, {"shown"}).substr(0, kTcpKeyBytes);
  };
  const std::string both =
      dialed ? ours.key() + theirs.key() : theirs.key() + ours.key();
  return {{shown(ours.key()), shown(theirs.key())},
          TlsSetup{.secret = ProveToken(both, {"secret"}), .client = dialed}};
}

class TcpKind final : public ChannelKind {
 public:
  explicit TcpKind(const TcpOptions& options)
      : parts_{.reader = std::make_shared<SocketPoller>("baton-tcp-in"),
               .writer = std::make_shared<SocketPoller>("baton-tcp-out"),
               .executor = std::make_shared<ThreadPool>(1, "baton-tcp"),
               .listener = nullptr,
               .options = options},
        listens_(Listen()) {}

  uint32_t id() const override { return 4; }
  std::string name() const override { return "TCP"; }
  std::optional<uint32_t> better() const override { return kSharedMemory; }

  absl::StatusOr<std::string> Offer() override {
    RETURN_IF_ERROR(listens_);
    wire::TcpOffer offer;
    ASSIGN_OR_RETURN(*offer.mutable_key(), NewKey());
    offer.set_host(parts_.options.told_host);
    offer.set_port(parts_.listener->port());
    offer.set_tls(parts_.options.tls);
    return offer.SerializeAsString();
  }

  absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends& ends, std::shared_ptr<ChannelPort> port) override {
    wire::TcpOffer ours, theirs;
    if (!ours.ParseFromString(ends.ours) ||
        !theirs.ParseFromString(ends.theirs) ||
        theirs.key().size() != kTcpKeyBytes || theirs.host().empty() ||
        theirs.port() == 0 || theirs.port() > 0xffff) {
      return absl::InvalidArgumentError("its offer does not parse");
    }
    RETURN_IF_ERROR(parts_.reader->Start());
    RETURN_IF_ERROR(parts_.writer->Start());
    auto end = std::make_shared<TcpEnd>(
        parts_, SecretsOf(ours, theirs, ends.dialed), std::move(port));
    if (ends.dialed) {
      end->DialAtStart(theirs.host(), static_cast<uint16_t>(theirs.port()));
    } else {
      RETURN_IF_ERROR(end->Expect());
    }
    return end;
  }

  void Stop() override {
    parts_.reader->Stop();
    parts_.writer->Stop();
  }

 private:
  absl::Status Listen() {
    const TcpOptions& options = parts_.options;
    if (options.listen_host.empty()) {
      return absl::FailedPreconditionError("this worker listens on no port");
    }
    auto listener =
        TcpListener::Make(options.listen_host, options.port, parts_.reader);
    if (listener.ok()) {
      parts_.listener = *std::move(listener);
    } else if (options.port != 0) {
      LogWarning(listener.status().message(), "; tensors go by gRPC");
    }
    return listener.status();
  }

  TcpParts parts_;
  const absl::Status listens_;
};

}  // namespace

std::shared_ptr<ChannelKind> MakeTcp(const TcpOptions& options) {
  return std::make_shared<TcpKind>(options);
}

}  // namespace baton::rpc
