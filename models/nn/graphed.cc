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

}  // namespace

// A replayed forward, whose activations the recording holds. Its backward node
// owns the pass, so the recording is free once the node is gone.
struct Graphed::Pass {
  bool over = false;  // its backward has run
};

struct Graphed::Recording {
  std::vector<Tensor> inputs, outputs;
  std::vector<bool> needs_dy;  // for each output
  std::vector<Tensor> dys;     // for the outputs that need one
  std::optional<Graph> forward, backward;
  std::vector<Tensor> gradients;  // of the inputs, then of each parameter
  std::weak_ptr<Pass> pass;

  bool InUse() const {
    const std::shared_ptr<Pass> last = pass.lock();
    return last != nullptr && !last->over;
  }
  void RunBackward(const autograd::Backprop& p) const {
    for (size_t i = 0; i < dys.size(); ++i) {
      if (p.dy(i).defined()) {
        dys[i].CopyFrom(p.dy(i));
      } else {
        dys[i].Fill(0);
      }
    }
    backward->Replay();
  }
};

// The recordings of one kind of input.
struct Graphed::Passes {
  std::vector<std::shared_ptr<Recording>> recordings;
  bool refused = false;  // no further recording can be made
};

Graphed::Graphed(std::shared_ptr<Module> module,
                 const RecordingOptions& options)
    : module_(RegisterModule("module", std::move(module))),
      most_passes_(options.passes),
      recordings_(options) {}

Variable Graphed::Forward(const Variable& x) {
  const std::vector<Variable> outputs = ForwardAll({x});
  Require(outputs.size() == 1, kOp, "the module gave ", outputs.size(),
          " values: call ForwardAll");
  return outputs.front();
}

std::vector<Variable> Graphed::ForwardAll(const std::vector<Variable>& given) {
  // The wrapped module may have been moved or cast separately, so it places the
  // inputs.
  const std::vector<Variable> inputs = module_.Placed(given);
  if (!Recordable(inputs)) return module_(inputs);
  const std::vector<Variable> parameters = module_.Parameters();
  const std::shared_ptr<Recording> recording = Idle(inputs, parameters);
  if (recording == nullptr) return module_(inputs);
  return Replay(recording, inputs, parameters);
}

std::vector<Variable> Graphed::Replay(
    const std::shared_ptr<Recording>& recording,
    const std::vector<Variable>& inputs,
    const std::vector<Variable>& parameters) {
  for (size_t i = 0; i < inputs.size(); ++i)
    recording->inputs[i].CopyFrom(inputs[i].tensor());
  recording->forward->Replay();
  ++replays_;
  std::vector<Variable> outputs;
  std::vector<Tensor> flowing;  // the outputs that need gradients
  for (size_t i = 0; i < recording->outputs.size(); ++i) {
    outputs.emplace_back(recording->outputs[i].Clone());
    if (recording->needs_dy[i]) flowing.push_back(outputs.back().tensor());
  }
  if (!recording->backward) return outputs;
  auto pass = std::make_shared<Pass>();
  recording->pass = pass;
  std::vector<Variable> leaves = inputs;
  leaves.insert(leaves.end(), parameters.begin(), parameters.end());
  const std::vector<Variable> made = autograd::RecordMany(
      kOp, flowing, {}, leaves, [recording, pass](const autograd::Backprop& p) {
        Require(recording->pass.lock() == pass, kOp,
                "a later forward has overwritten the activations that this "
                "second backward needs");
        recording->RunBackward(p);
        pass->over = true;
        return ops::CloneMany(recording->gradients);
      });
  size_t next = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (recording->needs_dy[i]) outputs[i] = made[next++];
  }
  return outputs;
}

bool Graphed::Recordable(const std::vector<Variable>& inputs) const {
  if (inputs.empty() || NoGrad::Active() || Graph::IsRecording() ||
      !module_.is_training() || module_.HasHooks())
    return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](const Variable& x) {
    return x.defined() && x.tensor().device().is_cuda() &&
           x.tensor().device() == inputs.front().tensor().device();
  });
}

std::shared_ptr<Graphed::Recording> Graphed::Idle(
    const std::vector<Variable>& inputs,
    const std::vector<Variable>& parameters) {
  const Device device = inputs.front().tensor().device();
  const bool plain = std::all_of(
      parameters.begin(), parameters.end(), [&](const Variable& parameter) {
        const autograd::Edge edge = parameter.gradient_edge();
        return parameter.tensor().device() == device &&
               !(edge.valid() && edge.node->has_hooks());
      });
  if (!plain) return nullptr;
  std::vector<Tensor> tensors;
  std::string kind;
  for (const Variable& x : inputs) {
    tensors.push_back(x.tensor());
    kind += x.requires_grad() ? 'g' : '-';
  }
  kind += KindOf(tensors);
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
  const absl::Status status = CatchErrors(
      [&] { passes->recordings.push_back(Record(inputs, parameters)); });
  if (status.ok()) return passes->recordings.back();
  passes->refused = true;
  LogWarning("a module that is to be replayed runs as it is, but for ",
             passes->recordings.size(),
             " passes that were recorded: ", status.ToString());
  return nullptr;
}

std::shared_ptr<Graphed::Recording> Graphed::Record(
    const std::vector<Variable>& inputs,
    const std::vector<Variable>& parameters) {
  const Device device = inputs.front().tensor().device();
  auto recording = std::make_shared<Recording>();
  std::vector<Variable> own;
  for (const Variable& x : inputs) {
    recording->inputs.push_back(Tensor::EmptyLike(x.tensor()));
    own.emplace_back(recording->inputs.back(), x.requires_grad());
  }
  std::vector<Variable> outputs, roots;
  recording->forward = Graph::Record({device}, [&] { outputs = module_(own); });
  for (const Variable& output : outputs) {
    recording->outputs.push_back(output.tensor());
    recording->needs_dy.push_back(output.requires_grad());
    if (!output.requires_grad()) continue;
    roots.push_back(output);
    recording->dys.push_back(Tensor::EmptyLike(output.tensor()));
  }
  if (roots.empty()) return recording;

  std::map<const void*, Tensor> found;
  recording->backward = Graph::Record({device}, [&] {
    autograd::Backward(roots, recording->dys, false,
                       [&](const Variable& leaf, const Gradient& gradient) {
                         found[leaf.id()] = gradient.Dense();
                       });
  });
  for (const std::vector<Variable>& leaves : {own, parameters}) {
    for (const Variable& leaf : leaves)
      recording->gradients.push_back(found[leaf.id()]);
  }
  return recording;
}

}  // namespace baton::nn
