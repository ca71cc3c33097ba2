// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/connections.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/accepting.h"
#include "rpc/security.h"
#include "rpc/transports/hello.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

// The most streams that have sent no hello yet, or wait for the worker. This is
// more than the acceptor allows to unauthenticated peers, so that streams of
// theirs that are just ending do not keep members out.
constexpr size_t kMaxUnauthenticated = 2048;
// More than a cluster has; the limit is needed because names can be made up.
constexpr size_t kMaxPeers = 100'000;

absl::StatusOr<std::string> MetaIn(GrpcStream& stream, FrameKind kind,
                                   const grpc::ByteBuffer& frames) {
  Receiver::Batch batch;
  RETURN_IF_ERROR(stream.receiver().ConsumeControls(frames, batch));
  if (batch.controls.size() != 1 || batch.controls[0].kind != kind) {
    return absl::InvalidArgumentError(kind == FrameKind::kHello ? "no hello"
                                                                : "no proof");
  }
  return std::move(batch.controls[0].meta);
}

}  // namespace

// Owns a stream from its first byte until a link takes it:
//
//   kHello      --a hello-->              kWaiting
//   kWaiting    --the worker starts-->    kChallenged, or kAdmitted if the
//                                         cluster has no token
//   kChallenged --the caller's proof-->   kAdmitted
//
// Any other frame is refused. A stream that stays in kHello or kChallenged for
// hello_timeout is closed.
class Connections::Guest final : public GrpcStreamObserver,
                                 public std::enable_shared_from_this<Guest> {
 public:
  // `all` owns the streams; `peer` is gRPC's name of the connection.
  Guest(Connections& all, std::string peer)
      : all_(all), host_(all.host), peer_(std::move(peer)) {}

  bool OnFrames(GrpcStream& stream, const grpc::ByteBuffer& frames) override;
  void OnWritten(GrpcStream& stream) override;
  void OnBroken(GrpcStream&, const absl::Status&) override {
    all_.StopWaiting(*this);
  }

  // Called when the worker has started. Returns true if more is to be read.
  bool Greet(GrpcStream& stream);
  // Closes `stream` after hello_timeout unless its stage changes before.
  void CutOffIfSilent(const std::weak_ptr<GrpcStream>& stream);

 private:
  enum class Stage { kHello, kWaiting, kChallenged, kAdmitted };

  bool HearProof(GrpcStream& stream, const std::string& meta);
  bool AdmitCaller(GrpcStream& stream);
  bool Refuse(GrpcStream& stream, wire::Verdict verdict,
              const std::string& why);
  void Enter(Stage stage) {
    MutexLock lock(mutex_);
    stage_ = stage;
  }
  Stage stage() const {
    MutexLock lock(mutex_);
    return stage_;
  }

  Connections& all_;
  LinkHost& host_;
  const std::string peer_;
  // Used by the thread that reads or, while nothing is read, calls Greet.
  wire::Hello hello_;
  std::string hello_meta_;
  wire::Challenge challenge_;

  mutable Mutex mutex_;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kHello;
  // An answer to the challenge waits if it arrives before this is true.
  bool challenge_written_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::string> early_proof_ ABSL_GUARDED_BY(mutex_);
};

bool Connections::Guest::OnFrames(GrpcStream& stream,
                                  const grpc::ByteBuffer& frames) {
  const bool proves = stage() == Stage::kChallenged;
  const auto meta =
      MetaIn(stream, proves ? FrameKind::kProof : FrameKind::kHello, frames);
  if (proves) {
    MutexLock lock(mutex_);
    if (!challenge_written_) {
      early_proof_ = meta.ok() ? *meta : "";
      return false;
    }
  }
  if (proves) return HearProof(stream, meta.ok() ? *meta : "");
  absl::Status status = meta.status();
  if (status.ok()) {
    if (auto hello = ParseHello(*meta); hello.ok()) {
      hello_ = *std::move(hello);
    } else {
      status = hello.status();
    }
  }
  if (!status.ok()) {
    return Refuse(stream, wire::VERDICT_REFUSED,
                  absl::StrCat("no valid hello: ", status.message()));
  }
  hello_meta_ = *meta;
  Enter(Stage::kWaiting);
  return !all_.Wait(stream.shared(), shared_from_this()) && Greet(stream);
}

