// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/engine.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::dist {

Engine::Engine(rpc::WorkerInfo self, Executor* executor,
               std::shared_ptr<Peers> peers)
    : self_(std::move(self)),
      executor_(executor),
      peers_(std::move(peers)),
      parameters_(std::make_shared<rpc::ObjectLock>(
          [] { return std::string("the set of a worker's parameters"); },
          rpc::RRefId{})) {}

Engine::~Engine() = default;

absl::StatusOr<std::shared_ptr<rpc::CallScope>> Engine::Open(
    const rpc::WorkerInfo& from, const std::string& bytes) {
  ASSIGN_OR_RETURN(ScopeNote note, DecodeScopeNote(bytes));
  MutexLock lock(mutex_);
  const std::string* ended = ended_.Find(note.context);
  if (note.released || ended != nullptr) {
    return absl::AbortedError(
        absl::StrCat(note.context.Over(ended == nullptr ? note.why : *ended),
                     "; a late call of worker ", from.name, " was refused"));
  }
  return std::shared_ptr<rpc::CallScope>(MakeLocked(note.context, from.name));
}

std::shared_ptr<ContextState> Engine::MakeLocked(const ContextId& id,
                                                 const std::string& opened_by) {
  auto& context = contexts_[id];
  if (context == nullptr) {
    context = std::make_shared<ContextState>(id, opened_by);
  }
  return context;
}

absl::StatusOr<std::shared_ptr<ContextState>> Engine::FindOrMake(
    const ContextId& id, const std::string& opened_by) {
  MutexLock lock(mutex_);
  const std::string* ended = ended_.Find(id);
  if (ended != nullptr) return absl::AbortedError(id.Over(*ended));
  return MakeLocked(id, opened_by);
}

std::shared_ptr<ContextState> Engine::NewContext() {
  MutexLock lock(mutex_);
  ContextId id{self_.name, self_.incarnation, ++last_context_};
  auto context = std::make_shared<ContextState>(id, self_.name);
  contexts_.emplace(std::move(id), context);
  return context;
}

absl::StatusOr<std::shared_ptr<ContextState>> Engine::Find(
    const ContextId& id) const {
  MutexLock lock(mutex_);
  auto found = contexts_.find(id);
  if (found != contexts_.end()) return found->second;
  const std::string* ended = ended_.Find(id);
  if (ended != nullptr) return absl::AbortedError(id.Over(*ended));
  return absl::NotFoundError(
      absl::StrCat("worker ", self_.name, " knows no ", id.ToString()));
}

Future<void> Engine::End(const ContextId& id, const std::string& except,
                         const std::string& why) {
  std::shared_ptr<ContextState> context;
  {
    MutexLock lock(mutex_);
    const auto found = contexts_.find(id);
    if (found != contexts_.end()) {
      context = std::move(found->second);
      contexts_.erase(found);
    }
    ended_.Add(id, why);
  }
  if (context == nullptr) return ReadyFuture<void>(absl::OkStatus());
  std::vector<Future<bool>> told;
  for (const std::string& worker : context->Release(why)) {
    if (worker == self_.name || worker == except) continue;
    // If a worker cannot be reached, those that it would have told ask the root
    // when they notice its loss.
    Promise<bool> answered;
    peers_->Release(worker, id, why).OnReady([answered](const absl::Status&) {
      answered.Set(true);
    });
    told.push_back(answered.future());
  }
  return WaitAll(told).Then([](const std::vector<bool>&) {});
}

Future<void> Engine::Release(const ContextId& context) {
  return End(context, self_.name, "");
}

Future<void> Engine::OnRelease(const std::string& from,
                               const ContextId& context,
                               const std::string& why) {
  if (why.empty() && !IsRoot(context)) return End(context, from, why);
  // The sender cannot reach the root; this worker may.
  if (!IsRoot(context)) AskRoot(context);
  return ReadyFuture<void>(absl::OkStatus());
}

absl::Status Engine::OnJoin(const std::string& from, const ContextId& context) {
  ASSIGN_OR_RETURN(auto state, Find(context));
  return state->AddWorker(from);
}

void Engine::OnWorkerLost(const std::string& worker) {
  std::vector<ContextId> concerned;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, context] : contexts_) {
      if (!IsRoot(id) &&
          (id.root == worker || context->opened_by() == worker)) {
        concerned.push_back(id);
      }
    }
  }
  for (const ContextId& id : concerned) AskRoot(id);
}

void Engine::AskRoot(const ContextId& id) {
  peers_->Join(id).OnReady([weak = weak_from_this(),
                            id](const absl::Status& status) {
    const auto self = weak.lock();
    const bool ended = absl::IsAborted(status);
    // NotFound: a new process has the root's name.
    const bool lost = absl::IsUnavailable(status) || absl::IsNotFound(status);
    if (self == nullptr || !(ended || lost)) return;
    const std::string why =
        lost ? absl::StrCat("its root, worker ", id.root, ", is lost") : "";
    // Nobody waits for this: reachable workers are told, the others find out.
    self->End(id, id.root, why).OnReady([](const absl::Status&) {});
  });
}

size_t Engine::num_contexts() const {
  MutexLock lock(mutex_);
  return contexts_.size();
}

std::vector<ContextId> Engine::contexts() const {
  MutexLock lock(mutex_);
  std::vector<ContextId> ids;
  for (const auto& [id, context] : contexts_) ids.push_back(id);
  return ids;
}

rpc::View Engine::View() const {
  using Unit = rpc::View::Unit;
  rpc::View view{.name = "contexts",
                 .columns = {{"context", Unit::kCount},
                             {"creator", Unit::kText},
                             {"opened_by", Unit::kText},
                             {"age", Unit::kMilliseconds},
                             {"gradients", Unit::kCount},
                             {"gradient_bytes", Unit::kBytes},
                             {"sends", Unit::kCount},
                             {"state", Unit::kText}}};
  std::vector<std::shared_ptr<ContextState>> contexts;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, context] : contexts_) contexts.push_back(context);
  }
  for (const auto& context : contexts) {
    const ContextState::Summary summary = context->summary();
    view.rows.push_back(
        {absl::StrCat(context->id().number), context->id().root,
         context->opened_by(), absl::StrCat(summary.age.count()),
         absl::StrCat(summary.gradients), absl::StrCat(summary.gradient_bytes),
         absl::StrCat(summary.sends),
         summary.backward_runs ? "backward" : "open"});
  }
  return view;
}

}  // namespace baton::dist
