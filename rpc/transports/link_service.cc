// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/link_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/channels/accepting.h"
#include "rpc/channels/machine.h"
#include "rpc/security.h"

namespace baton::rpc {
namespace {

// The most streams that have sent no hello yet, or came before Open. This is
// more than the acceptor allows to unauthenticated peers, so that streams of
// theirs that are just ending do not keep members out.
constexpr size_t kMaxUnauthenticated = 2048;

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

// Keeps the streams that wait for the worker to start. Thread-safe.
class LinkService::Lobby {
 public:
  // Returns false once it is open: then nobody needs to wait.
  bool Wait(const std::shared_ptr<GrpcStream>& stream,
            const std::shared_ptr<Guest>& guest) {
    MutexLock lock(mutex_);
    if (!open_) waiting_.emplace_back(stream, guest);
    return !open_;
  }
  void Leave(const Guest& guest) {
    MutexLock lock(mutex_);
    std::erase_if(waiting_, [&guest](const auto& each) {
      return each.second.get() == &guest;
    });
  }
  using Waiting = std::vector<
      std::pair<std::shared_ptr<GrpcStream>, std::shared_ptr<Guest>>>;
  // Opens it and returns those who waited.
  Waiting Open() {
    MutexLock lock(mutex_);
    open_ = true;
    return std::exchange(waiting_, {});
  }

 private:
  Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);
};

// Owns a stream from its first byte until `admit` finds another owner:
//
//   kHello      --a hello-->              kWaiting
//   kWaiting    --the worker starts-->    kChallenged, or kAdmitted if the
//                                         cluster has no token
//   kChallenged --the caller's proof-->   kAdmitted
//
// Any other frame is refused. A stream that stays in kHello or kChallenged for
// hello_timeout is closed.
class LinkService::Guest final : public GrpcStreamObserver,
                                 public std::enable_shared_from_this<Guest> {
 public:
  Guest(LinkHost& host, std::shared_ptr<Lobby> lobby, Admit admit)
      : host_(host), lobby_(std::move(lobby)), admit_(std::move(admit)) {}

  bool OnFrames(GrpcStream& stream, const grpc::ByteBuffer& frames) override;
  void OnWritten(GrpcStream& stream) override;
  void OnBroken(GrpcStream&, const absl::Status&) override {
    lobby_->Leave(*this);
  }

  // Called when the worker has started. Returns true if more is to be read.
  bool Greet(GrpcStream& stream);
  // Closes `stream` after hello_timeout unless its stage changes before.
  void CutOffIfSilent(const std::weak_ptr<GrpcStream>& stream);

 private:
  enum class Stage { kHello, kWaiting, kChallenged, kAdmitted };

  bool HearProof(GrpcStream& stream, const std::string& meta);
  bool AdmitCaller(GrpcStream& stream);
  bool Refuse(GrpcStream& stream, Verdict verdict, const std::string& why);
  void Enter(Stage stage) {
    MutexLock lock(mutex_);
    stage_ = stage;
  }
  Stage stage() const {
    MutexLock lock(mutex_);
    return stage_;
  }

  LinkHost& host_;
  const std::shared_ptr<Lobby> lobby_;
  const Admit admit_;
  // Used by the thread that reads or, while nothing is read, calls Greet.
  Hello hello_;
  std::string hello_meta_;
  Challenge challenge_;

  mutable Mutex mutex_;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kHello;
  // An answer to the challenge waits if it arrives before this is true.
  bool challenge_written_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::string> early_proof_ ABSL_GUARDED_BY(mutex_);
};

bool LinkService::Guest::OnFrames(GrpcStream& stream,
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
    return Refuse(stream, Verdict::kRefused,
                  absl::StrCat("no valid hello: ", status.message()));
  }
  hello_meta_ = *meta;
  Enter(Stage::kWaiting);
  return !lobby_->Wait(stream.shared(), shared_from_this()) && Greet(stream);
}

