// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/graphed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/engine.h"
#include "autograd/functions/function.h"
#include "core/graph.h"
#include "core/log.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"

namespace baton::nn {
namespace {

constexpr char kOp[] = "graphed";

// Copies that belong to the caller, made at once; of undefined ones none.
std::vector<Tensor> CopiesOf(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies, targets, sources;
  for (const Tensor& x : tensors) {
    copies.push_back(x.defined() ? Tensor::EmptyLike(x) : Tensor());
    if (!x.defined()) continue;
    targets.push_back(copies.back());
    sources.push_back(x);
  }
  ops::CastMany(targets, sources);
  return copies;
}

}  // namespace

// The forward whose activations a recording holds. The recorded node of that
// forward owns it.
struct Graphed::Pass {
  bool over = false;  // its backward has run
};

struct Graphed::Recording {
  Tensor input, output, dy;
  std::optional<Graph> forward, backward;
  std::vector<Tensor> gradients;  // of the input, then of each parameter
  std::weak_ptr<Pass> pass;

  bool InUse() const {
    const std::shared_ptr<Pass> last = pass.lock();
    return last != nullptr && !last->over;
  }
};

// Those of one kind of input.
struct Graphed::Passes {
  std::vector<std::shared_ptr<Recording>> recordings;
  bool refused = false;  // no more can be made
};

Graphed::Graphed(std::shared_ptr<Module> module,
                 const RecordingOptions& options)
    : module_(RegisterModule("module", std::move(module))),
      most_passes_(options.passes),
      recordings_(options) {}

Variable Graphed::Forward(const Variable& given) {
  // The module may have been cast, which this has not.
  const Variable x = module_.Placed(given);
  if (!Recordable(x)) return module_(x);
  const std::vector<Variable> parameters = module_.Parameters();
  const std::shared_ptr<Recording> recording = Idle(x, parameters);
  if (recording == nullptr) return module_(x);

  recording->input.CopyFrom(x.tensor());
  recording->forward->Replay();
  ++replays_;
  const Tensor y = recording->output.Clone();
  if (!recording->backward) return Variable(y);
  auto pass = std::make_shared<Pass>();
  recording->pass = pass;
  std::vector<Variable> inputs = {x};
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  return autograd::RecordJoint(
      kOp, y, {}, inputs, [recording, pass](const autograd::Backprop& p) {
        Require(recording->pass.lock() == pass, kOp,
                "a later forward has overwritten the activations that this "
                "second backward needs");
        recording->dy.CopyFrom(p.dy());
        recording->backward->Replay();
        pass->over = true;
        return CopiesOf(recording->gradients);
      });
}

bool Graphed::Recordable(const Variable& x) const {
  return x.defined() && x.tensor().device().is_cuda() && !NoGrad::Active() &&
         module_.is_training() && !module_.HasHooks();
}

std::shared_ptr<Graphed::Recording> Graphed::Idle(
    const Variable& x, const std::vector<Variable>& parameters) {
  const bool plain = std::all_of(
      parameters.begin(), parameters.end(), [&](const Variable& parameter) {
        const autograd::Edge edge = parameter.gradient_edge();
        return parameter.tensor().device() == x.tensor().device() &&
               !(edge.valid() && edge.node->has_hooks());
      });
  if (!plain) return nullptr;
  const std::string kind =
      absl::StrCat(KindOf({x.tensor()}), x.requires_grad() ? "grad" : "");
  const std::shared_ptr<Passes> passes = recordings_.For(
      kind, parameters, [] { return std::make_shared<Passes>(); });
  if (passes == nullptr) return nullptr;
  for (const auto& recording : passes->recordings) {
    if (!recording->InUse()) return recording;
  }
  if (passes->refused ||
      passes->recordings.size() == static_cast<size_t>(most_passes_)) {
    return nullptr;
  }
  const absl::Status status =
      CatchErrors([&] { passes->recordings.push_back(Record(x, parameters)); });
  if (status.ok()) return passes->recordings.back();
  passes->refused = true;
  LogWarning("a module that is to be replayed runs as it is, but for ",
             passes->recordings.size(),
             " passes that were recorded: ", status.ToString());
  return nullptr;
}

std::shared_ptr<Graphed::Recording> Graphed::Record(
    const Variable& x, const std::vector<Variable>& parameters) {
  const Device device = x.tensor().device();
  auto recording = std::make_shared<Recording>();
  recording->input = Tensor::EmptyLike(x.tensor());
  const Variable input(recording->input, x.requires_grad());
  Variable output;
  recording->forward =
      Graph::Record({device}, [&] { output = module_(input); });
  recording->output = output.tensor();
  if (!output.requires_grad()) return recording;

  recording->dy = Tensor::EmptyLike(output.tensor());
  std::map<const void*, Tensor> found;
  recording->backward = Graph::Record({device}, [&] {
    autograd::Backward({output}, {recording->dy}, false,
                       [&](const Variable& leaf, const Tensor& gradient) {
                         found[leaf.id()] = gradient;
                       });
  });
  recording->gradients.push_back(found[input.id()]);
  for (const Variable& parameter : parameters)
    recording->gradients.push_back(found[parameter.id()]);
  return recording;
}

}  // namespace baton::nn
