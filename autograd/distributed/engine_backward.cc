// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/distributed/engine.h"
#include "core/shown_time.h"

namespace baton::dist {
namespace {

using Tensors = std::vector<Tensor>;
using Words = std::vector<std::string>;

// How long a failed backward waits for its participants to end their shares and
// to report what they were waiting for.
constexpr std::chrono::milliseconds kLastWords{1000};
// Stands for "no limit"; adding it to a clock does not overflow.
constexpr std::chrono::hours kFarAway{24 * 365};

// A node whose outputs are the roots, which represents the loss.
class LossNode final : public autograd::Node {
 public:
  explicit LossNode(const std::vector<Variable>& roots) {
    std::vector<autograd::Edge> edges;
    for (const Variable& root : roots) edges.push_back(root.gradient_edge());
    SetNumOutputs(static_cast<int>(roots.size()));
    SetEdges(std::move(edges));
  }
  const char* name() const override { return "loss"; }
  std::vector<Tensor> Backward(const std::vector<Tensor>& grads) override {
    return grads;
  }
};

absl::Status CheckRoots(const std::vector<Variable>& roots,
                        const std::vector<Tensor>& grad_outputs) {
  const auto invalid = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("backward: ", parts...));
  };
  if (roots.empty()) return invalid("no roots");
  if (!grad_outputs.empty() && grad_outputs.size() != roots.size()) {
    return invalid(roots.size(), " roots but ", grad_outputs.size(),
                   " gradients");
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i].defined()) return invalid("root ", i, " is undefined");
    if (!roots[i].requires_grad()) {
      return invalid("root ", i, " does not require grad");
    }
    bool given = !grad_outputs.empty() && grad_outputs[i].defined();
    if (given && (grad_outputs[i].shape() != roots[i].shape() ||
                  grad_outputs[i].dtype() != roots[i].dtype())) {
      return invalid("root ", i, " has shape ", roots[i].shape().ToString(),
                     ", its gradient ", grad_outputs[i].shape().ToString(),
                     " or another dtype");
    }
    if (!given && roots[i].tensor().numel() != 1) {
      return invalid("root ", i, " has shape ", roots[i].shape().ToString(),
                     ": give its gradient, or make it one number");
    }
  }
  return absl::OkStatus();
}

// Returns the signature of everything beyond the reached nodes, in an order
// that depends only on what was reached.
autograd::Signature SignatureOf(
    std::vector<std::shared_ptr<ReceiveNode>> reached) {
  std::sort(reached.begin(), reached.end(), [](const auto& a, const auto& b) {
    return std::tuple(a->from(), a->id()) < std::tuple(b->from(), b->id());
  });
  autograd::Signature all;
  for (const auto& edge : reached) all.Add(autograd::SignatureOf(*edge));
  return all;
}

std::vector<Tensor> FeedsOf(const std::vector<Variable>& roots,
                            const std::vector<Tensor>& grad_outputs) {
  std::vector<Tensor> feeds = grad_outputs;
  feeds.resize(roots.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    if (feeds[i].defined()) continue;
    feeds[i] = Tensor::Ones(
        roots[i].shape(),
        {.dtype = roots[i].dtype(), .device = roots[i].tensor().device()});
  }
  return feeds;
}

}  // namespace