bool LinkService::Guest::Greet(GrpcStream& stream) {
  const std::string& token = host_.options.security.token;
  if (token.empty()) {
    if (hello_.nonce.empty()) return AdmitCaller(stream);
    return Refuse(stream, Verdict::kUnproven,
                  "the caller has a cluster token, and the called has none");
  }
  if (hello_.nonce.size() != kNonceBytes) {
    return Refuse(stream, Verdict::kUnproven,
                  "the caller has no cluster token, and one is needed");
  }
  const auto nonce = NewKey();
  if (!nonce.ok()) {
    return Refuse(stream, Verdict::kStale,
                  std::string(nonce.status().message()));
  }
  challenge_ = {.self = host_.self, .nonce = *nonce};
  challenge_.proof =
      ProofOf(HelloRole::kDialed, token, hello_meta_, challenge_);
  Enter(Stage::kChallenged);
  CutOffIfSilent(stream.shared());
  stream.Write(Encode(challenge_));
  return true;
}

void LinkService::Guest::OnWritten(GrpcStream& stream) {
  std::optional<std::string> proof;
  {
    MutexLock lock(mutex_);
    challenge_written_ = true;
    proof = std::exchange(early_proof_, std::nullopt);
  }
  if (proof.has_value() && HearProof(stream, *proof)) stream.ResumeReading();
}

bool LinkService::Guest::HearProof(GrpcStream& stream,
                                   const std::string& meta) {
  const auto proof = ParseProof(meta);
  if (!proof.ok() || !SameToken(*proof, ProofOf(HelloRole::kDialer,
                                                host_.options.security.token,
                                                hello_meta_, challenge_))) {
    return Refuse(stream, Verdict::kUnproven,
                  "the caller has another cluster token");
  }
  return AdmitCaller(stream);
}

bool LinkService::Guest::AdmitCaller(GrpcStream& stream) {
  Enter(Stage::kAdmitted);
  if (const absl::Status known = stream.CheckCaller(hello_.self.name);
      !known.ok()) {
    return Refuse(stream, Verdict::kRefused, std::string(known.message()));
  }
  (void)admit_(stream.shared(), hello_);
  return true;
}

bool LinkService::Guest::Refuse(GrpcStream& stream, Verdict verdict,
                                const std::string& why) {
  const std::string text = verdict == Verdict::kUnproven
                               ? std::string(TokensDiffer(why).message())
                               : why;
  LogWarning("refused a connection",
             hello_.self.name.empty() ? "" : " of who says to be worker ",
             hello_.self.name, ": ", text);
  stream.CloseWith(Encode(HelloAnswer{.verdict = verdict, .text = text}));
  return false;
}

void LinkService::Guest::CutOffIfSilent(
    const std::weak_ptr<GrpcStream>& stream) {
  host_.timer->After(host_.options.hello_timeout, [weak = weak_from_this(),
                                                   stream, stage = stage()] {
    const auto self = weak.lock();
    const auto alive = stream.lock();
    if (self != nullptr && alive != nullptr && self->stage() == stage)
      alive->Close();
  });
}

LinkService::LinkService(LinkHost& host, std::shared_ptr<Acceptor> acceptor,
                         std::function<size_t()> links, Admit admit)
    : host_(host),
      acceptor_(std::move(acceptor)),
      links_(std::move(links)),
      admit_(std::move(admit)),
      lobby_(std::make_shared<Lobby>()) {}

void LinkService::Open() {
  for (const auto& [stream, guest] : lobby_->Open()) {
    if (guest->Greet(*stream)) stream->ResumeReading();
  }
}

void LinkService::Close() {
  for (const auto& [stream, guest] : lobby_->Open()) stream->Close();
}

grpc::Status LinkService::CheckRoom(const std::string& peer) {
  absl::Status enough = CheckDescriptors(2);
  if (enough.ok() &&
      (!acceptor_->MayOpen(peer) || static_cast<size_t>(host_.streams.count()) >
                                        kMaxUnauthenticated + 4 * links_())) {
    enough = absl::ResourceExhaustedError("too many connections");
  }
  if (enough.ok()) return grpc::Status::OK;
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, std::string(enough.message())};
}

grpc::ServerGenericBidiReactor* LinkService::CreateReactor(
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
  const auto guest = std::make_shared<Guest>(
      host_, lobby_,
      [this, peer](const std::shared_ptr<GrpcStream>& stream,
                   const Hello& hello) {
        const bool admitted = admit_(stream, hello);
        if (admitted) acceptor_->LetIn(peer);
        return admitted;
      });
  const GrpcStream::Accepted accepted = GrpcStream::Accept(
      context, guest, host_.options.max_message_bytes, host_.streams);
  guest->CutOffIfSilent(accepted.stream);
  return accepted.reactor;
}

}  // namespace baton::rpc
