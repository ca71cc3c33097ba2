// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp.h"

#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/security.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

using Poll = SocketPoller::Then;

// Steps of one connection before others have their turn.
constexpr int kStepsAtOnce = 16;

// The result keeps the stream alive.
std::shared_ptr<const Fd> SocketOf(const std::shared_ptr<TcpStream>& stream) {
  return {stream, &stream->socket()};
}

}  // namespace

TcpEnd::TcpEnd(const TcpParts& parts, TcpSecrets secrets,
               std::shared_ptr<ChannelPort> port)
    : reader_(parts.reader),
      writer_(parts.writer),
      executor_(parts.executor),
      listener_(parts.listener),
      options_(parts.options),
      keys_(std::move(secrets.keys)),
      tls_(std::move(secrets.tls)),
      port_(std::move(port)) {}

void TcpEnd::DialAtStart(std::string host, uint16_t port) {
  dial_host_ = std::move(host);
  dial_port_ = port;
}

absl::Status TcpEnd::Expect() {
  const auto reader = reader_.lock();
  if (reader == nullptr) return absl::CancelledError("the worker ends");
  FailUnlessOpened(*reader, "nobody connected to the port for tensors");
  return listener_->Expect(keys_, [weak = weak_from_this()](Fd socket) {
    if (const auto self = weak.lock()) self->Adopt(std::move(socket));
  });
}

void TcpEnd::FailUnlessOpened(SocketPoller& poller, const char* why) {
  poller.After(options_.opening, [weak = weak_from_this(), why] {
    const auto self = weak.lock();
    if (self != nullptr && !self->open_) self->Fail(why);
  });
}

// The resolver is asked for one name at a time, so a slow name delays only
// other names.
void TcpEnd::Start() {
  const auto executor = executor_.lock();
  if (executor == nullptr || dial_host_.empty()) return;
  auto known = FindTcpAtOnce(dial_host_, dial_port_);
  if (known.ok()) return Dial(std::move(known));
  executor->Post([weak = weak_from_this()] {
    if (const auto self = weak.lock())
      self->Dial(FindTcp(self->dial_host_, self->dial_port_));
  });
}

void TcpEnd::Dial(absl::StatusOr<TcpAddresses> addresses) {
  const auto executor = executor_.lock();
  const auto reader = reader_.lock();
  if (executor == nullptr || reader == nullptr) return;
  absl::Status status = addresses.status();
  if (status.ok()) status = CheckAll(*addresses);
  if (!status.ok()) {
    executor->Post(
        [self = shared_from_this(), status] { self->Dialed(status); });
    return;
  }
  MutexLock lock(mutex_);
  if (ended_) return;
  dial_ = TcpDial::Start(reader, *std::move(addresses), keys_, options_.opening,
                         [weak = weak_from_this()](absl::StatusOr<Fd> socket) {
                           if (const auto self = weak.lock())
                             self->Dialed(std::move(socket));
                         });
}

void TcpEnd::Dialed(absl::StatusOr<Fd> socket) {
  if (socket.ok()) return Adopt(*std::move(socket));
  Fail(absl::StrCat(dial_host_, ", port ", dial_port_, ": ",
                    socket.status().message()));
}

absl::Status TcpEnd::CheckAll(const TcpAddresses& addresses) const {
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    if (options_.check != nullptr) RETURN_IF_ERROR(options_.check(ToText(*at)));
  }
  return absl::OkStatus();
}

void TcpEnd::Adopt(Fd socket) {
  if (!socket.valid()) return Fail("the socket ended at once");
  const auto reader = reader_.lock();
  if (reader == nullptr) return;
  absl::StatusOr<std::shared_ptr<TcpStream>> stream =
      tls_.has_value() ? TcpStream::Tls(std::move(socket), *tls_)
                       : TcpStream::Clear(std::move(socket));
  if (!stream.ok()) return Fail(std::string(stream.status().message()));
  FailUnlessOpened(*reader, "the handshake for tensors took too long");
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    stream_ = *stream;
    const auto reads =
        reader->Add(SocketOf(*stream), SocketPoller::For::kReading,
                    [weak = weak_from_this(), stream = *stream] {
                      const auto self = weak.lock();
                      return self == nullptr ? Poll::kEnd : self->Read(stream);
                    });
    status = reads.status();
    if (reads.ok()) reads_ = *reads;
  }
  if (!status.ok()) Fail(std::string(status.message()));
}

absl::Status TcpEnd::Open(const std::shared_ptr<TcpStream>& stream) {
  RETURN_IF_ERROR(stream->Handshake());
  const auto writer = writer_.lock();
  if (writer == nullptr) return absl::CancelledError("the worker ends");
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::CancelledError("the connection has ended");
    ASSIGN_OR_RETURN(
        writes_, writer->Add(SocketOf(stream), SocketPoller::For::kWriting,
                             [weak = weak_from_this(), stream] {
                               const auto self = weak.lock();
                               return self == nullptr ? Poll::kEnd
                                                      : self->Write(*stream);
                             }));
    open_ = opened_ = true;
  }
  port_->Opened();
  return absl::OkStatus();
}

void TcpEnd::OnControl(std::string payload) {
  const auto executor = executor_.lock();
  if (executor == nullptr) return;
  executor->Post([self = shared_from_this(), payload = std::move(payload)] {
    wire::TcpControl parsed;
    if (!parsed.ParseFromString(payload)) {
      self->Fail("it says what makes no sense");
    } else {
      self->Fail(absl::StrCat("there: ", parsed.failed()), false);
    }
  });
}