// One backward at its root. The callbacks that it waits for keep it alive.
class Engine::Run final : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<Engine> engine, std::shared_ptr<ContextState> context,
      std::shared_ptr<Pass> pass, const BackwardOptions& options)
      : engine_(std::move(engine)),
        context_(std::move(context)),
        pass_(std::move(pass)),
        markings_(options.markings),
        timeout_(
            std::min<std::chrono::milliseconds>(options.timeout, kFarAway)),
        request_{.context = context_->id(),
                 .pass = pass_->id(),
                 .oldest = context_->OldestBackward(),
                 .retain_graph = options.retain_graph,
                 .time_left = timeout_} {}

  // The result is the gradients of `places`; for Backward, `places` is null.
  Future<Tensors> Start(const std::vector<Variable>& roots, Tensors feeds,
                        const std::vector<GradientPlace>* places) {
    loss_ = std::make_shared<LossNode>(roots);
    feeds_ = std::move(feeds);
    Future<std::vector<WantedPlaces>> wanted =
        WaitAll(std::vector<Future<WantedPlaces>>());
    if (places != nullptr) {
      request_.only_wanted = true;
      wanted = Want(*places);
    }
    wanted.OnReady([self = shared_from_this()](
                       const absl::StatusOr<std::vector<WantedPlaces>>& where) {
      if (where.ok()) self->wanted_ = *where;
      self->EndIfFails(where.ok() ? self->Mark() : where.status());
    });
    return result_.future();
  }

 private:
  // Requests the gradients of the places at their workers.
  Future<std::vector<WantedPlaces>> Want(
      const std::vector<GradientPlace>& places) {
    std::vector<Future<WantedPlaces>> wanted;
    for (size_t i = 0; i < places.size(); ++i) {
      const GradientPlace& place = places[i];
      place_at_.push_back(place.worker);
      if (place.worker.empty()) {
        place_at_.back() = engine_->self_.name;
        wanted.push_back(WantHere(i, place.here));
        continue;
      }
      const absl::Status known = context_->AddWorker(place.worker);
      {
        MutexLock lock(mutex_);
        participants_[place.worker];
      }
      wanted.push_back(
          known.ok()
              ? engine_->peers_->Want(
                    place.worker, {.pass = request_, .parameters = place.there})
              : ReadyFuture<WantedPlaces>(known));
    }
    return WaitAll(wanted);
  }

  Future<WantedPlaces> WantHere(size_t i, const Variable& value) {
    const absl::StatusOr<size_t> first = pass_->Want({value});
    if (first.ok()) return ReadyFuture<WantedPlaces>(WantedPlaces{*first, 1});
    return ReadyFuture<WantedPlaces>(
        Annotate(first.status(), absl::StrCat("grad: input ", i)));
  }

  // Determines what takes part, and continues with Finish.
  absl::Status Mark() {
    Pass::Nodes roots = {loss_};
    if (markings_ == Markings::kFast) {
      const Pass::Nodes sends = context_->Sends();
      roots.insert(roots.end(), sends.begin(), sends.end());
    }
    ASSIGN_OR_RETURN(Received reached,
                     engine_->Mark(context_->id(), pass_, roots, request_));
    if (markings_ == Markings::kFast) {
      Marking asked;
      for (const std::string& worker : engine_->Neighbours(*context_, reached))
        asked[worker];
      Finish(asked, true);
      return absl::OkStatus();
    }
    const autograd::Signature graph = SignatureOf(reached);
    if (const auto kept = engine_->markings_.Find(graph)) return MarkAs(*kept);
    engine_->MarkOnwards(request_, pass_, reached)
        .OnReady([self = shared_from_this(),
                  graph](const absl::StatusOr<Marking>& marking) {
          if (!marking.ok()) {
            self->End(marking.status());
            return;
          }
          self->engine_->markings_.GetOrMake(
              graph, [&] { return std::make_shared<const Marking>(*marking); });
          Marking marked = *marking;
          for (auto& [worker, edges] : marked) edges.clear();
          self->Finish(marked, false);
        });
    return absl::OkStatus();
  }

  // Uses the marking of a graph of the same form.
  absl::Status MarkAs(const Marking& kept) {
    if (const auto here = kept.find(engine_->self_.name); here != kept.end()) {
      ASSIGN_OR_RETURN(auto sends, engine_->SendsOf(*context_, here->second));
      RETURN_IF_ERROR(
          engine_->Mark(context_->id(), pass_, sends, request_).status());
    }
    Finish(kept, false);
    return absl::OkStatus();
  }

  void Finish(const Marking& edges, bool all) {
    Marking others;
    {
      MutexLock lock(mutex_);
      participants_.insert(edges.begin(), edges.end());
      participants_.erase(engine_->self_.name);
      unfinished_ = participants_.size() + 1;
      others = participants_;
    }
    request_.time_left = pass_->TimeLeft();
    for (const auto& [worker, unused] : others) {
      FinishRequest request{.pass = request_, .edges = {}, .all = all};
      const auto marked = edges.find(worker);
      if (marked != edges.end()) request.edges = marked->second;
      engine_->peers_->Finish(worker, request)
          .OnReady([self = shared_from_this(),
                    worker = worker](const absl::StatusOr<Tensors>& wanted) {
            self->OnFinished(worker, wanted);
          });
    }
    pass_->Finished().OnReady(
        [self = shared_from_this()](const absl::Status& status) {
          self->OnFinished(
              self->engine_->self_.name,
              status.ok() ? absl::StatusOr<Tensors>(self->pass_->TakeWanted())
                          : status);
        });
    engine_->Feed(pass_, loss_, std::move(feeds_));
  }

  void OnFinished(const std::string& worker,
                  const absl::StatusOr<Tensors>& wanted) {
    if (wanted.ok()) {
      MutexLock lock(mutex_);
      gradients_[worker] = *wanted;
      if (--unfinished_ > 0) return;
    }
    End(wanted.status());
  }

  void EndIfFails(const absl::Status& status) {
    if (!status.ok()) End(status);
  }

  // Reports a failure only when no node of the pass runs any more, so that
  // another backward may run them.
  void End(const absl::Status& status) {
    std::set<std::string> told;
    {
      MutexLock lock(mutex_);
      if (std::exchange(ended_, true)) return;
      for (const auto& [worker, edges] : participants_) told.insert(worker);
    }
    if (status.ok()) {
      Report(status);
      return;
    }
    const std::string here = pass_->WaitsFor();
    context_->AbortPass(pass_->id(), status);
    pass_->Fail(status);
    told.merge(pass_->TakePeers());
    told.erase(engine_->self_.name);
    std::vector<Future<std::string>> words;
    for (const std::string& worker : told)
      words.push_back(Abort(worker, status));
    WaitAll(words).OnReady([self = shared_from_this(), status,
                            here](const absl::StatusOr<Words>& waits) {
      self->pass_->Ended().OnReady(
          [self, status, here, waits](const absl::Status&) {
            self->Report(absl::IsDeadlineExceeded(status)
                             ? self->Late(here, waits.ok() ? *waits : Words())
                             : status);
          });
    });
  }

  // Returns "worker bob waits for ..."; never fails.
  Future<std::string> Abort(const std::string& worker,
                            const absl::Status& why) {
    Promise<std::string> words;
    engine_->peers_->Abort(worker, context_->id(), pass_->id(), why, kLastWords)
        .OnReady([words, worker](const absl::StatusOr<std::string>& waits) {
          words.Set(absl::StrCat(
              "worker ", worker,
              waits.ok() ? " waits for " : " has not ended its share",
              waits.ok() ? *waits : ""));
        });
    return words.future();
  }

  absl::Status Late(const std::string& here, const Words& waits) const {
    return absl::DeadlineExceededError(absl::StrCat(
        "backward of ", context_->id().ToString(), " took longer than ",
        ShownTime(timeout_), ": worker ", engine_->self_.name, " waits for ",
        here, waits.empty() ? "" : "; ", absl::StrJoin(waits, "; ")));
  }

  void Report(const absl::Status& status) {
    context_->EndBackward(pass_->id());
    if (status.ok()) {
      result_.Set(InOrder());
    } else {
      result_.Set(status);
    }
  }

  // Returns the requested gradients, ordered by place.
  absl::StatusOr<Tensors> InOrder() {
    MutexLock lock(mutex_);
    Tensors all;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const Tensors& there = gradients_[place_at_[i]];
      const uint64_t end = wanted_[i].first + wanted_[i].count;
      if (end < wanted_[i].first || end > there.size()) {
        return absl::InternalError(
            absl::StrCat("worker ", place_at_[i], " gave ", there.size(),
                         " gradients where ", end, " were asked for"));
      }
      for (uint64_t at = wanted_[i].first; at < end; ++at)
        all.push_back(there[at]);
    }
    return all;
  }

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<ContextState> context_;
  const std::shared_ptr<Pass> pass_;
  const Markings markings_;
  const std::chrono::milliseconds timeout_;
  const Promise<Tensors> result_;
  // One continuation after the other uses these, until Finish.
  PassRequest request_;
  std::shared_ptr<autograd::Node> loss_;
  Tensors feeds_;
  std::vector<std::string> place_at_;
  std::vector<WantedPlaces> wanted_;
  Mutex mutex_;
  Marking participants_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Tensors> gradients_ ABSL_GUARDED_BY(mutex_);
  size_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

