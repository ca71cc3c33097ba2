// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/rendezvous.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "rpc/rendezvous.pb.h"

namespace baton::sim {

using rpc::RendezvousGroups;
using rpc::internal::RendezvousConnection;
namespace wire = rpc::wire;

// How the worker of one machine asks.
class RendezvousWay final : public RendezvousConnection {
 public:
  RendezvousWay(RendezvousMachine& machine, int from)
      : rendezvous_(machine), from_(from) {}

  // It is there, and what is sent gets there and back.
  absl::Status Connect(Deadline deadline);

  absl::Status Ask(const wire::JoinRequest& request, wire::JoinAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return AskFor(Kind::kJoin, request, answer, deadline, watch);
  }
  absl::Status Ask(const wire::LeaveRequest& request, wire::LeaveAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return AskFor(Kind::kLeave, request, answer, deadline, watch);
  }
  absl::Status Ask(const wire::RenewRequest& request, wire::RenewAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return AskFor(Kind::kRenew, request, answer, deadline, watch);
  }
  absl::Status Ask(const wire::ListRequest& request, wire::ListAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return AskFor(Kind::kList, request, answer, deadline, watch);
  }

 private:
  using Kind = RendezvousMachine::Kind;
  using AskedPtr = RendezvousMachine::AskedPtr;

  static Nanos Left(Deadline deadline) {
    return std::max(Nanos(deadline - std::chrono::system_clock::now()),
                    Nanos(0));
  }
  void Post(const AskedPtr& asked);
  void GiveUp(const AskedPtr& asked, const absl::Status& why);
  template <typename Request, typename Answer>
  absl::Status AskFor(Kind kind, const Request& request, Answer* answer,
                      Deadline deadline, const Watch& watch);

