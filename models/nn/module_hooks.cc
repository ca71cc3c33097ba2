// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/functions/function.h"
#include "core/status.h"
#include "models/nn/module.h"

namespace baton::nn {
namespace {

using Variables = std::vector<Variable>;
using Tensors = std::vector<Tensor>;

// Returns the values as outputs of one new node. The gradients of these outputs
// are then only those that this use of the values contributes, whoever else
// uses them. `see` may replace the gradients that are defined.
Variables Apart(const Variables& values,
                const std::function<void(Tensors& gradients)>& see) {
  std::vector<size_t> places;
  Tensors tensors;
  Variables inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].defined() || !values[i].requires_grad()) continue;
    places.push_back(i);
    tensors.push_back(values[i].tensor());
    inputs.push_back(values[i]);
  }
  Variables apart = values;
  const Variables made = autograd::RecordMany(
      "module", tensors, {}, inputs,
      [see, places, count = values.size()](const autograd::Backprop& p) {
        Tensors gradients(count);
        for (size_t i = 0; i < places.size(); ++i)
          gradients[places[i]] = p.dy(i);
        see(gradients);
        Tensors flowing;
        for (const size_t place : places) flowing.push_back(gradients[place]);
        return flowing;
      });
  for (size_t i = 0; i < places.size(); ++i) apart[places[i]] = made[i];
  return apart;
}

bool RequireGrad(const Variables& values) {
  return std::any_of(values.begin(), values.end(), [](const Variable& x) {
    return x.defined() && x.requires_grad();
  });
}

template <typename T>
const T& OnlyOne(const std::vector<T>& values, const char* what) {
  Require(values.size() == 1, "module", "a hook of one value was added, but ",
          "the module ", what, " ", values.size(), ": add one of all values");
  return values.front();
}

// Returns the result of a hook of one value as a list.
template <typename T>
std::vector<T> ListOf(T given) {
  if (!given.defined()) return {};
  return {std::move(given)};
}

// Replaces `values` by the result of a hook of all values, unless that is
// empty.
template <typename T>
void Replace(std::vector<T>& values, std::vector<T> others) {
  if (others.empty()) return;
  Require(others.size() == values.size(), "module", "the hook gave ",
          others.size(), " for ", values.size(), " values");
  values = std::move(others);
}

void ReplaceGradients(Tensors& gradients, Tensors others) {
  const Tensors former = gradients;
  Replace(gradients, std::move(others));
  for (size_t i = 0; i < former.size(); ++i) {
    if (!former[i].defined() || !gradients[i].defined())
      gradients[i] = former[i];
  }
}

}  // namespace

Variable Module::operator()(const Variable& x) {
  const Variables outputs = (*this)(Variables{x});
  Require(outputs.size() == 1, "forward", "the module gave ", outputs.size(),
          " values, where one is wanted");
  return outputs.front();
}

Variables Module::operator()(const Variables& values) {
  Variables inputs = values;
  pre_hooks_.ForEach([&](const ForwardAllPreHook& hook) {
    Replace(inputs, hook(*this, inputs));
  });
  Variables outputs = backward_hooks_->empty()
                          ? ForwardAll(inputs)
                          : ForwardWithBackwardHooks(inputs);
  forward_hooks_.ForEach([&](const ForwardAllHook& hook) {
    Replace(outputs, hook(*this, inputs, outputs));
  });
  return outputs;
}

Variables Module::ForwardWithBackwardHooks(const Variables& values) {
  const auto of_outputs = std::make_shared<Tensors>();
  const Variables inputs =
      Apart(values, [hooks = backward_hooks_, of_outputs](Tensors& of_values) {
        hooks->ForEach([&](const BackwardAllHook& hook) {
          ReplaceGradients(of_values, hook(of_values, *of_outputs));
        });
        of_outputs->clear();
      });
  return Apart(ForwardAll(inputs),
               [hooks = backward_hooks_, of_outputs, count = values.size(),
                passes_on = RequireGrad(inputs)](Tensors& gradients) {
                 *of_outputs = gradients;
                 if (passes_on) return;
                 hooks->ForEach([&](const BackwardAllHook& hook) {
                   hook(Tensors(count), gradients);
                 });
               });
}

autograd::HookHandle Module::AddForwardPreHook(ForwardPreHook hook,
                                               const std::string& name) {
  return AddForwardPreHook(
      [hook = std::move(hook)](Module& module, const Variables& values) {
        return ListOf(hook(module, OnlyOne(values, "takes")));
      },
      name);
}

autograd::HookHandle Module::AddForwardPreHook(ForwardAllPreHook hook,
                                               const std::string& name) {
  return pre_hooks_.Add(std::move(hook), name);
}

autograd::HookHandle Module::AddForwardHook(ForwardHook hook,
                                            const std::string& name) {
  return AddForwardHook(
      [hook = std::move(hook)](Module& module, const Variables& values,
                               const Variables& outputs) {
        return ListOf(
            hook(module, OnlyOne(values, "takes"), OnlyOne(outputs, "gives")));
      },
      name);
}

autograd::HookHandle Module::AddForwardHook(ForwardAllHook hook,
                                            const std::string& name) {
  return forward_hooks_.Add(std::move(hook), name);
}

autograd::HookHandle Module::AddBackwardHook(BackwardHook hook,
                                             const std::string& name) {
  return AddBackwardHook(
      [hook = std::move(hook)](const Tensors& of_values,
                               const Tensors& of_outputs) {
        return ListOf(
            hook(OnlyOne(of_values, "takes"), OnlyOne(of_outputs, "gives")));
      },
      name);
}

autograd::HookHandle Module::AddBackwardHook(BackwardAllHook hook,
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
