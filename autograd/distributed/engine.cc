// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/engine.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::dist {
namespace {

using Names = std::vector<std::string>;

constexpr size_t kEndedKept = 65536;

// Edges are numbered within their context: that of another would be taken for
// one of this.
absl::Status CheckContext(const ReceiveNode& edge, const ContextId& context) {
  if (edge.context() == context) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a backward of ", context.ToString(),
      " reached a value that came from worker ", edge.from(), " in ",
      edge.context().ToString(),
      ": make all calls of a loss with one context, or Detach() the value"));
}

}  // namespace

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
  const auto ended = ended_.find(note.context);
  if (note.released || ended != ended_.end()) {
    return absl::AbortedError(absl::StrCat(
        note.context.Over(ended == ended_.end() ? note.why : ended->second),
        "; a late call of worker ", from.name, " was refused"));
  }
  auto& context = contexts_[note.context];
  if (context == nullptr) {
    context = std::make_shared<ContextState>(note.context, from.name);
  }
  return std::shared_ptr<rpc::CallScope>(context);
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
  const auto ended = ended_.find(id);
  if (ended != ended_.end()) return absl::AbortedError(id.Over(ended->second));
  return absl::NotFoundError(
      absl::StrCat("worker ", self_.name, " knows no ", id.ToString()));
}

