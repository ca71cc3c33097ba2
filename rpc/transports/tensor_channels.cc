// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/tensor_channels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/transports/framing.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

// More than the other end leaves unsent if it reads at all.
constexpr size_t kMostUnsent = 1'000'000;
constexpr char kReadsNothing[] = "it does not read what it is told";

const wire::ChannelOffer* Find(const ChannelOffers& offers, uint32_t id) {
  for (const wire::ChannelOffer& offer : offers) {
    if (offer.channel() == id) return &offer;
  }
  return nullptr;
}

// Returns why these two ends cannot have the channel; empty if they can.
std::string Missing(const wire::ChannelOffer* ours,
                    const wire::ChannelOffer* theirs) {
  if (ours == nullptr) return "not offered here";
  if (!ours->missing().empty()) return ours->missing();
  if (theirs == nullptr) return "it offers none";
  if (!theirs->missing().empty())
    return absl::StrCat("there: ", theirs->missing());
  return {};
}

}  // namespace

class TensorChannels::Port final : public ChannelPort {
 public:
  Port(std::weak_ptr<TensorChannels> channels, uint32_t id)
      : channels_(std::move(channels)), id_(id) {}

  void SendControl(std::string payload) override {
    if (auto channels = channels_.lock())
      channels->SendControl(id_, std::move(payload));
  }
  void Release(uint64_t lease, std::chrono::milliseconds within) override {
    if (auto channels = channels_.lock()) channels->Release(id_, lease, within);
  }
  void Opened() override {
    if (auto channels = channels_.lock()) channels->Settle(id_, "");
  }
  void Failed(std::string why) override {
    if (auto channels = channels_.lock()) channels->Settle(id_, why);
  }
  void Broke(std::string why) override {
    if (auto channels = channels_.lock()) channels->Break(id_, why);
  }
  void RingFrom(RingEndIn end) override {
    if (auto channels = channels_.lock()) channels->KeepRing(std::move(end));
  }
  void RingTo(RingEndOut end) override {
    if (auto channels = channels_.lock()) channels->KeepRing(std::move(end));
  }

 private:
  const std::weak_ptr<TensorChannels> channels_;
  const uint32_t id_;
};

std::shared_ptr<TensorChannels> TensorChannels::Make(
    const ChannelKinds& kinds, const ChannelOffers& ours,
    const ChannelOffers& theirs, Setup setup) {
  std::shared_ptr<TensorChannels> channels(
      new TensorChannels(std::move(setup)));
  channels->Open(kinds, ours, theirs);
  return channels;
}

void TensorChannels::Open(const ChannelKinds& kinds, const ChannelOffers& ours,
                          const ChannelOffers& theirs) {
  for (const auto& kind : kinds) {
    const uint32_t id = kind->id();
    const wire::ChannelOffer* our = rpc::Find(ours, id);
    const wire::ChannelOffer* their = rpc::Find(theirs, id);
    Entry entry{.name = kind->name(), .why_not = Missing(our, their)};
    if (entry.why_not.empty()) entry.why_not = Spare(*kind);
    if (entry.why_not.empty()) {
      auto channel = kind->Open({setup_.dialed, our->offer(), their->offer()},
                                std::make_shared<Port>(weak_from_this(), id));
      if (channel.ok()) {
        entry.channel = *std::move(channel);
      } else {
        entry.why_not = std::string(channel.status().message());
      }
    }
    MutexLock lock(mutex_);
    order_.push_back(id);
    entries_[id] = std::move(entry);
  }
  LogVerdict();
}

std::string TensorChannels::Spare(const ChannelKind& kind) const {
  const std::optional<uint32_t> better = kind.better();
  if (!better.has_value() || Find(*better) == nullptr) return {};
  MutexLock lock(mutex_);
  return absl::StrCat(entries_.at(*better).name, " is tried for this pair");
}

std::vector<std::shared_ptr<Channel>> TensorChannels::All() const {
  std::vector<std::shared_ptr<Channel>> channels;
  MutexLock lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    if (entry.channel != nullptr) channels.push_back(entry.channel);
  }
  return channels;
}

void TensorChannels::Start() {
  for (const auto& channel : All()) channel->Start();
}

Channel::Signs TensorChannels::Beat() {
  Channel::Signs all;
  for (const auto& channel : All()) {
    const Channel::Signs signs = channel->Beat();
    all.alive = all.alive || signs.alive;
    all.seen = all.seen || signs.seen;
  }
  return all;
}