Future<Tensors> Engine::StartRun(const std::shared_ptr<ContextState>& context,
                                 const std::vector<Variable>& roots,
                                 const std::vector<GradientPlace>* places,
                                 const Tensors& grad_outputs,
                                 const BackwardOptions& options) {
  const auto start = [&]() -> absl::StatusOr<Future<Tensors>> {
    if (options.create_graph) {
      return absl::UnimplementedError(
          "backward: create_graph: gradients are tensors without a graph of "
          "their own; there are none of higher order");
    }
    RETURN_IF_ERROR(CheckRoots(roots, grad_outputs));
    ASSIGN_OR_RETURN(const PassId id, context->BeginBackward());
    auto pass = OpenPass(context, id, PassId{}, options.take);
    if (!pass.ok()) {
      context->EndBackward(id);
      return pass.status();
    }
    const auto run =
        std::make_shared<Run>(shared_from_this(), context, *pass, options);
    return run->Start(roots, FeedsOf(roots, grad_outputs), places);
  };
  absl::StatusOr<Future<Tensors>> started = start();
  return started.ok() ? *started : ReadyFuture<Tensors>(started.status());
}

Future<void> Engine::Backward(const std::shared_ptr<ContextState>& context,
                              const std::vector<Variable>& roots,
                              const Tensors& grad_outputs,
                              const BackwardOptions& options) {
  return StartRun(context, roots, nullptr, grad_outputs, options)
      .Then([](const Tensors&) {});
}

Future<Tensors> Engine::Gradients(const std::shared_ptr<ContextState>& context,
                                  const std::vector<Variable>& roots,
                                  const std::vector<GradientPlace>& places,
                                  const Tensors& grad_outputs,
                                  const BackwardOptions& options) {
  return StartRun(context, roots, &places, grad_outputs, options);
}

}  // namespace baton::dist
