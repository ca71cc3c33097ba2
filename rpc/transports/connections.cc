// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/connections.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"

namespace baton::rpc {
namespace {

// More than a cluster has; the limit is needed because names can be made up.
constexpr size_t kMaxPeers = 100'000;

}  // namespace

// An unauthenticated peer must pass three steps: handshake, hello and proof.
Connections::Connections(const GrpcOptions& options)
    : acceptor(std::make_shared<Acceptor>(3 * options.hello_timeout)),
      service(
          host, acceptor,
          [this] {
            MutexLock lock(mutex);
            return links.size();
          },
          [this](const std::shared_ptr<GrpcStream>& stream,
                 const Hello& hello) { return Admit(stream, hello); }) {
  host.options = options;
  host.executor = std::make_shared<ThreadPool>(1, "baton-link");
  host.timer = std::make_unique<Timer>("baton-dial");
}

std::shared_ptr<Link> Connections::FindOrMakeLocked(const WorkerInfo& peer) {
  std::shared_ptr<Link>& entry = links[peer.name];
  if (entry == nullptr) {
    entry = Link::Make(
        host, peer, forgotten.Take(peer.name).value_or(Link::Incarnations()));
  }
  return entry;
}

bool Connections::Admit(const std::shared_ptr<GrpcStream>& stream,
                        const Hello& hello) {
  HelloAnswer answer = Judge(host.options, host.self, hello);
  std::shared_ptr<Link> link;
  {
    MutexLock lock(mutex);
    if (state == State::kShutDown) {
      answer.verdict = Verdict::kShutDown;
      answer.text = absl::StrCat("worker ", host.self.name, " has shut down");
    }
    if (answer.verdict == Verdict::kOk && links.size() >= kMaxPeers &&
        !links.contains(hello.self.name)) {
      answer.verdict = Verdict::kRefused;
      answer.text = absl::StrCat("worker ", host.self.name, " knows ",
                                 links.size(), " workers already");
    }
    if (answer.verdict == Verdict::kOk) link = FindOrMakeLocked(hello.self);
  }
  if (link != nullptr) return link->Accept(stream, hello);
  if (answer.verdict == Verdict::kShutDown) {
    LogDebug("refused a connection: ", answer.text);
  } else {
    LogWarning("refused a connection: ", answer.text);
  }
  stream->CloseWith(Encode(answer));
  return false;
}

void Connections::AwaitEnd() {
  if (host.poller != nullptr) host.poller->Stop();
  acceptor->Stop();
  if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
  host.streams.AwaitNone();
  server = nullptr;
}

}  // namespace baton::rpc