// There are few channels, so copying them is cheap.
std::vector<TensorChannels::Usable> TensorChannels::UsableOnes() const {
  std::vector<Usable> usable;
  MutexLock lock(mutex_);
  for (const uint32_t id : order_) {
    const Entry& entry = entries_.at(id);
    if (entry.open) usable.push_back({id, entry.channel});
  }
  return usable;
}

std::optional<TensorChannels::Exported> TensorChannels::Export(Tensor& tensor) {
  const std::vector<Usable> usable = UsableOnes();
  for (const auto& [id, channel] : usable) {
    if (auto ticket = channel->ExportInPlace(tensor)) {
      return Exported{id, *std::move(ticket)};
    }
  }
  for (const auto& [id, channel] : usable) {
    if (auto ticket = channel->Export(tensor)) {
      return Exported{id, *std::move(ticket)};
    }
  }
  return std::nullopt;
}

Tensor TensorChannels::Make(const Shape& shape, const TensorOptions& options) {
  TensorSpec spec{options.dtype, shape, options.format};
  const bool overflow = __builtin_mul_overflow(
      static_cast<uint64_t>(shape.numel()), SizeOf(options.dtype), &spec.bytes);
  if (overflow || spec.bytes <= kInlineTensorBytes ||
      !options.device.is_cpu() || options.pinned ||
      (spec.format == MemoryFormat::kChannelsLast && shape.rank() != 4)) {
    return {};
  }
  for (const auto& [id, channel] : UsableOnes()) {
    if (Tensor made = channel->Make(spec); made.defined()) return made;
  }
  return {};
}

std::shared_ptr<Channel> TensorChannels::Find(uint32_t channel) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(channel);
  return found == entries_.end() ? nullptr : found->second.channel;
}

Future<void> TensorChannels::Send(const Exported& exported) {
  const auto channel = Find(exported.channel);
  return channel == nullptr ? Future<void>()
                            : channel->Send(exported.ticket.lease);
}

void TensorChannels::Withdraw(const Exported& exported) {
  if (auto channel = Find(exported.channel)) {
    channel->Withdraw(exported.ticket.lease);
  }
}

absl::StatusOr<Imported> TensorChannels::Import(uint32_t channel,
                                                const TensorSpec& spec,
                                                const std::string& ticket) {
  if (auto found = Find(channel)) return found->Import(spec, ticket);
  return absl::InvalidArgumentError(
      absl::StrCat("a tensor by the channel ", channel, ", which is not open"));
}

absl::Status TensorChannels::OnFrame(const std::string& meta) {
  wire::ChannelFrame frame;
  if (!frame.ParseFromString(meta)) {
    return absl::InvalidArgumentError("a channel frame that does not parse");
  }
  for (const auto& released : frame.released()) {
    const auto channel = Find(released.channel());
    if (channel == nullptr) {
      return absl::InvalidArgumentError("leases of no channel are given back");
    }
    for (const uint64_t lease : released.leases()) {
      RETURN_IF_ERROR(channel->OnReleased(lease));
    }
  }
  for (const auto& said : frame.said()) {
    // Control messages for a channel that this end lacks are ignored.
    if (auto channel = Find(said.channel())) channel->OnControl(said.payload());
  }
  return absl::OkStatus();
}

std::string TensorChannels::TakeFrame() {
  if (!has_frame_) return {};
  wire::ChannelFrame frame;
  {
    MutexLock lock(mutex_);
    has_frame_ = false;
    if (said_.empty() && released_.empty()) return {};
    for (Said& said : said_) {
      auto* entry = frame.add_said();
      entry->set_channel(said.channel);
      entry->set_payload(std::move(said.payload));
    }
    said_.clear();
    for (const auto& [channel, leases] : released_) {
      auto* entry = frame.add_released();
      entry->set_channel(channel);
      entry->mutable_leases()->Add(leases.begin(), leases.end());
    }
    released_.clear();
    due_ = Clock::time_point::max();
  }
  return frame.SerializeAsString();
}

void TensorChannels::SendControl(uint32_t channel, std::string payload) {
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    said_.push_back({channel, std::move(payload)});
    has_frame_ = true;
    if (said_.size() > kMostUnsent) BreakLocked(channel, kReadsNothing);
  }
  setup_.wake();
}

