// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/doorman.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/transports/credentials.h"

namespace baton::rpc {
namespace {

// Lanes that were opened and said no hello yet, or came before Open.
constexpr size_t kMaxStrangers = 1024;

// Owns lanes from their first byte until `admit` finds another owner.
class Listener final : public LaneOwner {
 public:
  explicit Listener(Doorman::Admit admit) : admit_(std::move(admit)) {}

  bool OnFrames(Lane& lane, const grpc::ByteBuffer& frames) override;
  void OnWritten(Lane&) override {}
  void OnBroken(Lane& lane, const absl::Status&) override;

  struct Early {
    std::shared_ptr<Lane> lane;
    Hello hello;
  };
  // Nobody waits any more; gives those who did.
  std::vector<Early> Open();

  const Doorman::Admit& admit() const { return admit_; }

 private:
  const Doorman::Admit admit_;
  Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Early> early_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<Hello> HelloIn(Lane& lane, const grpc::ByteBuffer& frames) {
  Receiver::Batch batch;
  RETURN_IF_ERROR(lane.receiver().ConsumeControls(frames, batch));
  if (batch.controls.size() != 1 ||
      batch.controls[0].kind != FrameKind::kHello) {
    return absl::InvalidArgumentError("no hello");
  }
  return ParseHello(batch.controls[0].meta);
}

bool Listener::OnFrames(Lane& lane, const grpc::ByteBuffer& frames) {
  absl::StatusOr<Hello> hello = HelloIn(lane, frames);
  if (!hello.ok()) {
    LogWarning("a stranger's connection is closed: ", hello.status().message());
    lane.CloseWith(Encode(HelloAnswer{
        .verdict = Verdict::kRefused,
        .text = absl::StrCat("no valid hello: ", hello.status().message())}));
    return false;
  }
  if (const absl::Status known = lane.CheckCaller(hello->self.name);
      !known.ok()) {
    LogWarning("refused a connection: ", known.message());
    lane.CloseWith(Encode(HelloAnswer{.verdict = Verdict::kRefused,
                                      .text = std::string(known.message())}));
    return false;
  }
  {
    MutexLock lock(mutex_);
    if (!open_) {
      early_.push_back({lane.shared(), *std::move(hello)});
      return false;
    }
  }
  admit_(lane.shared(), *hello);
  return true;
}

void Listener::OnBroken(Lane& lane, const absl::Status&) {
  MutexLock lock(mutex_);
  std::erase_if(early_, [&lane](const Early& early) {
    return early.lane.get() == &lane;
  });
}

std::vector<Listener::Early> Listener::Open() {
  MutexLock lock(mutex_);
  open_ = true;
  return std::exchange(early_, {});
}

class DoormanImpl final : public Doorman {
 public:
  DoormanImpl(LinkHost& host, std::function<size_t()> links, Admit admit)
      : host_(host),
        links_(std::move(links)),
        listener_(std::make_shared<Listener>(std::move(admit))) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  void Open() override {
    for (const Listener::Early& early : listener_->Open()) {
      listener_->admit()(early.lane, early.hello);
      early.lane->ResumeReading();
    }
  }
  void Close() override {
    for (const Listener::Early& early : listener_->Open()) early.lane->Close();
  }

 private:
  LinkHost& host_;
  const std::function<size_t()> links_;
  const std::shared_ptr<Listener> listener_;
};

grpc::ServerGenericBidiReactor* DoormanImpl::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  class Refusal final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
    void OnDone() override { delete this; }
  };
  if (context->method() != kLaneMethod) {
    return new Refusal(
        {grpc::StatusCode::UNIMPLEMENTED, "a Baton worker has no such method"});
  }
  if (const absl::Status known = CheckToken(host_.options.security, *context);
      !known.ok()) {
    LogWarning("refused a connection from ", context->peer(), ": ",
               known.message());
    return new Refusal(
        {grpc::StatusCode::UNAUTHENTICATED, std::string(known.message())});
  }
  if (static_cast<size_t>(host_.lanes.count()) > kMaxStrangers + 4 * links_()) {
    return new Refusal(
        {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many connections"});
  }
  const Lane::Accepted accepted = Lane::Accept(
      context, listener_, host_.options.max_message_bytes, host_.lanes);
  host_.timer->After(host_.options.hello_timeout, [weak = accepted.lane] {
    if (auto lane = weak.lock()) lane->CloseIfSilent();
  });
  return accepted.reactor;
}

}  // namespace

std::unique_ptr<Doorman> Doorman::Make(LinkHost& host,
                                       std::function<size_t()> links,
                                       Admit admit) {
  return std::make_unique<DoormanImpl>(host, std::move(links),
                                       std::move(admit));
}

}  // namespace baton::rpc
