// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl_end.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/dense_view.h"
#include "rpc/channels/proof.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
NcclEnd::NcclEnd(const NcclParts& parts, bool dialed,
                 std::shared_ptr<ChannelPort> port)
    : gpu_(parts.gpu),
      nccl_(parts.nccl),
      poller_(parts.poller),
      executor_(parts.executor),
      breaks_(parts.breaks),
      options_(parts.options),
      dialed_(dialed),
      port_(std::move(port)),
      sends_(std::make_shared<NcclSends>(gpu_, nccl_)),
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

void NcclEnd::Fail(const std::string& why, bool tell) {
  std::shared_ptr<NcclLines> lines;
  bool open = false;
  {
    MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
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
  Post([self = shared_from_this()] { self->MakeLines(); });
}

void NcclEnd::MakeLines() {
  const auto there = nccl_->NewId(), back = nccl_->NewId();
  for (const auto* id : {&there, &back}) {
    if (!id->ok()) return Fail(std::string(id->status().message()));
  }
  wire::NcclWords words;
  words.mutable_lines()->set_there(*there);
  words.mutable_lines()->set_back(*back);
  Say(words);
  Join(*there, *back);
}

void NcclEnd::Join(const std::string& out, const std::string& in) {
  auto sending = nccl_->Join(out, true), receiving = nccl_->Join(in, false);
  if (!sending.ok() || !receiving.ok()) {
    const absl::Status& why =
        sending.ok() ? receiving.status() : sending.status();
    if (sending.ok()) AbortLine(*std::move(sending));
    if (receiving.ok()) AbortLine(*std::move(receiving));
    return Fail(std::string(why.message()));
  }
  const auto lines =
      std::make_shared<NcclLines>(*std::move(sending), *std::move(receiving),
                                  sends_, receipts_, options_.aborting);
  {
    MutexLock lock(mutex_);
    if (ended_) return;  // aborts them
    lines_ = lines;
  }
  const auto until = Clock::now() + options_.opening;
  Ask([self = shared_from_this(), lines, until] {
    const auto out = lines->out()->IsOpen(), in = lines->in()->IsOpen();
    if (out.ok() && in.ok() && *out && *in) {
      self->Post([self, lines, until] { self->Prove(lines, until); });
      return true;
    }
    return self->IsOver(out.ok() ? in.status() : out.status(), until);
  });
}

bool NcclEnd::IsOver(const absl::Status& status, Clock::time_point until) {
  if (!status.ok()) {
    Fail(std::string(status.message()));
  } else if (Clock::now() > until) {
    Fail(absl::StrCat("the other end did not come within ",
                      options_.opening.count(), " ms"));
  } else {
    return false;
  }
  return true;
}

void NcclEnd::Prove(const std::shared_ptr<NcclLines>& lines,
                    Clock::time_point until) {
  const Tensor words = ProofWords();
  const auto proof = gpu_->Upload(words, gpu_->own());
  auto coming = nccl_->Expect(SpecOf(words));
  if (!proof.ok() || !coming.ok()) {
    const absl::Status& why = proof.ok() ? coming.status() : proof.status();
    return Fail(std::string(why.message()));
  }
  {
    MutexLock lock(mutex_);
    sum_ = SumOf(words);
  }
  lines->Keep(*proof);
  lines->Keep(coming->tensor);
  absl::Status posted = lines->out()->Post(*proof);
  if (posted.ok()) posted = lines->in()->Post(coming->tensor);
  if (!posted.ok()) return Fail(std::string(posted.message()));
  Ask([self = shared_from_this(), lines, until, coming = *std::move(coming)] {
    // Asked for both: that moves them on.
    const auto out = lines->out()->HaveEnded(1), in = lines->in()->HaveEnded(1);
    if (!out.ok() || !in.ok() || !*out || !*in)
      return self->IsOver(out.ok() ? in.status() : out.status(), until);
    coming.arrival->Came();
    self->Post([self, tensor = coming.tensor] { self->SumUp(tensor); });
    return true;
  });
}

void NcclEnd::SumUp(const Tensor& proof) {
  const auto read = gpu_->Download(proof);
  if (!read.ok()) return Fail(std::string(read.status().message()));
  wire::NcclWords words;
  words.set_sum(SumOf(*read));
  Say(words);
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
    case wire::NcclWords::kLines:
      if (dialed_ || started_.exchange(true))
        return Fail("it makes lines for the second time");
      return Post([self = shared_from_this(), lines = words.lines()] {
        self->Join(lines.back(), lines.there());
      });
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

void NcclEnd::OnSum(uint64_t sum) {
  bool right = false;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    right = sum_ == sum;
    sum_.reset();
    open_ = right;
  }
  if (!right) return Fail("another process reads something else than was sent");
  port_->Opened();
}

std::optional<Ticket> NcclEnd::Export(const Tensor& tensor) {
  if (!open_) return std::nullopt;
  return sends_->Export(tensor);
}

absl::StatusOr<Tensor> NcclEnd::Import(const TensorSpec& spec,
                                       const std::string& ticket) {
  wire::NcclTicket parsed;
  if (!parsed.ParseFromString(ticket)) {
    return absl::InvalidArgumentError("a ticket that does not parse");
  }
  // What has no lines has nobody to give it up.
  if (lines() == nullptr)
    return absl::InvalidArgumentError("a tensor by NCCL, which is not open");
  ASSIGN_OR_RETURN(Tensor tensor, receipts_->Import(spec, parsed));
  Ask([self = shared_from_this(), lease = parsed.lease()] {
    wire::NcclWords words;
    words.set_ask(lease);
    self->Say(words);
    return true;
  });
  return tensor;
}

void NcclEnd::OnAsk(uint64_t lease) {
  auto written = sends_->OnAsk(lease);
  if (!written.ok()) return Fail(std::string(written.status().message()));
  Ask([self = shared_from_this(), lease,
       written = *std::move(written)]() mutable {
    if (!written()) return false;
    self->Send(lease);
    return true;
  });
}

// On the thread that posts all: what is said comes in the order of the posts.
void NcclEnd::Send(uint64_t lease) {
  const auto lines = this->lines();
  if (lines == nullptr) return;
  const auto tensor = sends_->Begin(lease);
  if (!tensor.has_value()) return;
  const absl::Status posted = lines->out()->Post(*tensor);
  if (!posted.ok()) return Fail(std::string(posted.message()));
  wire::NcclWords words;
  words.set_sent(lease);
  Say(words);
  WhenEnded(lines, lines->out(), ++posted_out_,
            [sends = sends_, lease] { sends->End(lease); });
}

void NcclEnd::OnSent(uint64_t lease) {
  const auto lines = this->lines();
  if (lines == nullptr) return;
  const auto tensor = receipts_->Begin(lease);
  if (!tensor.ok()) return Fail(std::string(tensor.status().message()));
  const absl::Status posted = lines->in()->Post(*tensor);
  if (!posted.ok()) return Fail(std::string(posted.message()));
  WhenEnded(lines, lines->in(), ++posted_in_,
            [receipts = receipts_, lease] { receipts->End(lease); });
}

void NcclEnd::WhenEnded(std::shared_ptr<NcclLines> lines,
                        const std::shared_ptr<cuda::NcclLine>& line,
                        uint64_t posts, Task then) {
  Ask([self = shared_from_this(), lines = std::move(lines), line, posts,
       then = std::move(then)]() mutable {
    const auto ended = line->HaveEnded(posts);
    if (ended.ok() && !*ended) return false;
    if (ended.ok()) {
      then();
    } else {
      self->Fail(std::string(ended.status().message()));
      // Lost by now: nothing more will come.
      if (self->lines() == nullptr) lines->Abort();
    }
    return true;
  });
}

absl::Status NcclEnd::OnReleased(uint64_t lease) {
  return absl::InvalidArgumentError(absl::StrCat(
      "gives back the tensor ", lease, " of NCCL, which it keeps"));
}

void NcclEnd::OnLost() {
  std::shared_ptr<NcclLines> lines;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    open_ = false;
    lines.swap(lines_);
  }
  sends_->Lose();
  receipts_->Lose();
  if (lines == nullptr) return;
  Ask([self = shared_from_this(), lines,
       until = Clock::now() + options_.grace] {
    if (Clock::now() < until && (!self->sends_->under_way().empty() ||
                                 !self->receipts_->under_way().empty()))
      return false;
    lines->Abort();
    return true;
  });
}

TensorChannelInfo NcclEnd::info() const {
  TensorChannelInfo info;
  sends_->AddTo(info);
  receipts_->AddTo(info);
  return info;
}

}  // namespace baton::rpc
