// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/engine.h"

// The part of a worker in passes whose root is another worker.
namespace baton::dist {
namespace {

using Tensors = std::vector<Tensor>;

// The time limit for a worker's answer that its share of a failed backward has
// ended.
constexpr std::chrono::milliseconds kAbortTimeout{5000};

// Edges are numbered within their context, so an edge of another context could
// be mistaken for one of this context.
absl::Status CheckContext(const ReceiveNode& edge, const ContextId& context) {
  if (edge.context() == context) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a backward of ", context.ToString(),
      " reached a value that came from worker ", edge.from(), " in ",
      edge.context().ToString(),
      ": make all calls of a loss with one context, or Detach() the value"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Pass>> Engine::OpenPass(
    const std::shared_ptr<ContextState>& context, PassId id, PassId oldest,
    const LeafTaker& take) {
  return context->OpenPass(id, oldest, [&] {
    const std::weak_ptr<ContextState> weak = context;
    Pass::Options options;
    options.claims = context->claims();
    options.sink = [weak, id, take](const Variable& leaf,
                                    const Gradient& grad) {
      if (take != nullptr && take(leaf, grad)) return;
      if (auto state = weak.lock()) state->AccumulateFor(id, leaf, grad);
    };
    options.send = [engine = weak_from_this(), of = context->id()](
                       const Pass& running, const ReceiveNode& edge,
                       Tensors grads) {
      if (auto self = engine.lock()) {
        return self->SendGradient(of, running, edge, grads);
      }
      return ReadyFuture<void>(absl::CancelledError("the worker shut down"));
    };
    return options;
  });
}

Future<void> Engine::SendGradient(const ContextId& context, const Pass& pass,
                                  const ReceiveNode& edge,
                                  const Tensors& grads) {
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

absl::StatusOr<Engine::Received> Engine::Mark(const ContextId& context,
                                              const std::shared_ptr<Pass>& pass,
                                              const Pass::Nodes& roots,
                                              const PassRequest& request) {
  ASSIGN_OR_RETURN(
      Received reached,
      pass->Mark(roots, {.retain_graph = request.retain_graph,
                         .only_wanted = request.only_wanted,
                         .deadline = std::chrono::steady_clock::now() +
                                     request.time_left}));
  for (const auto& edge : reached)
    RETURN_IF_ERROR(CheckContext(*edge, context));
  for (Pass::Fed& early : pass->TakeEarly())
    Feed(pass, std::move(early.root), std::move(early.grads));
  return reached;
}

Future<Marking> Engine::MarkOnwards(const PassRequest& request,
                                    const std::shared_ptr<Pass>& pass,
                                    const Received& reached) {
  Marking edges_of;
  for (const auto& edge : reached)
    edges_of[edge->from()].push_back(static_cast<uint64_t>(edge->id()));
  MarkRequest onwards{.pass = request, .edges = {}};
  onwards.pass.time_left = pass->TimeLeft();
  std::vector<Future<Marking>> answers;
  for (const auto& [worker, edges] : edges_of) {
    pass->AddPeer(worker);
    onwards.edges = edges;
    answers.push_back(peers_->Mark(worker, onwards));
  }
  return WaitAll(answers).Then([edges_of](const std::vector<Marking>& parts) {
    Marking all = edges_of;
    for (const Marking& part : parts) {
      for (const auto& [worker, edges] : part) {
        auto& known = all[worker];
        known.insert(known.end(), edges.begin(), edges.end());
      }
    }
    return all;
  });
}

absl::StatusOr<Pass::Nodes> Engine::SendsOf(
    const ContextState& context, const std::vector<uint64_t>& edges) const {
  Pass::Nodes sends;
  for (uint64_t edge : edges) {
    auto send = context.FindSend(EdgeId{edge});
    if (send == nullptr) {
      return absl::NotFoundError(absl::StrCat("worker ", self_.name,
                                              " sent no edge ", edge, " of ",
                                              context.id().ToString()));
    }
    sends.push_back(std::move(send));
  }
  return sends;
}

Future<Marking> Engine::OnMark(const std::string& from,
                               const MarkRequest& request) {
  auto mark = [&]() -> absl::StatusOr<Future<Marking>> {
    const PassRequest& about = request.pass;
    ASSIGN_OR_RETURN(auto context, Find(about.context));
    ASSIGN_OR_RETURN(auto roots, SendsOf(*context, request.edges));
    for (const auto& root : roots) {
      const auto& send = static_cast<const SendNode&>(*root);
      if (send.to() == from) continue;
      return absl::NotFoundError(
          absl::StrCat("worker ", self_.name, " sent no edge ",
                       static_cast<uint64_t>(send.id()), " of ",
                       about.context.ToString(), " to ", from));
    }
    ASSIGN_OR_RETURN(auto pass, OpenPass(context, about.pass, about.oldest));
    ASSIGN_OR_RETURN(auto reached, Mark(about.context, pass, roots, about));
    return MarkOnwards(about, pass, reached);
  };
  absl::StatusOr<Future<Marking>> answer = mark();
  return answer.ok() ? *answer : ReadyFuture<Marking>(answer.status());
}

absl::StatusOr<WantedPlaces> Engine::OnWant(const std::string& from,
                                            const PassRequest& request,
                                            const ParameterList& parameters) {
  ASSIGN_OR_RETURN(auto context, FindOrMake(request.context, from));
  ASSIGN_OR_RETURN(auto pass, OpenPass(context, request.pass, request.oldest));
  ASSIGN_OR_RETURN(size_t first, pass->Want(parameters.parameters));
  return WantedPlaces{.first = first, .count = parameters.parameters.size()};
}

absl::Status Engine::OnGradient(const std::string& from,
                                GradientMessage message) {
  ASSIGN_OR_RETURN(auto context, Find(message.context));
  auto send = context->FindSend(message.edge);
  if (send == nullptr || send->to() != from) {
    return absl::NotFoundError(absl::StrCat(
        "no edge ", static_cast<uint64_t>(message.edge), " to ", from));
  }
  Tensors grads;
  size_t next = 0;
  for (uint8_t present : message.present) {
    if (present != 0 && next == message.grads.size()) {
      return absl::InvalidArgumentError("fewer gradients than announced");
    }
    grads.push_back(present != 0 ? message.grads[next++] : Tensor());
  }
  message.grads.clear();
  RETURN_IF_ERROR(send->CheckGradients(grads));
  // The gradient may arrive before the root's request for the pass.
  ASSIGN_OR_RETURN(auto pass, OpenPass(context, message.pass));
  // The answer only confirms that the gradient has arrived, because running the
  // nodes that it makes ready may take long.
  Feed(pass, send, std::move(grads));
  return absl::OkStatus();
}

void Engine::UseParameters(const char* method, Task task) {
  auto use = std::make_shared<rpc::ObjectUse>();
  use->access = rpc::Access::kShared;
  use->method = method;
  use->caller = self_.name;
  use->started = std::chrono::steady_clock::now();
  auto shared = std::make_shared<Task>(std::move(task));
  const auto post = [executor = executor_, parameters = parameters_, use,
                     shared] {
    executor->Post([parameters, use, shared] {
      (*shared)();
      parameters->Release(*use);
    });
  };
  if (parameters_->Acquire(use, post) == 0) post();
}

void Engine::Feed(const std::shared_ptr<Pass>& pass,
                  std::shared_ptr<autograd::Node> root, Tensors grads) {
  UseParameters("a backward", [pass, root = std::move(root),
                               grads = std::move(grads)]() mutable {
    const absl::Status status = pass->Feed(root, std::move(grads));
    if (!status.ok()) pass->Fail(status);
  });
}

Future<Tensors> Engine::OnFinish(const std::string& from,
                                 const FinishRequest& request) {
  auto answer = Finish(from, request);
  return answer.ok() ? *answer : ReadyFuture<Tensors>(answer.status());
}

absl::StatusOr<Future<Tensors>> Engine::Finish(const std::string& from,
                                               const FinishRequest& request) {
  const PassRequest& about = request.pass;
  const auto nothing = [] { return ReadyFuture<Tensors>(Tensors()); };
  absl::StatusOr<std::shared_ptr<ContextState>> context = Find(about.context);
  // The context may not have arrived here because a call failed, or other
  // workers may have asked already.
  if (request.all && absl::IsNotFound(context.status())) return nothing();
  if (!context.ok()) return context.status();
  const absl::StatusOr<std::shared_ptr<Pass>> opened =
      OpenPass(*context, about.pass, about.oldest);
  // Check this after OpenPass, because the pass may end in between.
  if (request.all && (*context)->HasEnded(about.pass)) return nothing();
  RETURN_IF_ERROR(opened.status());
  const std::shared_ptr<Pass>& pass = *opened;
  // Only the root gets the requested gradients, whoever asks first.
  const bool others_ask = request.all && from != about.context.root;
  const bool keeps = others_ask && pass->wants();
  const bool first = pass->TakeFinish();
  if (!first && (others_ask || !pass->wants())) return nothing();
  Future<void> others = ReadyFuture<void>(absl::OkStatus());
  if (first) {
    ASSIGN_OR_RETURN(auto roots, SendsOf(**context, request.edges));
    if (request.all) roots = (*context)->Sends();
    ASSIGN_OR_RETURN(auto reached, Mark(about.context, pass, roots, about));
    if (request.all) {
      std::set<std::string> workers = Neighbours(**context, reached);
      workers.erase(from);
      workers.erase(about.context.root);  // the root finishes its own share
      others = FinishAll(workers, request, *pass);
    }
  }
  return AnswerOf(*context, pass, others, keeps);
}

Future<Tensors> Engine::AnswerOf(const std::shared_ptr<ContextState>& context,
                                 const std::shared_ptr<Pass>& pass,
                                 const Future<void>& others, bool keeps) {
  Promise<Tensors> answer;
  // This worker's share may wait for a gradient that the others will not send.
  others.OnReady([pass](const absl::Status& rest) {
    if (!rest.ok()) pass->Fail(rest);
  });
  pass->Finished().OnReady(
      [context, pass, others, keeps, answer](const absl::Status& status) {
        if (!keeps || !status.ok()) context->EndPass(pass->id());
        if (!status.ok()) {
          answer.Set(status);
          return;
        }
        others.OnReady([pass, keeps, answer](const absl::Status& rest) {
          if (!rest.ok()) {
            answer.Set(rest);
          } else {
            answer.Set(keeps ? Tensors() : pass->TakeWanted());
          }
        });
      });
  return answer.future();
}

std::set<std::string> Engine::Neighbours(const ContextState& context,
                                         const Received& reached) const {
  std::set<std::string> workers = context.KnownWorkers();
  for (const auto& edge : reached) workers.insert(edge->from());
  workers.erase(self_.name);
  return workers;
}

Future<void> Engine::FinishAll(const std::set<std::string>& workers,
                               const FinishRequest& request, Pass& pass) {
  std::vector<Future<Tensors>> answers;
  for (const std::string& worker : workers) {
    pass.AddPeer(worker);
    answers.push_back(peers_->Finish(worker, request));
  }
  return WaitAll(answers).Then([](const std::vector<Tensors>&) {});
}

Future<std::string> Engine::OnAbort(const ContextId& context, PassId pass,
                                    const absl::Status& why) {
  absl::StatusOr<std::shared_ptr<ContextState>> state = Find(context);
  if (!state.ok()) return ReadyFuture<std::string>(std::string("nothing"));
  std::string waits_for = "nothing";
  if (auto running = (*state)->FindPass(pass); running.ok()) {
    waits_for = (*running)->WaitsFor();
  }
  const auto aborted = (*state)->AbortPass(pass, why);
  Promise<std::string> answer;
  if (aborted == nullptr) {
    answer.Set(waits_for);
    return answer.future();
  }
  std::vector<Future<bool>> ends;
  for (const std::string& peer : aborted->TakePeers()) {
    Promise<bool> ended;
    peers_->Abort(peer, context, pass, why, kAbortTimeout)
        .OnReady(
            [ended](const absl::StatusOr<std::string>&) { ended.Set(true); });
    ends.push_back(ended.future());
  }
  Promise<bool> here;
  aborted->Ended().OnReady([here](const absl::Status&) { here.Set(true); });
  ends.push_back(here.future());
  WaitAll(ends).OnReady(
      [answer, waits_for](const absl::StatusOr<std::vector<bool>>&) {
        answer.Set(waits_for);
      });
  return answer.future();
}

Future<void> Engine::MoveToGrad(const std::shared_ptr<ContextState>& context) {
  const absl::StatusOr<uint64_t> number = context->NumberMove();
  if (!number.ok()) return ReadyFuture<void>(number.status());
  return OnMove(self_.name, context->id(), *number);
}

Future<void> Engine::OnMove(const std::string& from, const ContextId& id,
                            uint64_t number) {
  const auto context = Find(id);
  if (absl::IsNotFound(context.status()))
    return ReadyFuture<void>(absl::OkStatus());
  if (!context.ok()) return ReadyFuture<void>(context.status());
  if (!(*context)->BeginMove(number))
    return ReadyFuture<void>(absl::OkStatus());
  std::vector<Future<void>> moves;
  for (const std::string& worker : (*context)->KnownWorkers()) {
    if (worker != self_.name && worker != from)
      moves.push_back(peers_->MoveToGrad(worker, id, number));
  }
  Promise<void> here;
  UseParameters("a move of gradients", [state = *context, here] {
    here.Set(CatchErrors([&] {
      for (auto& [leaf, grad] : state->TakeGradients())
        leaf.AccumulateGrad(grad);
    }));
  });
  moves.push_back(here.future());
  return WaitAll(moves);
}

}  // namespace baton::dist
