// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/channels/dense_view.h"
#include "rpc/channels/nccl_end.h"
#include "rpc/channels/proof.h"
#include "rpc/wire.pb.h"

// How two ends open their lines. Each step may call what waits for an idle GPU
// (core/cuda/nccl.h), so all that might keep one from being idle goes before.
namespace baton::rpc {

void NcclEnd::OnBegin() {
  if (!leads_ || stage_ != Stage::kIdle)
    return Fail("it begins for the second time");
  TakeTurn([this] {
    stage_ = Stage::kTheirTurn;
    SayTurn();
    Watch(Stage::kTheirTurn, options_.turn, "it was not its turn");
  });
}

// Who leads holds its turn while it waits for the other's: as all keep to one
// order, the last in it never waits, and so nobody waits in a circle.
void NcclEnd::OnTurn() {
  const Stage expected = leads_ ? Stage::kTheirTurn : Stage::kIdle;
  if (stage_ != expected) return Fail("it takes its turn for the second time");
  if (leads_) {
    return BeQuiet([this] {
      stage_ = Stage::kJoining;
      Post([self = shared_from_this()] { self->MakeLines(); });
    });
  }
  TakeTurn([this] {
    BeQuiet([this] {
      stage_ = Stage::kTheirTurn;
      SayTurn();
    });
  });
}

void NcclEnd::OnLines(const LineIds& ids) {
  if (leads_ || stage_ != Stage::kTheirTurn)
    return Fail("it makes lines for the second time");
  stage_ = Stage::kJoining;
  Post([self = shared_from_this(), ids] { self->OpenLine(true, ids); });
}

void NcclEnd::SayTurn() {
  wire::NcclWords words;
  words.set_turn(true);
  Say(words);
}

void NcclEnd::TakeTurn(Task then) {
  stage_ = Stage::kOwnTurn;
  Ask([self = shared_from_this(), then = std::move(then)]() mutable {
    if (self->ended()) return true;
    auto turn = self->traffic_->TakeTurn();
    if (turn == nullptr) return false;
    {
      MutexLock lock(self->mutex_);
      if (self->ended_) return true;
      self->turn_ = std::move(turn);
    }
    then();
    return true;
  });
}

void NcclEnd::BeQuiet(Task then) {
  stage_ = Stage::kQuiet;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    hold_ = traffic_->Hold();
    lines_ = std::make_shared<NcclLines>(traffic_, sends_, receipts_,
                                         options_.aborting);
  }
  Watch(Stage::kQuiet, options_.opening, "what was sent to others did not end");
  for (const Stage stage : {Stage::kTheirTurn, Stage::kJoining})
    Watch(stage, options_.opening, "the other end did not come");
  Ask([self = shared_from_this(), then = std::move(then)]() mutable {
    if (self->ended()) return true;
    if (!self->traffic_->IsQuiet()) return false;
    then();
    return true;
  });
}

void NcclEnd::Watch(Stage stage, std::chrono::milliseconds limit,
                    const std::string& why) {
  Ask([self = shared_from_this(), stage, limit, why,
       until = Clock::now() + limit] {
    if (self->ended() || self->stage_ == Stage::kDone) return true;
    if (Clock::now() <= until) return false;
    if (self->stage_ == stage)
      self->Fail(absl::StrCat(why, " within ", limit.count(), " ms"));
    return true;
  });
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
  OpenLine(true, {*there, *back});
}

// The second one only when the first is proved: a send of this end that waits
// for its receive would keep the GPU from being idle.
void NcclEnd::OpenLine(bool there, const LineIds& ids) {
  const auto lines = this->lines();
  if (lines == nullptr) return;
  auto line = nccl_->Join(there ? ids.there : ids.back, there == leads_);
  if (!line.ok()) return Fail(std::string(line.status().message()));
  if (!lines->Add(*line))
    return AbortLine(*std::move(line), traffic_, options_.aborting);
  Ask([self = shared_from_this(), there, ids, line = *line] {
    if (self->ended()) return true;
    const auto open = line->IsOpen();
    if (!open.ok()) {
      self->Fail(std::string(open.status().message()));
    } else if (*open) {
      self->Prove(there, ids, line);
    }
    return !open.ok() || *open;
  });
}

void NcclEnd::Prove(bool there, const LineIds& ids,
                    const std::shared_ptr<cuda::NcclLine>& line) {
  Post([self = shared_from_this(), there, ids, line] {
    const auto proof = self->MakeProof(there == self->leads_);
    if (!proof.ok()) return self->Fail(std::string(proof.status().message()));
    self->Ask([self, there, ids, line, proof = *proof] {
      self->PostProof(there, ids, line, proof);
      return true;
    });
  });
}

absl::StatusOr<Tensor> NcclEnd::MakeProof(bool sends) {
  const Tensor words = ProofWords();
  if (!sends) return nccl_->Make(SpecOf(words));
  {
    MutexLock lock(mutex_);
    sum_ = SumOf(words);
  }
  return gpu_->Upload(words, gpu_->own());
}

void NcclEnd::PostProof(bool there, const LineIds& ids,
                        const std::shared_ptr<cuda::NcclLine>& line,
                        const Tensor& proof) {
  const auto lines = this->lines();
  if (lines == nullptr) return;
  lines->Keep(proof);
  const bool sends = there == leads_;
  auto& posts = sends ? out_ : in_;
  posts = std::make_shared<NcclPosts>(line);
  Task ended = [weak = weak_from_this(), there, ids, sends, proof] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->Post([self, there, ids, sends, proof] {
      if (!sends) self->SumUp(proof);
      if (there) self->OpenLine(false, ids);
    });
    if (!there) self->Opened();
  };
  PostTo(
      posts, proof, [] {}, std::move(ended));
}

void NcclEnd::Opened() {
  stage_ = Stage::kDone;
  {
    NcclTraffic::Token turn, hold;  // after the lock is
    MutexLock lock(mutex_);
    turn.swap(turn_);
    hold.swap(hold_);
  }
  MayExport();
}

// Not sooner than both lines are open: what was promised by one that opens must
// come, and the other may still fail.
void NcclEnd::MayExport() {
  if (!proved_ || stage_ != Stage::kDone) return;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    open_ = true;
  }
  port_->Opened();
}

void NcclEnd::SumUp(const Tensor& proof) {
  const auto read = gpu_->Download(proof);
  if (!read.ok()) return Fail(std::string(read.status().message()));
  wire::NcclWords words;
  words.set_sum(SumOf(*read));
  Say(words);
}

void NcclEnd::OnSum(uint64_t sum) {
  {
    MutexLock lock(mutex_);
    proved_ = sum_ == sum;
    sum_.reset();
  }
  if (!proved_)
    return Fail("another process reads something else than was sent");
  MayExport();
}

}  // namespace baton::rpc
