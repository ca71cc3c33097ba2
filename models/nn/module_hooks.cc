// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "autograd/functions/function.h"
#include "models/nn/module.h"

namespace baton::nn {
namespace {

// x with a place in the graph of its own: what flows into it is the gradient
// that one module gives x, whoever else uses x.
Variable Apart(const Variable& x) {
  return autograd::Record(
      "module", x.tensor(), {},
      {{x, [](const autograd::Backprop& p) { return p.dy(); }}});
}

}  // namespace

Variable Module::operator()(const Variable& x) {
  Variable input = x;
  pre_hooks_.ForEach([&](const ForwardPreHook& hook) {
    Variable other = hook(*this, input);
    if (other.defined()) input = std::move(other);
  });
  Variable output = backward_hooks_->empty() ? Forward(input)
                                             : ForwardWithBackwardHooks(input);
  forward_hooks_.ForEach([&](const ForwardHook& hook) {
    Variable other = hook(*this, input, output);
    if (other.defined()) output = std::move(other);
  });
  return output;
}

Variable Module::ForwardWithBackwardHooks(const Variable& x) {
  const Variable input = x.requires_grad() ? Apart(x) : x;
  Variable output = Forward(input);
  if (!output.requires_grad()) return output;
  // A leaf, a parameter say, or the input itself.
  if (output.is_leaf() || output.id() == input.id()) output = Apart(output);
  if (!output.requires_grad()) return output;  // nothing is recorded
  const auto of_y = std::make_shared<Tensor>();
  const bool passes_on = input.requires_grad();
  output.AddHook(
      [hooks = backward_hooks_, of_y, passes_on](const Tensor& gradient) {
        *of_y = gradient;
        if (!passes_on) {
          hooks->ForEach(
              [&](const BackwardHook& hook) { hook(Tensor(), gradient); });
        }
        return Tensor();
      },
      "of a module");
  if (!passes_on) return output;
  Variable(input).AddHook(
      [hooks = backward_hooks_, of_y](const Tensor& gradient) {
        Tensor of_x = gradient;
        hooks->ForEach([&](const BackwardHook& hook) {
          Tensor other = hook(of_x, *of_y);
          if (other.defined()) of_x = std::move(other);
        });
        *of_y = Tensor();
        return of_x;
      },
      "of a module");
  return output;
}

autograd::HookHandle Module::AddForwardPreHook(ForwardPreHook hook,
                                               const std::string& name) {
  return pre_hooks_.Add(std::move(hook), name);
}

autograd::HookHandle Module::AddForwardHook(ForwardHook hook,
                                            const std::string& name) {
  return forward_hooks_.Add(std::move(hook), name);
}

autograd::HookHandle Module::AddBackwardHook(BackwardHook hook,
                                             const std::string& name) {
  return backward_hooks_->Add(std::move(hook), name);
}

bool Module::HasHooks() const {
  return !pre_hooks_.empty() || !forward_hooks_.empty() ||
         !backward_hooks_->empty() ||
         std::any_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child.value->HasHooks(); });
}

Module* Module::FindPart(std::string_view name) {
  if (name.empty()) return this;
  const size_t dot = name.find('.');
  const std::string_view first = name.substr(0, dot);
  for (const auto& child : children_) {
    if (child.name != first) continue;
    return child.value->FindPart(dot == std::string_view::npos
                                     ? std::string_view()
                                     : name.substr(dot + 1));
  }
  return nullptr;
}

}  // namespace baton::nn