// Called when a tensor is destroyed, on any thread, so it must not call `wake`.
void TensorChannels::Release(uint32_t channel, uint64_t lease,
                             std::chrono::milliseconds within) {
  MutexLock lock(mutex_);
  if (closed_) return;
  std::vector<uint64_t>& leases = released_[channel];
  leases.push_back(lease);
  has_frame_ = true;
  if (leases.size() > kMostUnsent) BreakLocked(channel, kReadsNothing);
  if (leases.size() == kReleasesAtOnce) within = {};
  due_ = std::min(due_, Clock::now() + within);
  if (due_ < alarm_) FlushAtLocked(due_);
}

void TensorChannels::FlushAtLocked(Clock::time_point when) {
  alarm_ = when;
  setup_.timer->At(when, [weak = weak_from_this(), when] {
    if (const auto self = weak.lock()) self->Flush(when);
  });
}

// What was due may have been sent with a message since.
void TensorChannels::Flush(Clock::time_point alarm) {
  {
    MutexLock lock(mutex_);
    if (alarm_ != alarm) return;
    alarm_ = Clock::time_point::max();
    if (released_.empty()) return;
    if (due_ > Clock::now()) return FlushAtLocked(due_);
  }
  setup_.wake();
}

void TensorChannels::Settle(uint32_t channel, const std::string& why_not) {
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    Entry& entry = entries_.at(channel);
    entry.open = why_not.empty();
    entry.why_not = why_not;
  }
  LogVerdict();
}

void TensorChannels::Break(uint32_t channel, const std::string& why) {
  {
    MutexLock lock(mutex_);
    if (!BreakLocked(channel, why)) return;
  }
  setup_.wake();
}

bool TensorChannels::BreakLocked(uint32_t channel, const std::string& why) {
  if (closed_ || !broken_.empty()) return false;
  broken_ = absl::StrCat(entries_.at(channel).name, ": ", why);
  return true;
}

std::string TensorChannels::broken() const {
  MutexLock lock(mutex_);
  return broken_;
}

void TensorChannels::KeepRing(RingEndIn end) {
  MutexLock lock(mutex_);
  if (!closed_) ring_in_ = std::move(end);
}

void TensorChannels::KeepRing(RingEndOut end) {
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    ring_out_ = std::move(end);
  }
  setup_.wake();
}

std::optional<RingEndIn> TensorChannels::TakeRingIn() {
  MutexLock lock(mutex_);
  return std::exchange(ring_in_, std::nullopt);
}

std::optional<RingEndOut> TensorChannels::TakeRingOut() {
  MutexLock lock(mutex_);
  return std::exchange(ring_out_, std::nullopt);
}

void TensorChannels::LogVerdict() {
  std::string by, not_by;
  {
    MutexLock lock(mutex_);
    for (const uint32_t id : order_) {
      const Entry& entry = entries_.at(id);
      if (entry.open) {
        absl::StrAppend(&by, by.empty() ? "" : ", ", entry.name);
      } else if (!entry.why_not.empty()) {
        absl::StrAppend(&not_by, "; not by ", entry.name, ": ", entry.why_not);
      } else {
        return;
      }
    }
    if (std::exchange(told_, true)) return;
  }
  LogInfo("worker ", setup_.self, " -> worker ", setup_.peer, ": tensors by ",
          by.empty() ? "gRPC" : by, not_by);
}

void TensorChannels::Close() {
  std::vector<std::shared_ptr<Channel>> channels;
  {
    MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) return;
    for (auto& [id, entry] : entries_) {
      entry.open = false;
      if (entry.channel != nullptr) channels.push_back(entry.channel);
    }
    said_.clear();
    released_.clear();
    ring_in_.reset();
    ring_out_.reset();
  }
  for (const auto& channel : channels) channel->OnLost();
}

std::vector<TensorChannelInfo> TensorChannels::info() const {
  std::vector<Entry> entries;
  {
    MutexLock lock(mutex_);
    for (const uint32_t id : order_) entries.push_back(entries_.at(id));
  }
  std::vector<TensorChannelInfo> infos;
  for (const Entry& entry : entries) {
    TensorChannelInfo info;
    if (entry.channel != nullptr) info = entry.channel->info();
    info.peer = setup_.peer;
    info.name = entry.name;
    info.open = entry.open;
    if (!entry.why_not.empty()) info.why_not = entry.why_not;
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace baton::rpc