  RendezvousMachine& rendezvous_;
  const int from_;
};

absl::Status RendezvousWay::Connect(Deadline deadline) {
  World& world = World::Get();
  Network& network = rendezvous_.network_;
  const auto connected = std::make_shared<bool>(false);
  const int from = from_;
  const int group = world.group();
  while (!*connected) {
    if (rendezvous_.group_ >= 0) {
      network.Carry(
          from, rendezvous_.machine_, rendezvous_.group_, true,
          [&network, &rendezvous = rendezvous_, from, group, connected] {
            network.Carry(rendezvous.machine_, from, group, true, [connected] {
              *connected = true;
              World::Get().Wake(connected.get(), true);
            });
          });
    }
    const Nanos left = Left(deadline);
    if (left.count() == 0) {
      return absl::UnavailableError("cannot reach the rendezvous");
    }
    world.WaitFor(connected.get(),
                  std::min<Nanos>(left, std::chrono::milliseconds(100)));
  }
  return absl::OkStatus();
}

void RendezvousWay::Post(const AskedPtr& asked) {
  RendezvousMachine* const there = &rendezvous_;
  if (there->group_ < 0) {
    there->Give(asked, absl::UnavailableError("connection refused"), "");
    return;
  }
  there->network_.Carry(from_, there->machine_, there->group_, true,
                        [there, asked] {
                          there->requests_.push_back(asked);
                          there->under_way_.push_back(asked);
                          World::Get().Wake(&there->requests_, true);
                        });
}

void RendezvousWay::GiveUp(const AskedPtr& asked, const absl::Status& why) {
  if (asked->done) return;
  asked->done = true;
  asked->status = why;
  World::Get().Wake(asked.get(), true);
  RendezvousMachine* const there = &rendezvous_;
  if (there->group_ < 0) return;
  there->network_.Carry(from_, there->machine_, there->group_, true,
                        [there, asked] {
                          asked->given_up = true;
                          there->requests_.push_back(asked);
                          World::Get().Wake(&there->requests_, true);
                        });
}

template <typename Request, typename Answer>
absl::Status RendezvousWay::AskFor(Kind kind, const Request& request,
                                   Answer* answer, Deadline deadline,
                                   const Watch& watch) {
  World& world = World::Get();
  const auto asked = std::make_shared<RendezvousMachine::Asked>();
  asked->kind = kind;
  asked->machine = from_;
  asked->group = world.group();
  asked->request = request.SerializeAsString();
  if (watch != nullptr && !watch([this, asked] {
        GiveUp(asked, absl::CancelledError("stopping"));
      })) {
    return absl::CancelledError("stopping");
  }
  Post(asked);
  while (!asked->done && world.WaitFor(asked.get(), Left(deadline))) {
  }
  GiveUp(asked, absl::DeadlineExceededError("the rendezvous does not answer"));
  if (watch != nullptr) watch(nullptr);
  RETURN_IF_ERROR(asked->status);
  if (!answer->ParseFromString(asked->answer)) {
    return absl::InternalError("an answer that cannot be read");
  }
  return absl::OkStatus();
}

rpc::internal::RendezvousDialer RendezvousMachine::DialerOf(int machine) {
  return [this, machine](RendezvousConnection::Deadline deadline)
             -> absl::StatusOr<std::shared_ptr<RendezvousConnection>> {
    auto way = std::make_shared<RendezvousWay>(*this, machine);
    RETURN_IF_ERROR(way->Connect(deadline));
    return way;
  };
}

void RendezvousMachine::Start() {
  World& world = World::Get();
  group_ = world.NewGroup("rendezvous");
  requests_.clear();
  world.Start(group_, [this] {
    RendezvousGroups groups;
    groups.KeepReaping();
    Serve(groups);
  });
}

// Whoever waits for an answer hears that the connection is lost.
void RendezvousMachine::Kill() {
  World::Get().Kill(group_);
  group_ = -1;
  for (const AskedPtr& asked : std::exchange(under_way_, {})) {
    if (asked->done) continue;
    Give(asked, absl::UnavailableError("the rendezvous has gone"), "");
  }
}

void RendezvousMachine::OnKilled(int group) {
  for (const AskedPtr& asked : under_way_) {
    if (asked->group != group || asked->given_up) continue;
    network_.Carry(asked->machine, machine_, group_, true, [this, asked] {
      asked->given_up = true;
      requests_.push_back(asked);
      World::Get().Wake(&requests_, true);
    });
  }
}

void RendezvousMachine::Give(const AskedPtr& asked, const absl::Status& status,
                             const std::string& answer) {
  network_.Carry(machine_, asked->machine, asked->group, true,
                 [asked, status, answer] {
                   if (asked->done) return;
                   asked->done = true;
                   asked->status = status;
                   asked->answer = answer;
                   World::Get().Wake(asked.get(), true);
                 });
}

void RendezvousMachine::Settle(const AskedPtr& asked,
                               const absl::Status& status,
                               const std::string& answer) {
  under_way_.remove(asked);
  Give(asked, status, answer);
}

void RendezvousMachine::Serve(RendezvousGroups& groups) {
  for (;;) {
    if (requests_.empty()) {
      World::Get().WaitFor(&requests_, Nanos(-1));
      continue;
    }
    const AskedPtr asked = requests_.front();
    requests_.pop_front();
    if (!asked->given_up) {
      Begin(groups, asked);
    } else if (asked->cancel != nullptr) {
      asked->cancel();
    }
  }
}

template <typename Request, typename Answer>
void RendezvousMachine::Handle(RendezvousGroups& groups,
                               const AskedPtr& asked) {
  Request request;
  request.ParseFromString(asked->request);
  const auto answer = std::make_shared<Answer>();
  asked->cancel = groups.Handle(
      request, answer.get(), [this, asked, answer](const absl::Status& status) {
        Settle(asked, status, answer->SerializeAsString());
      });
}

void RendezvousMachine::Begin(RendezvousGroups& groups, const AskedPtr& asked) {
  switch (asked->kind) {
    case Kind::kJoin:
      return Handle<wire::JoinRequest, wire::JoinAnswer>(groups, asked);
    case Kind::kLeave:
      return Handle<wire::LeaveRequest, wire::LeaveAnswer>(groups, asked);
    case Kind::kRenew:
      return Handle<wire::RenewRequest, wire::RenewAnswer>(groups, asked);
    case Kind::kList:
      return Handle<wire::ListRequest, wire::ListAnswer>(groups, asked);
  }
}

}  // namespace baton::sim