bool Connections::Guest::Greet(GrpcStream& stream) {
  const std::string& token = host_.options.security.token;
  if (token.empty()) {
    if (hello_.nonce().empty()) return AdmitCaller(stream);
    return Refuse(stream, wire::VERDICT_UNPROVEN,
                  "the caller has a cluster token, and the called has none");
  }
  if (hello_.nonce().size() != kKeyBytes) {
    return Refuse(stream, wire::VERDICT_UNPROVEN,
                  "the caller has no cluster token, and one is needed");
  }
  const auto nonce = NewKey();
  if (!nonce.ok()) {
    return Refuse(stream, wire::VERDICT_STALE,
                  std::string(nonce.status().message()));
  }
  ToWire(host_.self, *challenge_.mutable_self());
  challenge_.set_nonce(*nonce);
  challenge_.set_proof(
      ProofOf(HelloRole::kDialed, token, hello_meta_, challenge_));
  Enter(Stage::kChallenged);
  CutOffIfSilent(stream.shared());
  stream.Write(Encode(challenge_));
  return true;
}

void Connections::Guest::OnWritten(GrpcStream& stream) {
  std::optional<std::string> proof;
  {
    MutexLock lock(mutex_);
    challenge_written_ = true;
    proof = std::exchange(early_proof_, std::nullopt);
  }
  if (proof.has_value() && HearProof(stream, *proof)) stream.ResumeReading();
}

bool Connections::Guest::HearProof(GrpcStream& stream,
                                   const std::string& meta) {
  const auto proof = ParseProof(meta);
  if (!proof.ok() || !SameToken(*proof, ProofOf(HelloRole::kDialer,
                                                host_.options.security.token,
                                                hello_meta_, challenge_))) {
    return Refuse(stream, wire::VERDICT_UNPROVEN,
                  "the caller has another cluster token");
  }
  return AdmitCaller(stream);
}

bool Connections::Guest::AdmitCaller(GrpcStream& stream) {
  Enter(Stage::kAdmitted);
  if (const absl::Status known = stream.CheckCaller(hello_.self().name());
      !known.ok()) {
    return Refuse(stream, wire::VERDICT_REFUSED, std::string(known.message()));
  }
  if (all_.Admit(stream.shared(), hello_)) all_.acceptor->LetIn(peer_);
  return true;
}

bool Connections::Guest::Refuse(GrpcStream& stream, wire::Verdict verdict,
                                const std::string& why) {
  const std::string text = verdict == wire::VERDICT_UNPROVEN
                               ? std::string(TokensDiffer(why).message())
                               : why;
  LogWarning("refused a connection",
             hello_.self().name().empty() ? "" : " of who says to be worker ",
             hello_.self().name(), ": ", text);
  stream.CloseWith(Encode(Refusal(verdict, text)));
  return false;
}

void Connections::Guest::CutOffIfSilent(
    const std::weak_ptr<GrpcStream>& stream) {
  host_.timer->After(host_.options.hello_timeout, [weak = weak_from_this(),
                                                   stream, stage = stage()] {
    const auto self = weak.lock();
    const auto alive = stream.lock();
    if (self != nullptr && alive != nullptr && self->stage() == stage)
      alive->Close();
  });
}

// An unauthenticated peer must pass three steps: handshake, hello and proof.
Connections::Connections(const GrpcOptions& options)
    : acceptor(std::make_shared<Acceptor>(3 * options.hello_timeout)) {
  host.options = options;
  host.executor = std::make_shared<ThreadPool>(1, "baton-link");
  host.timer = std::make_unique<Timer>("baton-dial");
}

