// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/cuda_ipc.h"

#include <unistd.h>

#include <chrono>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/executor.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/poller.h"
#include "rpc/channels/segment.h"
#include "rpc/security.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

using Clock = std::chrono::steady_clock;

// A peer whose connection is lost may still copy what it was sent.
constexpr std::chrono::milliseconds kGrace{500};
// How long a segment stays open while nothing in it is sent, if others are
// needed.
constexpr std::chrono::milliseconds kIdle{5000};

// Returns what asks the peer for leases that a writer waits for. Another thread
// does so, because the writer may hold locks.
std::function<void()> AskingFor(const std::shared_ptr<ThreadPool>& executor,
                                const std::shared_ptr<ChannelPort>& port) {
  return [weak = std::weak_ptr(executor), port] {
    const auto thread = weak.lock();
    if (thread == nullptr) return;
    thread->Post([port] {
      wire::CudaIpcControl control;
      control.set_wanted(true);
      port->SendControl(control.SerializeAsString());
    });
  };
}

}  // namespace

CudaIpcEnd::CudaIpcEnd(std::shared_ptr<IpcGpu> gpu, IpcReach reach,
                       std::shared_ptr<Poller> poller,
                       std::shared_ptr<ThreadPool> executor,
                       std::shared_ptr<ChannelPort> port)
    : poller_(poller),
      executor_(executor),
      port_(std::move(port)),
      own_(gpu->own()),
      exports_(
          std::make_shared<IpcExports>(gpu, reach, AskingFor(executor, port_))),
      imports_(std::make_shared<IpcImports>(gpu, poller, port_)) {}

void CudaIpcEnd::Post(Task task) {
  if (const auto executor = executor_.lock()) executor->Post(std::move(task));
}

void CudaIpcEnd::SendControl(const wire::CudaIpcControl& control) {
  port_->SendControl(control.SerializeAsString());
}

void CudaIpcEnd::Start() {
  if (started_.exchange(true)) return;
  const IpcExports::Need first{.place = {.gpu = own_}, .first = true};
  Post([self = shared_from_this(), first] { self->Pass(first); });
}

void CudaIpcEnd::CloseIdle() {
  for (const uint32_t segment : exports_->TakeIdle(kIdle)) {
    wire::CudaIpcControl control;
    control.set_close(segment);
    SendControl(control);
  }
}

void CudaIpcEnd::Pass(const IpcExports::Need& need) {
  CloseIdle();
  auto passed = need.first ? exports_->PassFirst(need.place.gpu)
                           : exports_->Pass(need.place);
  wire::CudaIpcControl control;
  if (passed.ok()) {
    *control.mutable_passed() = *std::move(passed);
  } else {
    const std::string why(passed.status().message());
    Refused(why);
    // The other end may wait for a first segment.
    control.set_failed(why);
  }
  SendControl(control);
}

void CudaIpcEnd::Refused(const std::string& why) {
  if (open_) {
    LogInfo("some memory of a GPU is not shared with a peer: ", why);
  } else {
    port_->Failed(why);
  }
}

void CudaIpcEnd::OnControl(std::string payload) {
  Post([self = shared_from_this(), payload = std::move(payload)] {
    wire::CudaIpcControl parsed;
    if (parsed.ParseFromString(payload)) {
      self->OnControlMessage(parsed);
    } else {
      self->port_->Failed("it says what makes no sense");
    }
  });
}

void CudaIpcEnd::OnControlMessage(const wire::CudaIpcControl& control) {
  switch (control.payload_case()) {
    case wire::CudaIpcControl::kPassed:
      OnPassed(control);
      return Start();
    case wire::CudaIpcControl::kOpened:
      return OnOpened(control);
    case wire::CudaIpcControl::kClose: {
      imports_->Close(control.close());
      wire::CudaIpcControl answer;
      answer.set_closed(control.close());
      return SendControl(answer);
    }
    case wire::CudaIpcControl::kClosed:
      return exports_->OnClosed(control.closed());
    case wire::CudaIpcControl::kWanted: {
      if (!control.wanted()) return;
      imports_->Hurry();
      wire::CudaIpcControl answer;
      answer.set_wanted(false);
      return SendControl(answer);
    }
    default:
      // Only the peer's direction has failed; this one finds out by itself.
      LogDebug("the peer shares no memory of its GPUs: ", control.failed());
      return Start();
  }
}

void CudaIpcEnd::OnPassed(const wire::CudaIpcControl& control) {
  const auto sum = imports_->Open(control.passed());
  wire::CudaIpcControl answer;
  answer.mutable_opened()->set_segment(control.passed().segment());
  answer.mutable_opened()->set_failure(std::string(sum.status().message()));
  if (sum.ok()) answer.mutable_opened()->set_sum(*sum);
  SendControl(answer);
}

void CudaIpcEnd::OnOpened(const wire::CudaIpcControl& control) {
  const wire::CudaIpcControl::Opened& opened = control.opened();
  const auto first =
      exports_->OnOpened(opened.segment(), opened.failure(), opened.sum());
  if (!first.ok()) {
    Refused(std::string(first.status().message()));
  } else if (*first && !open_.exchange(true)) {
    port_->Opened();
  }
}

