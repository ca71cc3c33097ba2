// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rpc/channels/channel.h"

namespace baton::rpc {

// A channel that says nothing, and whose port is the test's.
class Puppet final : public Channel {
 public:
  explicit Puppet(std::shared_ptr<ChannelPort> its) : port(std::move(its)) {}
  void Start() override {}
  void OnControl(std::string) override {}
  std::optional<Ticket> Export(const Tensor&) override { return Ticket{}; }
  void Withdraw(uint64_t) override {}
  absl::StatusOr<Imported> Import(const TensorSpec&,
                                  const std::string&) override {
    return Tensor::Ones({1});
  }
  absl::Status OnReleased(uint64_t) override { return absl::OkStatus(); }
  void OnLost() override { lost = true; }
  TensorChannelInfo info() const override { return {}; }

  const std::shared_ptr<ChannelPort> port;
  std::atomic<bool> lost{false};
};

class PuppetKind final : public ChannelKind {
 public:
  explicit PuppetKind(uint32_t id, std::optional<uint32_t> better = {})
      : id_(id), better_(better) {}
  uint32_t id() const override { return id_; }
  std::string name() const override { return "puppets"; }
  std::optional<uint32_t> better() const override { return better_; }
  absl::StatusOr<std::string> Offer() override { return std::string(); }
  absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends&, std::shared_ptr<ChannelPort> port) override {
    return made = std::make_shared<Puppet>(std::move(port));
  }
  std::shared_ptr<Puppet> made;  // the last

 private:
  const uint32_t id_;
  const std::optional<uint32_t> better_;
};

}  // namespace baton::rpc
