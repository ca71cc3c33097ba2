// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/etcd/rendezvous_candidate.h"

#include <time.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/transports/address.h"

namespace baton::rpc {

using std::chrono::milliseconds;
using std::chrono::system_clock;

namespace {

// Between two looks whether another candidate serves.
constexpr milliseconds kLook{200};
// Of one call.
constexpr milliseconds kPatience{1000};
constexpr int kWordsPerTtl = 4;
// Before a worker asks again which candidate serves, and how long it tries to
// connect to that one.
constexpr milliseconds kRedial{50}, kTry{500};

// etcd's ids are signed, and 0 is none.
int64_t NewLease() {
  std::random_device device;
  const uint64_t random = (uint64_t{device()} << 32) | device();
  return static_cast<int64_t>(random >> 1 | 1);
}

absl::StatusOr<std::shared_ptr<internal::RendezvousConnection>> ConnectToListed(
    internal::Etcd& etcd, const std::string& address,
    const RendezvousAccess& access, internal::Etcd::Deadline deadline,
    const internal::Etcd::Watch& watch) {
  const auto listed =
      etcd.Get(internal::kRendezvousKey,
               std::min(deadline, system_clock::now() + kPatience), watch);
  if (absl::IsNotFound(listed.status())) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach the rendezvous at ", address,
                     ": none serves; start baton-rendezvous --etcd=", address));
  }
  RETURN_IF_ERROR(listed.status());
  // Whoever may write into etcd may write anything.
  RETURN_IF_ERROR(Annotate(ParseHostPort(*listed).status(),
                           absl::StrCat("the etcd at ", address)));
  RETURN_IF_ERROR(CheckExposure(
      access.security, "a worker would talk to the rendezvous at", *listed));
  return internal::DialerOf(
      *listed, access, watch)(std::min(deadline, system_clock::now() + kTry));
}

}  // namespace

RendezvousCandidate::Time RendezvousCandidate::Now() {
  timespec now{};
  BATON_CHECK(::clock_gettime(CLOCK_BOOTTIME, &now) == 0);
  return std::chrono::seconds(now.tv_sec) + Time(now.tv_nsec);
}

RendezvousCandidate::RendezvousCandidate(CandidateOptions options,
                                         OnChange on_change,
                                         std::unique_ptr<internal::Etcd> etcd)
    : options_(std::move(options)),
      on_change_(std::move(on_change)),
      etcd_(std::move(etcd)) {}

absl::StatusOr<std::unique_ptr<RendezvousCandidate>> RendezvousCandidate::Make(
    CandidateOptions options, OnChange on_change) {
  ASSIGN_OR_RETURN(auto etcd,
                   internal::Etcd::Make(options.etcd, options.security));
  if (!IsLocal(options.etcd) && IsLocal(options.listen)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the rendezvous would listen on ", options.listen,
        ", where no other machine reaches it, and tell others so by ",
        options.etcd,
        "; give --listen=HOST:PORT with an address of this "
        "machine"));
  }
  std::unique_ptr<RendezvousCandidate> made(new RendezvousCandidate(
      std::move(options), std::move(on_change), std::move(etcd)));
  RETURN_IF_ERROR(made->Listen(made->options_.listen));
  made->address_ = made->server_->address();
  made->on_change_(made->address_, false);
  made->thread_ = std::thread([candidate = made.get()] { candidate->Run(); });
  return made;
}

RendezvousCandidate::~RendezvousCandidate() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status RendezvousCandidate::Listen(const std::string& listen) {
  ASSIGN_OR_RETURN(server_, RendezvousServer::Make(
                                listen, options_.security, options_.max_members,
                                [this] { return MayAnswer(); }));
  return absl::OkStatus();
}

absl::Status RendezvousCandidate::MayAnswer() const {
  if (Now() < until_.load()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "it stands by; the one that serves is known to ", options_.etcd));
}

bool RendezvousCandidate::Pause(milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, until)) {
  }
  return !stopping_;
}

void RendezvousCandidate::Run() {
  do {
    if (server_ == nullptr) {
      const absl::Status listens = Listen(address_);
      if (!listens.ok()) LogWarning(listens.message());
    }
    if (server_ != nullptr && TakeOver()) Serve();
  } while (Pause(kLook));
  server_ = nullptr;
}

bool RendezvousCandidate::TakeOver() {
  const auto deadline = system_clock::now() + kPatience;
  absl::Status taken = etcd_->Get(internal::kRendezvousKey, deadline).status();
  if (taken.ok()) return false;  // another one serves
  lease_ = NewLease();
  const Time asked = Now();
  absl::StatusOr<std::chrono::seconds> ttl = taken;
  if (absl::IsNotFound(taken))
    ttl = etcd_->Grant(lease_, options_.ttl, deadline);
  if (ttl.ok()) {
    const std::string told = ToString(Advertised(*ParseHostPort(address_), ""));
    taken = etcd_->Create(internal::kRendezvousKey, told, lease_, deadline);
    // What became of the request may be unknown.
    if (!taken.ok()) etcd_->Revoke(lease_, deadline).IgnoreError();
  } else {
    taken = ttl.status();
  }
  const bool silent = !taken.ok() && !absl::IsAlreadyExists(taken);
  if (silent && !std::exchange(told_silence_, true))
    LogWarning(taken.message());
  if (!silent) told_silence_ = false;
  if (!taken.ok()) return false;
  until_ = asked + *ttl;
  on_change_(address_, true);
  return true;
}

void RendezvousCandidate::Serve() {
  absl::Status last;
  for (;;) {
    const Time left = until_.load() - Now();
    if (left <= Time(0)) {
      return GiveUp(last.ok() ? "this process was stopped"
                              : std::string(last.message()));
    }
    if (!Pause(std::chrono::duration_cast<milliseconds>(
            std::min<Time>(options_.ttl, left) / kWordsPerTtl)))
      return GiveUp("");
    const Time asked = Now();
    if (asked >= until_.load()) continue;
    const auto kept = etcd_->KeepAlive(lease_, system_clock::now() + kPatience);
    last = kept.status();
    if (kept.ok()) until_ = asked + *kept;
    if (absl::IsNotFound(last)) return GiveUp(std::string(last.message()));
  }
}

void RendezvousCandidate::GiveUp(const std::string& why) {
  until_ = Time(0);
  // Who comes back later is not to be taken for one who never left.
  server_ = nullptr;
  etcd_->Revoke(lease_, system_clock::now() + kPatience).IgnoreError();
  if (why.empty()) return;
  LogWarning("the rendezvous at ", address_, " stands by: ", why);
  on_change_(address_, false);
}

internal::RendezvousDialer internal::DialerByEtcd(
    const std::string& address, const RendezvousAccess& access,
    RendezvousConnection::Watch watch) {
  // Kept from dial to dial, so that a worker that has lost its rendezvous need
  // not connect to etcd first.
  auto etcd = std::make_shared<std::unique_ptr<Etcd>>();
  return [address, access, watch = std::move(watch),
          etcd = std::move(etcd)](RendezvousConnection::Deadline deadline)
             -> absl::StatusOr<std::shared_ptr<RendezvousConnection>> {
    if (*etcd == nullptr) {
      ASSIGN_OR_RETURN(*etcd, Etcd::Make(address, access.security));
    }
    for (;;) {
      auto connection =
          ConnectToListed(**etcd, address, access, deadline, watch);
      if (connection.ok() || !absl::IsUnavailable(connection.status()) ||
          system_clock::now() + 2 * kRedial >= deadline) {
        return connection;
      }
      std::this_thread::sleep_for(kRedial);
    }
  };
}

}  // namespace baton::rpc