std::optional<Ticket> CudaIpcEnd::Export(const Tensor& tensor) {
  std::optional<IpcExports::Need> need;
  auto ticket = exports_->Export(tensor, need);
  if (need.has_value()) {
    Post([self = shared_from_this(), need = *need] { self->Pass(need); });
  }
  return ticket;
}

void CudaIpcEnd::Withdraw(uint64_t lease) {
  exports_->GiveBack(lease).IgnoreError();
}

absl::StatusOr<Imported> CudaIpcEnd::Import(const TensorSpec& spec,
                                            const std::string& ticket) {
  wire::CudaIpcTicket parsed;
  if (!parsed.ParseFromString(ticket)) {
    return absl::InvalidArgumentError("a ticket that does not parse");
  }
  return imports_->Import(spec, parsed);
}

absl::Status CudaIpcEnd::OnReleased(uint64_t lease) {
  return exports_->GiveBack(lease);
}

// Releasing GPU memory waits for its streams, which may wait for the lost peer
// until its loss is reported. So neither this thread nor the poller may do it.
void CudaIpcEnd::OnLost() {
  auto lost = exports_->Lose();
  Post([segments = imports_->Forget()]() mutable { segments.clear(); });
  if (const auto poller = poller_.lock()) {
    poller->Add([self = shared_from_this(), lost = std::move(lost),
                 until = Clock::now() + kGrace]() mutable {
      if (Clock::now() < until) return false;
      self->Post([lost = std::move(lost)]() mutable { lost.reset(); });
      return true;
    });
  }
}

TensorChannelInfo CudaIpcEnd::info() const {
  TensorChannelInfo info{exports_->counts(), imports_->counts()};
  info.why_not = exports_->why_not();
  return info;
}

namespace {

// One key for this process, whichever of its workers offers.
const absl::StatusOr<std::string>& ProcessKey() {
  static const auto* const key = new absl::StatusOr<std::string>(NewKey());
  return *key;
}

class CudaIpc final : public ChannelKind {
 public:
  CudaIpc(std::shared_ptr<IpcGpu> gpu, IpcReach reach)
      : gpu_(std::move(gpu)),
        reach_(reach),
        boot_id_(BootId()),
        poller_(std::make_shared<Poller>("baton-ipc-poll")),
        executor_(std::make_shared<ThreadPool>(1, "baton-ipc")) {}

  uint32_t id() const override { return 2; }
  std::string name() const override { return "CUDA IPC"; }

  absl::StatusOr<std::string> Offer() override {
    RETURN_IF_ERROR(CheckOwn(*gpu_));
    RETURN_IF_ERROR(boot_id_.status());
    RETURN_IF_ERROR(ProcessKey().status());
    ASSIGN_OR_RETURN(const std::string uuid, gpu_->Uuid());
    wire::CudaIpcOffer offer;
    offer.set_boot_id(*boot_id_);
    offer.set_user(geteuid());
    offer.set_process(*ProcessKey());
    offer.set_gpu(uuid);
    offer.set_all_gpus(reach_ == IpcReach::kAllGpus);
    return offer.SerializeAsString();
  }

  absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends& ends, std::shared_ptr<ChannelPort> port) override {
    wire::CudaIpcOffer ours, theirs;
    if (!ours.ParseFromString(ends.ours) ||
        !theirs.ParseFromString(ends.theirs)) {
      return absl::InvalidArgumentError("its offer does not parse");
    }
    if (theirs.boot_id() != ours.boot_id()) {
      return absl::UnavailableError("it is on another machine");
    }
    if (theirs.user() != ours.user()) {
      return absl::PermissionDeniedError("it belongs to another user");
    }
    if (theirs.process() == ours.process()) {
      return absl::UnavailableError("it is in this process");
    }
    const bool all = ours.all_gpus() && theirs.all_gpus();
    if (theirs.gpu() != ours.gpu() && !all) {
      return absl::UnavailableError(
          absl::StrCat("it has another GPU, and BATON_CUDA_IPC=one is set ",
                       ours.all_gpus() ? "there" : "here"));
    }
    return std::make_shared<CudaIpcEnd>(
        gpu_, all ? IpcReach::kAllGpus : IpcReach::kOneGpu, poller_, executor_,
        std::move(port));
  }

 private:
  const std::shared_ptr<IpcGpu> gpu_;
  const IpcReach reach_;
  const absl::StatusOr<std::string> boot_id_;
  // Shared by all ends. Copies are polled often; opening segments is slow.
  const std::shared_ptr<Poller> poller_;
  const std::shared_ptr<ThreadPool> executor_;
};

}  // namespace

std::shared_ptr<ChannelKind> MakeCudaIpc(std::shared_ptr<IpcGpu> gpu,
                                         IpcReach reach) {
  return std::make_shared<CudaIpc>(std::move(gpu), reach);
}

}  // namespace baton::rpc