void TcpEnd::Fail(const std::string& why, bool tell) {
  bool open = false;
  {
    MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    open = open_.exchange(false);
  }
  listener_->Forget(keys_.ours);
  if (open) return port_->Broke(why);
  if (tell) {
    wire::TcpControl control;
    control.set_failed(why);
    port_->SendControl(control.SerializeAsString());
  }
  port_->Failed(why);
  OnLost();
}

void TcpEnd::Ended(const absl::Status& why) {
  // Cancelled is not reported: this end has ended the socket itself.
  if (absl::IsCancelled(why)) return;
  if (!absl::IsUnavailable(why)) return Fail(std::string(why.message()));
  const auto reader = reader_.lock();
  if (reader == nullptr) return;
  reader->After(options_.grace,
                [weak = weak_from_this(), text = std::string(why.message())] {
                  if (const auto self = weak.lock()) self->Fail(text);
                });
}

Poll TcpEnd::Read(const std::shared_ptr<TcpStream>& stream) {
  if (!opened_) {
    const absl::Status status = Open(stream);
    if (absl::IsCancelled(status)) return Poll::kWhenReady;
    if (!status.ok()) {
      Fail(std::string(status.message()));
      return Poll::kEnd;
    }
  }
  for (int step = 0; step < kStepsAtOnce; ++step) {
    auto read = receipts_.ReadFrom(*stream);
    if (!read.ok()) {
      Ended(read.status());
      return Poll::kEnd;
    }
    if (read->came.has_value()) read->came->Set(absl::OkStatus());
    if (read->empty) return Poll::kWhenReady;
    if (read->unasked) return Poll::kWhenWoken;
  }
  return Poll::kAgain;
}

Poll TcpEnd::Write(TcpStream& stream) {
  for (int step = 0; step < kStepsAtOnce; ++step) {
    auto wrote = sends_.Write(stream);
    if (!wrote.ok()) {
      Ended(wrote.status());
      return Poll::kEnd;
    }
    if (wrote->left.has_value()) wrote->left->Set(absl::OkStatus());
    if (wrote->full) return Poll::kWhenReady;
    if (wrote->all) return Poll::kWhenWoken;
  }
  return Poll::kAgain;
}

std::optional<Ticket> TcpEnd::Export(const Tensor& tensor) {
  if (!open_) return std::nullopt;
  return sends_.Export(tensor);
}

Future<void> TcpEnd::Send(uint64_t lease) {
  Future<void> left = sends_.Send(lease);
  uint64_t writes = 0;
  {
    MutexLock lock(mutex_);
    writes = writes_;
  }
  if (const auto writer = writer_.lock()) writer->Wake(writes);
  return left;
}

absl::StatusOr<Imported> TcpEnd::Import(const TensorSpec& spec,
                                        const std::string& ticket) {
  wire::TcpTicket parsed;
  if (!parsed.ParseFromString(ticket)) {
    return absl::InvalidArgumentError("a ticket that does not parse");
  }
  ASSIGN_OR_RETURN(Imported imported,
                   receipts_.Import(spec, parsed.lease(), parsed.bytes()));
  uint64_t reads = 0;
  {
    MutexLock lock(mutex_);
    reads = reads_;
  }
  // Its bytes may be there already and were not read before.
  const auto reader = reader_.lock();
  if (reader != nullptr && reads != 0) reader->Wake(reads);
  return imported;
}

absl::Status TcpEnd::OnReleased(uint64_t lease) {
  return absl::InvalidArgumentError(
      absl::StrCat("gives back the tensor ", lease, " of TCP, which it keeps"));
}

void TcpEnd::OnLost() {
  std::shared_ptr<TcpDial> dial;
  std::shared_ptr<TcpStream> stream;
  uint64_t reads = 0, writes = 0;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    open_ = false;
    dial.swap(dial_);
    stream.swap(stream_);
    reads = reads_;
    writes = writes_;
  }
  if (dial != nullptr) dial->Cancel();
  listener_->Forget(keys_.ours);
  sends_.Lose();
  receipts_.Lose();
  if (stream == nullptr) return;
  shutdown(stream->socket().get(), SHUT_RDWR);
  // Makes the pollers release the socket.
  if (const auto reader = reader_.lock()) reader->Wake(reads);
  if (const auto writer = writer_.lock()) writer->Wake(writes);
}

TensorChannelInfo TcpEnd::info() const {
  return {sends_.counts(), receipts_.counts()};
}

namespace {

constexpr uint32_t kSharedMemory = 1;

// Both ends call this with their two offers. With TLS the keys stay secret:
// what the ends show each other on the network is derived from them.
TcpSecrets SecretsOf(const wire::TcpOffer& ours, const wire::TcpOffer& theirs,
                     bool dialed) {
  if (!ours.tls() && !theirs.tls())
    return {{ours.key(), theirs.key()}, std::nullopt};
  const auto shown = [](const std::string& key) {
    return ProveToken(key, {"shown"}).substr(0, kKeyBytes);
  };
  const std::string both =
      dialed ? ours.key() + theirs.key() : theirs.key() + ours.key();
  return {{shown(ours.key()), shown(theirs.key())},
          TlsSetup{.secret = ProveToken(both, {"secret"}), .client = dialed}};
}

class TcpKind final : public ChannelKind {
 public:
  explicit TcpKind(const TcpOptions& options)
      : parts_{.reader = SocketPoller::Make("baton-tcp-in"),
               .writer = SocketPoller::Make("baton-tcp-out"),
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
        theirs.key().size() != kKeyBytes || theirs.host().empty() ||
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
