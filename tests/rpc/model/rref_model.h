// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "rpc/ownership.h"
#include "rpc/peers.h"

namespace baton::rpc::internal {

// Three workers made of the real tables (rpc/ownership.h) and the real control
// channels and epochs (rpc/peers.h), without threads, sockets or a clock: a
// seed draws what the users do, which message arrives, is lost or doubled,
// which call times out, and in some schedules who gives whom up or dies.
// Confined to one thread.
//
// Checked after every step, while nobody was given up: an object whose handle
// some user sees is in its owner's table. Checked in the end, once all handles
// are dropped and everything has arrived: no table of a worker alive has an
// entry, and no object of theirs is left.
class RRefModel {
 public:
  explicit RRefModel(uint64_t seed);
  ~RRefModel();

  // What went wrong, in words; empty if nothing did.
  std::string Run();
  int steps() const { return steps_; }

 private:
  enum class Kind { kCreate, kShare, kReply, kControl, kLoss };
  struct Message {
    Kind kind;
    int from, to;
    uint64_t epoch = 0;
    uint64_t call = 0;
    RRefId id = {};
    ForkId fork = {};
    std::vector<Transfer> transfers = {};
    ControlFrame control = {};
    absl::Status status = {};
  };
  struct Node;
  using Random = std::mt19937_64;

  // What may happen in a step.
  void Create(Node& node);
  void Share(Node& node);
  void Drop(Node& node);
  void FinishCreation(Node& node);
  void TimeOut(Node& node);
  void Flush(Node& from, int to);
  void DeliverOne();
  void LoseOne();
  void DoubleOne();
  void GiveUp(Node& node, int other);
  void Kill(Node& node);
  void PassTime();
  void Step();

  void Deliver(const Message& message);
  void OnRequest(Node& node, const Message& message);
  void OnReply(Node& node, const Message& message);
  void Reply(Node& node, const Message& request, const absl::Status& status);
  void EndAllWith(Node& node, int other);
  void EndCall(Node& node, uint64_t number, const absl::Status& status);
  void TakeArrivals(Node& node);

  void Settle();
  bool Settled() const;
  std::string CheckHandles() const;
  std::string CheckTables() const;

  int Pick(int count) { return static_cast<int>(random_() % count); }
  int Other(const Node& node);

  Random random_;
  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<Message> network_;
  Ownership::Clock::time_point now_ = Ownership::Clock::time_point();
  int may_fail_ = 0;     // give-ups and deaths to come
  bool failed_ = false;  // somebody was given up
  int steps_ = 0;
};

}  // namespace baton::rpc::internal