void Engine::BuryLocked(const ContextId& id, const std::string& why) {
  if (!ended_.emplace(id, why).second) return;
  ended_order_.push_back(id);
  if (ended_order_.size() > kEndedKept) {
    ended_.erase(ended_order_.front());
    ended_order_.pop_front();
  }
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
    BuryLocked(id, why);
  }
  if (context == nullptr) return ReadyFuture<void>(absl::OkStatus());
  std::vector<Future<bool>> told;
  for (const std::string& worker : context->Release(why)) {
    if (worker == self_.name || worker == except) continue;
    // Those that a worker which cannot be reached would have told ask the root
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
  // The one who says so does not reach the root; this worker may.
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
    // Not found: a root of that name lives anew.
    const bool lost = absl::IsUnavailable(status) || absl::IsNotFound(status);
    if (self == nullptr || !(ended || lost)) return;
    const std::string why =
        lost ? absl::StrCat("its root, worker ", id.root, ", is lost") : "";
    // Nobody waits for it: what can be reached is told, the rest finds out.
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

Pass::Options Engine::PassOptions(const std::shared_ptr<ContextState>& context,
                                  PassId pass, bool retain_graph,
                                  std::chrono::milliseconds time_left) {
  std::weak_ptr<ContextState> weak = context;
  Pass::Options options;
  options.retain_graph = retain_graph;
  options.deadline = std::chrono::steady_clock::now() + time_left;
  options.sink = [weak, pass](const Variable& leaf, const Gradient& grad) {
    if (auto state = weak.lock()) state->AccumulateFor(pass, leaf, grad);
  };
  options.send = [engine = weak_from_this(), id = context->id()](
                     const Pass& running, const ReceiveNode& edge,
                     std::vector<Tensor> grads) {
    if (auto self = engine.lock()) {
      return self->SendGradient(id, running, edge, grads);
    }
    return ReadyFuture<void>(absl::CancelledError("the worker shut down"));
  };
  return options;
}

Future<void> Engine::SendGradient(const ContextId& context, const Pass& pass,
                                  const ReceiveNode& edge,
                                  const std::vector<Tensor>& grads) {
  GradientMessage message;
  message.context = context;
  message.pass = pass.id();
  message.edge = edge.id();
  for (const Tensor& grad : grads) {
    message.present.push_back(grad.defined() ? 1 : 0);
    if (grad.defined()) message.grads.push_back(grad);
  }
  return peers_->Gradient(edge.from(), message, pass.TimeLeft());
}

Future<Names> Engine::MarkOnwards(
    const ContextId& context, const std::shared_ptr<Pass>& pass,
    const std::vector<std::shared_ptr<ReceiveNode>>& reached) {
  std::map<std::string, std::vector<uint64_t>> edges_of;
  for (const auto& edge : reached) {
    if (absl::Status status = CheckContext(*edge, context); !status.ok()) {
      return ReadyFuture<Names>(status);
    }
    edges_of[edge->from()].push_back(static_cast<uint64_t>(edge->id()));
  }
  std::vector<Future<Names>> answers;
  for (auto& [worker, edges] : edges_of) {
    pass->AddPeer(worker);
    answers.push_back(
        peers_->Mark(worker, {.context = context,
                              .pass = pass->id(),
                              .retain_graph = pass->retain_graph(),
                              .time_left = pass->TimeLeft(),
                              .edges = std::move(edges)}));
  }
  return WaitAll(answers).Then(
      [self = self_.name](const std::vector<Names>& lists) {
        std::set<std::string> all = {self};
        for (const Names& names : lists) all.insert(names.begin(), names.end());
        return Names(all.begin(), all.end());
      });
}

Future<Names> Engine::OnMark(const std::string& from,
                             const MarkRequest& request) {
  auto mark = [&]() -> absl::StatusOr<Future<Names>> {
    ASSIGN_OR_RETURN(auto context, Find(request.context));
    ASSIGN_OR_RETURN(
        auto pass,
        context->OpenPass(request.pass, PassOptions(context, request.pass,
                                                    request.retain_graph,
                                                    request.time_left)));
    std::vector<std::shared_ptr<autograd::Node>> roots;
    for (uint64_t edge : request.edges) {
      auto send = context->FindSend(EdgeId{edge});
      if (send == nullptr || send->to() != from) {
        return absl::NotFoundError(
            absl::StrCat("worker ", self_.name, " sent no edge ", edge, " of ",
                         request.context.ToString(), " to ", from));
      }
      roots.push_back(std::move(send));
    }
    ASSIGN_OR_RETURN(auto reached, pass->Mark(roots));
    return MarkOnwards(request.context, pass, reached);
  };
  absl::StatusOr<Future<Names>> answer = mark();
  return answer.ok() ? *answer : ReadyFuture<Names>(answer.status());
}

absl::Status Engine::OnGradient(const std::string& from,
                                GradientMessage message) {
  ASSIGN_OR_RETURN(auto context, Find(message.context));
  ASSIGN_OR_RETURN(auto pass, context->FindPass(message.pass));
  auto send = context->FindSend(message.edge);
  if (send == nullptr || send->to() != from) {
    return absl::NotFoundError(absl::StrCat(
        "no edge ", static_cast<uint64_t>(message.edge), " to ", from));
  }
  std::vector<Tensor> grads;
  size_t next = 0;
  for (uint8_t present : message.present) {
    if (present != 0 && next == message.grads.size()) {
      return absl::InvalidArgumentError("fewer gradients than announced");
    }
    grads.push_back(present != 0 ? message.grads[next++] : Tensor());
  }
  message.grads.clear();
  RETURN_IF_ERROR(send->CheckGradients(grads));
  // The answer says that the gradient is here; running what it makes ready may
  // take long.
  Feed(pass, send, std::move(grads));
  return absl::OkStatus();
}

void Engine::Feed(const std::shared_ptr<Pass>& pass,
                  std::shared_ptr<autograd::Node> root,
                  std::vector<Tensor> grads) {
  auto use = std::make_shared<rpc::ObjectUse>();
  use->access = rpc::Access::kShared;
  use->method = "a backward";
  use->caller = self_.name;
  use->started = std::chrono::steady_clock::now();
  auto feeds = std::make_shared<std::vector<Tensor>>(std::move(grads));
  const auto post = [executor = executor_, parameters = parameters_, use, pass,
                     root = std::move(root), feeds] {
    executor->Post([parameters, use, pass, root, feeds] {
      absl::Status status = pass->Feed(root, std::move(*feeds));
      parameters->Release(*use);
      if (!status.ok()) pass->Fail(status);
    });
  };
  if (parameters_->Acquire(use, post) == 0) post();
}

Future<void> Engine::OnFinish(const ContextId& context, PassId id) {
  absl::StatusOr<std::shared_ptr<ContextState>> state = Find(context);
  if (!state.ok()) return ReadyFuture<void>(state.status());
  absl::StatusOr<std::shared_ptr<Pass>> pass = (*state)->FindPass(id);
  if (!pass.ok()) return ReadyFuture<void>(pass.status());
  // The root asks once, so the pass is over when it has its answer.
  Promise<void> answer;
  (*pass)->Finished().OnReady(
      [state = *state, id, answer](const absl::Status& status) {
        state->EndPass(id);
        answer.Set(status);
      });
  return answer.future();
}

std::string Engine::OnAbort(const ContextId& context, PassId pass,
                            const absl::Status& why) {
  absl::StatusOr<std::shared_ptr<ContextState>> state = Find(context);
  if (!state.ok()) return "nothing";
  std::string waits_for = "nothing";
  if (auto running = (*state)->FindPass(pass); running.ok()) {
    waits_for = (*running)->WaitsFor();
  }
  auto aborted = (*state)->AbortPass(pass, why);
  if (aborted == nullptr) return waits_for;
  for (const std::string& peer : aborted->TakePeers()) {
    peers_->Abort(peer, context, pass, why, std::chrono::seconds(5))
        .OnReady([](const absl::StatusOr<std::string>&) {});
  }
  return waits_for;
}

}  // namespace baton::dist
