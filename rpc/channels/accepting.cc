// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/accepting.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/segment.h"

namespace baton::rpc {

namespace {

constexpr size_t kMostReserve = 128;

size_t DescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

bool Raise() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur == limit.rlim_max) return true;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return true;
  LogWarning("cannot raise the limit of descriptors to ", limit.rlim_max, ": ",
             std::strerror(errno));
  return false;
}

}  // namespace

void RaiseDescriptorLimit() {
  [[maybe_unused]] static const bool raised = Raise();
}

absl::Status CheckDescriptors(int lowest, size_t reserves) {
  const size_t limit = DescriptorLimit();
  const size_t reserve = std::min(kMostReserve, limit / 8);
  const size_t used = lowest < 0 ? limit : static_cast<size_t>(lowest);
  if (used + reserves * reserve < limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(used, " of ", limit,
                   " descriptors are in use, and the others are kept for what "
                   "is connected; raise the hard limit (ulimit -Hn)"));
}

absl::Status CheckDescriptors(size_t reserves) {
  const Fd lowest(eventfd(0, EFD_CLOEXEC));
  return CheckDescriptors(lowest.get(), reserves);
}

namespace {

using Poll = SocketPoller::Then;
using std::chrono::milliseconds;

// Limit for one socket, because the thread serves others, too.
constexpr int kAcceptsAtOnce = 16;
// The pause when no descriptor is left for a new connection.
constexpr milliseconds kAcceptPause{100};
constexpr std::chrono::seconds kBetweenWarnings{10};

struct Accepting {
  std::weak_ptr<SocketPoller> poller;
  std::shared_ptr<const Fd> listening;
  std::function<bool(Fd)> then;
  std::atomic<uint64_t> polled{0};                 // its id there
  std::chrono::steady_clock::time_point warned{};  // used by the poller only

  void Warn(const absl::Status& why) {
    const auto now = std::chrono::steady_clock::now();
    if (now - warned < kBetweenWarnings) return;
    warned = now;
    LogWarning("closed a connection as it came: ", why.message());
  }
};

Poll Accept(const std::shared_ptr<Accepting>& accepting) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    Fd socket(accept4(accepting->listening->get(), nullptr, nullptr,
                      SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      const absl::Status enough = CheckDescriptors(socket.get(), 1);
      if (!enough.ok()) {
        accepting->Warn(enough);
      } else if (!accepting->then(std::move(socket))) {
        return Poll::kEnd;
      }
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Poll::kWhenReady;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // Waiting connections would make the socket ready again and again.
    if (const auto poller = accepting->poller.lock()) {
      poller->After(kAcceptPause, [weak = std::weak_ptr(accepting)] {
        const auto self = weak.lock();
        const auto alive = self == nullptr ? nullptr : self->poller.lock();
        if (alive != nullptr) alive->Wake(self->polled);
      });
    }
    return Poll::kWhenWoken;
  }
  return Poll::kAgain;
}

}  // namespace

absl::Status AcceptOn(const std::shared_ptr<SocketPoller>& poller,
                      std::shared_ptr<const Fd> listening,
                      std::function<bool(Fd)> then) {
  const auto accepting = std::make_shared<Accepting>();
  accepting->poller = poller;
  accepting->listening = listening;
  accepting->then = std::move(then);
  ASSIGN_OR_RETURN(
      accepting->polled,
      poller->Add(std::move(listening), SocketPoller::For::kReading,
                  [accepting] { return Accept(accepting); }));
  return absl::OkStatus();
}

uint64_t UnauthenticatedPeers::Add(std::shared_ptr<const Fd> socket,
                                   std::string name) {
  MutexLock lock(mutex_);
  if (all_.size() >= most_) ShutDownLocked(all_.begin());
  const uint64_t number = next_++;
  all_[number] = {std::move(socket), std::move(name), Clock::now() + time_};
  LookLaterLocked();
  return number;
}

bool UnauthenticatedPeers::Remove(uint64_t number) {
  MutexLock lock(mutex_);
  return all_.erase(number) > 0;
}

void UnauthenticatedPeers::Remove(const std::string& name) {
  MutexLock lock(mutex_);
  if (const auto found = FindLocked(name); found != all_.end())
    all_.erase(found);
}

bool UnauthenticatedPeers::MayBegin(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = FindLocked(name);
  return found == all_.end() || !std::exchange(found->second.began, true);
}

// Returns the latest, because a port of the other end may be used again.
UnauthenticatedPeers::All::iterator UnauthenticatedPeers::FindLocked(
    const std::string& name) {
  const auto found = std::find_if(
      all_.rbegin(), all_.rend(),
      [&name](const auto& each) { return each.second.name == name; });
  return found == all_.rend() ? all_.end() : std::prev(found.base());
}

void UnauthenticatedPeers::ShutDownAll() {
  MutexLock lock(mutex_);
  while (!all_.empty()) ShutDownLocked(all_.begin());
}

void UnauthenticatedPeers::ShutDownExpired() {
  MutexLock lock(mutex_);
  looking_ = false;
  const Clock::time_point now = Clock::now();
  while (!all_.empty() && all_.begin()->second.until <= now)
    ShutDownLocked(all_.begin());
  LookLaterLocked();
}

void UnauthenticatedPeers::LookLaterLocked() {
  const auto poller = poller_.lock();
  if (all_.empty() || poller == nullptr || std::exchange(looking_, true))
    return;
  const auto left = std::chrono::ceil<milliseconds>(all_.begin()->second.until -
                                                    Clock::now());
  poller->After(std::max(left, milliseconds(0)), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->ShutDownExpired();
  });
}

// Other holders of the socket also see that it has ended.
void UnauthenticatedPeers::ShutDownLocked(All::iterator peer) {
  shutdown(peer->second.socket->get(), SHUT_RDWR);
  all_.erase(peer);
}

}  // namespace baton::rpc
