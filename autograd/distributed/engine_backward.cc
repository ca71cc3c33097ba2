// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/distributed/engine.h"

namespace baton::dist {
namespace {

using Names = std::vector<std::string>;

// How long a failed backward waits for its participants to say what they were
// waiting for.
constexpr std::chrono::milliseconds kLastWords{1000};
// Stands for "no limit"; far enough, and adds to a clock without overflow.
constexpr std::chrono::hours kFarAway{24 * 365};

// The loss: a node whose outputs are the roots.
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
  auto invalid = [](const auto&... parts) {
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

// One backward, seen from its root. Kept alive by what it waits for.
class Engine::Run final : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<Engine> engine, std::shared_ptr<ContextState> context,
      std::shared_ptr<Pass> pass, std::chrono::milliseconds timeout)
      : engine_(std::move(engine)),
        context_(std::move(context)),
        pass_(std::move(pass)),
        timeout_(timeout) {}

  Future<void> Start(std::shared_ptr<autograd::Node> loss,
                     std::vector<Tensor> feeds) {
    absl::StatusOr<std::vector<std::shared_ptr<ReceiveNode>>> reached =
        pass_->Mark({loss});
    if (!reached.ok()) {
      End(reached.status());
      return result_.future();
    }
    engine_->MarkOnwards(context_->id(), pass_, *reached)
        .OnReady([self = shared_from_this(), loss = std::move(loss),
                  feeds = std::move(feeds)](
                     const absl::StatusOr<Names>& names) mutable {
          if (names.ok()) {
            self->OnMarked(*names, std::move(loss), std::move(feeds));
          } else {
            self->End(names.status());
          }
        });
    return result_.future();
  }

 private:
  void OnMarked(const Names& names, std::shared_ptr<autograd::Node> loss,
                std::vector<Tensor> feeds) {
    {
      MutexLock lock(mutex_);
      participants_.insert(names.begin(), names.end());
      participants_.erase(engine_->self_.name);
      unfinished_ = participants_.size() + 1;
    }
    for (const std::string& worker : Others()) {
      engine_->peers_
          ->Finish(worker, context_->id(), pass_->id(), pass_->TimeLeft())
          .OnReady([self = shared_from_this()](const absl::Status& status) {
            self->OnFinished(status);
          });
    }
    pass_->Finished().OnReady(
        [self = shared_from_this()](const absl::Status& status) {
          self->OnFinished(status);
        });
    engine_->Feed(pass_, std::move(loss), std::move(feeds));
  }

  std::set<std::string> Others() {
    MutexLock lock(mutex_);
    return participants_;
  }

  void OnFinished(const absl::Status& status) {
    if (status.ok()) {
      MutexLock lock(mutex_);
      if (--unfinished_ > 0) return;
    }
    End(status);
  }

  void End(const absl::Status& status) {
    {
      MutexLock lock(mutex_);
      if (std::exchange(ended_, true)) return;
    }
    if (status.ok()) {
      Report(status);
      return;
    }
    const std::string here = pass_->WaitsFor();
    context_->AbortPass(pass_->id(), status);
    std::set<std::string> told = Others();
    told.merge(pass_->TakePeers());
    told.erase(engine_->self_.name);
    std::vector<Future<std::string>> words;
    for (const std::string& worker : told)
      words.push_back(Abort(worker, status));
    if (!absl::IsDeadlineExceeded(status)) {
      Report(status);
      return;
    }
    WaitAll(words).OnReady(
        [self = shared_from_this(), here](const absl::StatusOr<Names>& waits) {
          self->ReportDeadline(here, waits.ok() ? *waits : Names());
        });
  }

  // "worker bob waits for ..."; never fails.
  Future<std::string> Abort(const std::string& worker,
                            const absl::Status& why) {
    Promise<std::string> words;
    engine_->peers_->Abort(worker, context_->id(), pass_->id(), why, kLastWords)
        .OnReady([words, worker](const absl::StatusOr<std::string>& waits) {
          words.Set(absl::StrCat("worker ", worker,
                                 waits.ok() ? " waits for " : " is silent",
                                 waits.ok() ? *waits : ""));
        });
    return words.future();
  }

  void ReportDeadline(const std::string& here, const Names& waits) {
    Report(absl::DeadlineExceededError(absl::StrCat(
        "backward of ", context_->id().ToString(), " took longer than ",
        timeout_.count(), " ms: worker ", engine_->self_.name, " waits for ",
        here, waits.empty() ? "" : "; ", absl::StrJoin(waits, "; "))));
  }

  void Report(const absl::Status& status) {
    context_->EndBackward(pass_->id());
    result_.Set(status);
  }

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<ContextState> context_;
  const std::shared_ptr<Pass> pass_;
  const std::chrono::milliseconds timeout_;
  const Promise<void> result_;
  Mutex mutex_;
  std::set<std::string> participants_ ABSL_GUARDED_BY(mutex_);
  size_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

Future<void> Engine::Backward(const std::shared_ptr<ContextState>& context,
                              const std::vector<Variable>& roots,
                              const std::vector<Tensor>& grad_outputs,
                              const BackwardOptions& options) {
  absl::Status valid = CheckRoots(roots, grad_outputs);
  if (!valid.ok()) return ReadyFuture<void>(valid);
  absl::StatusOr<PassId> id = context->BeginBackward();
  if (!id.ok()) return ReadyFuture<void>(id.status());
  auto limit = std::min<std::chrono::milliseconds>(options.timeout, kFarAway);
  absl::StatusOr<std::shared_ptr<Pass>> pass = context->OpenPass(
      *id, PassOptions(context, *id, options.retain_graph, limit));
  if (!pass.ok()) {
    context->EndBackward(*id);
    return ReadyFuture<void>(pass.status());
  }
  auto run = std::make_shared<Run>(shared_from_this(), context, *pass, limit);
  return run->Start(std::make_shared<LossNode>(roots),
                    FeedsOf(roots, grad_outputs));
}

}  // namespace baton::dist
