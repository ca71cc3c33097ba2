// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/trainer.h"

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/world.h"

namespace baton::sim {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{5000};

std::map<int, Trainer*>* trainers = nullptr;  // by group

Tensor CopyOf(const dist::Pulled& pulled) {
  Tensor values = Tensor::Empty({Tally::kElements});
  pulled.CopyTo({values});
  return values;
}

// Shards may differ for good by the pushes of a trainer that one of them has
// given up.
bool HasGivenUp(const dist::Pulled& pulled) {
  for (const dist::ExchangeReply& shard : pulled.shards)
    for (const auto& [trainer, pushes] : shard.cut)
      if (pushes.left) return true;
  return false;
}

}  // namespace

struct Trainer::Calls {
  // Returns where workers that join find the servers.
  static absl::StatusOr<RRef<dist::ServerDirectory>> Directory() {
    const auto here = trainers->find(World::Get().group());
    if (here != trainers->end() && here->second->client_ != nullptr)
      return here->second->client_->directory();
    if (here != trainers->end() && here->second->servers_ != nullptr)
      return here->second->servers_->directory();
    return absl::NotFoundError("this worker knows no servers");
  }
};

Trainer::Trainer(rpc::Agent& agent, Rng& random, Tally& tally, int group)
    : agent_(agent), random_(random), tally_(tally), group_(group) {
  if (trainers == nullptr) trainers = new std::map<int, Trainer*>;
  (*trainers)[group] = this;
}

void Trainer::Register(rpc::Registry& registry) {
  dist::RegisterParameterServers(registry);
  registry.AddFunction<&Calls::Directory>();
}

// A value counts the pushes to it: each adds 1.
void Trainer::MakeServers(int workers) {
  std::vector<std::string> at;
  const int first = workers > 2 ? 1 : 0;
  for (int i = first; i < workers && i < first + 3; ++i)
    at.push_back(absl::StrCat("w", i));
  auto made = dist::ParameterServers::Make(
      agent_, at,
      {.rule = ops::SgdRule{.lr = 1, .maximize = true},
       .mode = dist::Consistency::kAsynchronous,
       .part_bytes = Tally::kElements * 2,
       .backups = true,
       .compute_threads = 1},
      {{"counts", Tensor::Zeros({Tally::kElements})}});
  World::Get().Trace(absl::StrCat(
      "parameter servers: ", made.ok() ? "made" : made.status().message()));
  if (made.ok()) servers_ = *std::move(made);
}

void Trainer::Step(const std::string& other) {
  if (client_ == nullptr) return Join(other);
  random_.Chance(0.7) ? Push() : Read();
}

void Trainer::Join(const std::string& other) {
  const auto directory = agent_
                             .Async<&Calls::Directory>(
                                 other, rpc::CallOptions{.timeout = kPatience})
                             .Await();
  if (!directory.ok()) return;
  if (element_ < 0) element_ = tally_.NewTrainer(group_);
  if (element_ < 0) return;
  auto joined = dist::ServerClient::Join(agent_, *directory, element_,
                                         {.timeout = kPatience});
  World::Get().Trace(
      absl::StrCat("trains as ", element_, ": ", joined.status().ToString()));
  if (joined.ok()) client_ = *std::move(joined);
}

void Trainer::Push() {
  Tensor one = Tensor::Zeros({Tally::kElements});
  one.data<float>()[element_] = 1;
  one.data<float>()[element_ + Tally::kHalf] = 1;
  tally_.Began(element_);
  client_->Push({one}).OnReady(
      [this](const absl::StatusOr<dist::Pulled>& pushed) {
        tally_.Ended(element_, pushed.status());
      });
}

void Trainer::Read() {
  const bool one_version = ++reads_ % 2 == 0;
  client_->Do({.push = false, .values = true, .one_version = one_version})
      .OnReady(
          [this, one_version, acknowledged = tally_.acknowledged(element_)](
              const absl::StatusOr<dist::Pulled>& pulled) {
            if (!pulled.ok()) return;
            const Tensor values = CopyOf(*pulled);
            tally_.CheckRead(values, element_, acknowledged);
            if (one_version && !HasGivenUp(*pulled)) tally_.CheckHalves(values);
          });
}

absl::Status Trainer::ReadLast(bool was_given_up) {
  if (client_ == nullptr) return absl::OkStatus();
  const auto pulled = client_->Pull().Await();
  if (pulled.ok() && !was_given_up) tally_.CheckLast(CopyOf(*pulled));
  for (int32_t shard = 0; shard < client_->layout().shards(); ++shard) {
    const auto place = client_->directory()
                           .Async<&dist::ServerDirectory::Locate>(shard, 0)
                           .Await();
    servers_changed_ |= !place.ok() || place->epoch > 1;
  }
  return pulled.status();
}

void Trainer::Drop() {
  client_ = nullptr;
  servers_ = nullptr;
}

}  // namespace baton::sim
