// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl_end.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {

NcclEnd::NcclEnd(const NcclParts& parts, bool leads,
                 std::shared_ptr<ChannelPort> port)
    : gpu_(parts.gpu),
      nccl_(parts.nccl),
      poller_(parts.poller),
      rescuer_(parts.rescuer),
      executor_(parts.executor),
      breaks_(parts.breaks),
      options_(parts.options),
      traffic_(parts.traffic),
      leads_(leads),
      port_(std::move(port)),
      sends_(std::make_shared<NcclSends>(gpu_, nccl_, traffic_)),
      receipts_(std::make_shared<NcclReceipts>(nccl_)) {}

void NcclEnd::Post(Task task) {
  if (const auto executor = executor_.lock()) executor->Post(std::move(task));
}

void NcclEnd::Ask(Poller::Question asked) {
  if (const auto poller = poller_.lock()) poller->Add(std::move(asked));
}

void NcclEnd::Say(const wire::NcclWords& words) {
  port_->Say(words.SerializeAsString());
}

std::shared_ptr<NcclLines> NcclEnd::lines() const {
  MutexLock lock(mutex_);
  return lines_;
}

bool NcclEnd::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

void NcclEnd::Fail(const std::string& why, bool tell) {
  // The others' sends go on once these lines let go.
  NcclTraffic::Token turn, hold;
  std::shared_ptr<NcclLines> lines;
  bool open = false;
  {
    MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    turn.swap(turn_);
    hold.swap(hold_);
    open = open_.exchange(false);
    // Tensors on their way keep theirs until the connection has ended.
    if (!open) lines.swap(lines_);
  }
  if (open) {
    ++*breaks_;
    return port_->Broke(why);
  }
  wire::NcclWords words;
  words.set_failed(why);
  if (tell) Say(words);
  port_->Failed(why);
  if (lines != nullptr) lines->Abort();
}

void NcclEnd::Start() {
  if (started_.exchange(true)) return;
  Ask([self = shared_from_this()] {
    if (self->leads_) {
      self->OnBegin();
    } else {
      wire::NcclWords words;
      words.set_begin(true);
      self->Say(words);
    }
    return true;
  });
}

void NcclEnd::OnSaid(std::string words) {
  Ask([self = shared_from_this(), words = std::move(words)] {
    wire::NcclWords parsed;
    if (parsed.ParseFromString(words)) {
      self->OnWords(parsed);
    } else {
      self->Fail("it says what makes no sense");
    }
    return true;
  });
}

void NcclEnd::OnWords(const wire::NcclWords& words) {
  switch (words.words_case()) {
    case wire::NcclWords::kBegin:
      return OnBegin();
    case wire::NcclWords::kTurn:
      return OnTurn();
    case wire::NcclWords::kLines:
      return OnLines({words.lines().there(), words.lines().back()});
    case wire::NcclWords::kSum:
      return OnSum(words.sum());
    case wire::NcclWords::kAsk:
      return OnAsk(words.ask());
    case wire::NcclWords::kSent:
      return OnSent(words.sent());
    case wire::NcclWords::kFailed:
      return Fail(absl::StrCat("there: ", words.failed()), false);
    default:
      return Fail("it says what makes no sense");
  }
}

std::optional<Ticket> NcclEnd::Export(const Tensor& tensor) {
  if (!open_) return std::nullopt;
  return sends_->Export(tensor);
}

absl::StatusOr<Imported> NcclEnd::Import(const TensorSpec& spec,
                                         const std::string& ticket) {
  wire::NcclTicket parsed;
  if (!parsed.ParseFromString(ticket)) {
    return absl::InvalidArgumentError("a ticket that does not parse");
  }
  // What has no lines has nobody to give it up.
  if (lines() == nullptr)
    return absl::InvalidArgumentError("a tensor by NCCL, which is not open");
  ASSIGN_OR_RETURN(Imported imported, receipts_->Import(spec, parsed));
  Ask([self = shared_from_this(), lease = parsed.lease()] {
    wire::NcclWords words;
    words.set_ask(lease);
    self->Say(words);
    return true;
  });
  return imported;
}

void NcclEnd::OnAsk(uint64_t lease) {
  auto asked = sends_->OnAsk(lease);
  if (!asked.ok()) return Fail(std::string(asked.status().message()));
  Ask([self = shared_from_this(), lease, written = *std::move(asked),
       is_written = false]() mutable {
    if (self->lines() == nullptr) return true;
    is_written = is_written || written();
    if (!is_written) return false;
    auto token = self->traffic_->BeginSend();
    if (token == nullptr) return false;
    self->SendBeside(lease, std::move(token));
    return true;
  });
}

void NcclEnd::SendBeside(uint64_t lease, NcclTraffic::Token token) {
  const auto tensor = sends_->Begin(lease, std::move(token));
  if (!tensor.has_value()) return;
  // Not sooner: the other end gives its GPU what waits for this one's.
  Task given = [weak = weak_from_this(), lease] {
    wire::NcclWords words;
    words.set_sent(lease);
    if (const auto self = weak.lock()) self->Say(words);
  };
  PostTo(out_, *tensor, std::move(given),
         [sends = sends_, lease] { sends->End(lease); });
}

void NcclEnd::OnSent(uint64_t lease) {
  if (lines() == nullptr) return;
  const auto tensor = receipts_->Begin(lease);
  if (!tensor.ok()) return Fail(std::string(tensor.status().message()));
  PostTo(
      in_, *tensor, [receipts = receipts_, lease] { receipts->Give(lease); },
      [receipts = receipts_, lease] { receipts->End(lease); });
}

void NcclEnd::PostTo(const std::shared_ptr<NcclPosts>& posts,
                     const Tensor& tensor, Task given, Task ended) {
  const auto lines = this->lines();
  if (lines == nullptr) return;
  if (posts == nullptr) return Fail("it goes on before the lines are open");
  const absl::Status posted =
      posts->Add(tensor, std::move(given), std::move(ended));
  if (!posted.ok()) return Fail(std::string(posted.message()));
  if (std::exchange(posts->advancing, true)) return;
  Ask([self = shared_from_this(), lines, posts] {
    const auto done = posts->Advance();
    if (done.ok() && !*done) return false;
    posts->advancing = false;
    if (done.ok()) return true;
    self->Fail(std::string(done.status().message()));
    // Lost by now: nothing more will come.
    if (self->lines() == nullptr) lines->Abort();
    return true;
  });
}

absl::Status NcclEnd::OnReleased(uint64_t lease) {
  return absl::InvalidArgumentError(absl::StrCat(
      "gives back the tensor ", lease, " of NCCL, which it keeps"));
}

void NcclEnd::OnLost() {
  std::shared_ptr<NcclLines> lines;
  NcclTraffic::Token turn, hold;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    open_ = false;
    lines.swap(lines_);
    turn.swap(turn_);
    hold.swap(hold_);
  }
  // Dropped elsewhere: the allocator may be waiting for what only an abort
  // ends.
  auto dropped = sends_->Lose();
  Post([dropped = std::move(dropped)] {});
  receipts_->Lose();
  const auto rescuer = rescuer_.lock();
  if (lines == nullptr || rescuer == nullptr) return;
  rescuer->Add([self = shared_from_this(), lines, turn, hold,
                until = Clock::now() + options_.grace] {
    if (Clock::now() < until && (!self->sends_->under_way().empty() ||
                                 !self->receipts_->under_way().empty()))
      return false;
    lines->Abort();
    return true;
  });
}

TensorChannelInfo NcclEnd::info() const {
  return {sends_->counts(), receipts_->counts()};
}

}  // namespace baton::rpc