grpc::Status Connections::CheckRoom(const std::string& peer) const {
  absl::Status enough = CheckDescriptors(2);
  size_t known = 0;
  {
    MutexLock lock(mutex);
    known = links.size();
  }
  if (enough.ok() &&
      (!acceptor->MayOpen(peer) || static_cast<size_t>(host.streams.count()) >
                                       kMaxUnauthenticated + 2 * known)) {
    enough = absl::ResourceExhaustedError("too many connections");
  }
  if (enough.ok()) return grpc::Status::OK;
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, std::string(enough.message())};
}

grpc::ServerGenericBidiReactor* Connections::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  class Refusal final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
    void OnDone() override { delete this; }
  };
  if (context->method() != kStreamMethod) {
    return new Refusal(
        {grpc::StatusCode::UNIMPLEMENTED, "a Baton worker has no such method"});
  }
  const std::string peer = context->peer();
  if (grpc::Status room = CheckRoom(peer); !room.ok())
    return new Refusal(std::move(room));
  const auto guest = std::make_shared<Guest>(*this, peer);
  const GrpcStream::Accepted accepted = GrpcStream::Accept(
      context, guest, host.options.max_message_bytes, host.streams);
  guest->CutOffIfSilent(accepted.stream);
  return accepted.reactor;
}

bool Connections::Wait(const std::shared_ptr<GrpcStream>& stream,
                       const std::shared_ptr<Guest>& guest) {
  MutexLock lock(mutex);
  if (state != State::kNew) return false;
  waiting_.emplace_back(stream, guest);
  return true;
}

void Connections::StopWaiting(const Guest& guest) {
  MutexLock lock(mutex);
  std::erase_if(waiting_, [&guest](const auto& each) {
    return each.second.get() == &guest;
  });
}

Connections::Waiting Connections::TakeWaiting() {
  MutexLock lock(mutex);
  return std::exchange(waiting_, {});
}

void Connections::GreetWaiting() {
  for (const auto& [stream, guest] : TakeWaiting()) {
    if (guest->Greet(*stream)) stream->ResumeReading();
  }
}

void Connections::CloseWaiting() {
  for (const auto& [stream, guest] : TakeWaiting()) stream->Close();
}

std::shared_ptr<Link> Connections::FindOrMakeLocked(const WorkerInfo& peer) {
  std::shared_ptr<Link>& entry = links[peer.name];
  if (entry == nullptr) {
    entry = Link::Make(
        host, peer, forgotten.Take(peer.name).value_or(Link::Incarnations()));
  }
  return entry;
}

bool Connections::Admit(const std::shared_ptr<GrpcStream>& stream,
                        const wire::Hello& hello) {
  const std::string& self = host.self.name;
  wire::HelloAnswer answer = Judge(host.options, host.self, hello);
  std::shared_ptr<Link> link;
  {
    MutexLock lock(mutex);
    if (state == State::kShutDown) {
      answer = Refusal(wire::VERDICT_SHUT_DOWN,
                       absl::StrCat("worker ", self, " has shut down"));
    } else if (answer.verdict() == wire::VERDICT_OK &&
               links.size() >= kMaxPeers &&
               !links.contains(hello.self().name())) {
      answer = Refusal(wire::VERDICT_REFUSED,
                       absl::StrCat("worker ", self, " knows ", links.size(),
                                    " workers already"));
    }
    if (answer.verdict() == wire::VERDICT_OK)
      link = FindOrMakeLocked(FromWire(hello.self()).value());
  }
  if (link != nullptr) return link->Accept(stream, hello);
  if (answer.verdict() == wire::VERDICT_SHUT_DOWN) {
    LogDebug("refused a connection: ", answer.text());
  } else {
    LogWarning("refused a connection: ", answer.text());
  }
  stream->CloseWith(Encode(answer));
  return false;
}

void Connections::AwaitEnd() {
  if (host.poller != nullptr) host.poller->Stop();
  acceptor->Stop();
  if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
  host.streams.AwaitNone();
  server = nullptr;
}

}  // namespace baton::rpc
