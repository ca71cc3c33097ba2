// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/module.h"

#include <algorithm>
#include <bit>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/functions/cast.h"
#include "autograd/functions/transfer.h"
#include "core/status.h"

namespace baton::nn {
namespace {

// Lists only a few of many names, so that the state of another model gives a
// readable line.
std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  const size_t shown = std::min(names.size(), kShown);
  std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (names.size() > shown)
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

// The names by which a state differs from a module.
struct Misfits {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  std::vector<std::string> mismatched;

  absl::Status ToStatus() const {
    std::vector<std::string> parts;
    if (!missing.empty())
      parts.push_back(absl::StrCat("missing ", Listed(missing)));
    if (!unexpected.empty())
      parts.push_back(absl::StrCat("unexpected ", Listed(unexpected)));
    if (!mismatched.empty())
      parts.push_back(absl::StrCat("of another shape ", Listed(mismatched)));
    if (parts.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "state does not fit the module: ", absl::StrJoin(parts, "; ")));
  }
};

Misfits Compare(const StateMap& own, const StateMap& given, bool strict) {
  Misfits misfits;
  for (const auto& [name, target] : own) {
    const auto found = given.find(name);
    if (found == given.end()) {
      if (strict) misfits.missing.push_back(name);
    } else if (!found->second.defined() ||
               found->second.shape() != target.shape()) {
      misfits.mismatched.push_back(absl::StrCat(
          name, " (module ", target.shape().ToString(), ", state ",
          found->second.defined() ? found->second.shape().ToString()
                                  : "undefined",
          ")"));
    }
  }
  if (strict) {
    for (const auto& [name, unused] : given) {
      if (own.count(name) == 0) misfits.unexpected.push_back(name);
    }
  }
  return misfits;
}

}  // namespace

// Calls visit(module, prefix) for this module and all below it.
template <typename Visit>
void Module::ForEach(const std::string& prefix, const Visit& visit) const {
  visit(*this, prefix);
  for (const auto& [name, child] : children_)
    child->ForEach(absl::StrCat(prefix, name, "."), visit);
}

std::vector<Named<Variable>> Module::NamedParameters() const {
  std::vector<Named<Variable>> all;
  std::set<const void*> seen;
  ForEach("", [&](const Module& module, const std::string& prefix) {
    for (const auto& [name, value] : module.parameters_) {
      if (seen.insert(value->id()).second)
        all.push_back({absl::StrCat(prefix, name), *value});
    }
  });
  return all;
}

std::vector<Variable> Module::Parameters() const {
  std::vector<Variable> all;
  for (auto& named : NamedParameters()) all.push_back(std::move(named.value));
  return all;
}

std::vector<Named<Tensor>> Module::NamedBuffers() const {
  std::vector<Named<Tensor>> all;
  std::set<const Tensor*> seen;
  ForEach("", [&](const Module& module, const std::string& prefix) {
    for (const auto& [name, value] : module.buffers_) {
      if (seen.insert(value.get()).second)
        all.push_back({absl::StrCat(prefix, name), *value});
    }
  });
  return all;
}

std::vector<Named<Generator*>> Module::NamedGenerators() const {
  std::vector<Named<Generator*>> all;
  std::set<const Generator*> seen;
  ForEach("", [&](const Module& module, const std::string& prefix) {
    for (size_t i = 0; i < module.generators_.size(); ++i) {
      Generator* const generator = module.generators_[i].get();
      if (seen.insert(generator).second)
        all.push_back({absl::StrCat(prefix, i), generator});
    }
  });
  return all;
}

std::vector<Generator*> Module::Generators() const {
  std::vector<Generator*> all;
  for (const auto& named : NamedGenerators()) all.push_back(named.value);
  return all;
}

StateMap Module::GeneratorState() const {
  StateMap state;
  for (const auto& [name, generator] : NamedGenerators()) {
    const Generator::State now = generator->state();
    state[name] = Tensor::From<int64_t>(
        {std::bit_cast<int64_t>(now.seed), std::bit_cast<int64_t>(now.draws),
         std::bit_cast<int64_t>(generator->ReplayedDraws())});
  }
  return state;
}

absl::Status Module::LoadGeneratorState(const StateMap& state) {
  const auto generators = NamedGenerators();
  RETURN_IF_ERROR(Compare(GeneratorState(), state, true).ToStatus());
  return CatchErrors([&] {
    std::vector<std::vector<int64_t>> words;
    for (const auto& named : generators)
      words.push_back(state.at(named.name).ToVector<int64_t>());
    for (size_t i = 0; i < generators.size(); ++i) {
      generators[i].value->set_state(
          {.seed = std::bit_cast<uint64_t>(words[i][0]),
           .draws = std::bit_cast<uint64_t>(words[i][1])});
      generators[i].value->SetReplayedDraws(
          std::bit_cast<uint64_t>(words[i][2]));
    }
  });
}

int64_t Module::NumParameters() const {
  int64_t count = 0;
  for (const Variable& parameter : Parameters())
    count += parameter.tensor().numel();
  return count;
}

int64_t Module::HeldBytes() const {
  int64_t bytes = 0;
  for (const Variable& parameter : Parameters())
    bytes += static_cast<int64_t>(parameter.tensor().nbytes());
  for (const auto& buffer : NamedBuffers())
    bytes += static_cast<int64_t>(buffer.value.nbytes());
  return bytes;
}

const Tensor* Module::FirstTensor() const {
  if (!parameters_.empty()) return &parameters_.front().value->tensor();
  if (!buffers_.empty()) return buffers_.front().value.get();
  for (const auto& [name, child] : children_) {
    if (const Tensor* first = child->FirstTensor()) return first;
  }
  return nullptr;
}

Device Module::device() const {
  const Tensor* first = FirstTensor();
  return first == nullptr ? device_ : first->device();
}

Variable Module::Placed(const Variable& x) const {
  if (!x.defined()) return x;
  const Variable here = autograd::To(x, device());
  return dtype_.has_value() && IsFloating(here.dtype())
             ? autograd::Cast(here, *dtype_)
             : here;
}

std::vector<Variable> Module::Placed(
    const std::vector<Variable>& values) const {
  std::vector<Variable> placed;
  for (const Variable& x : values) placed.push_back(Placed(x));
  return placed;
}

Variable Module::Forward(const Variable&) {
  Fail("forward", "the module takes or gives several values: call ForwardAll");
}

std::vector<Variable> Module::ForwardAll(const std::vector<Variable>& values) {
  Require(values.size() == 1, "forward", "the module takes one value, got ",
          values.size());
  return {Forward(values.front())};
}

void Module::Train(bool training) {
  training_ = training;
  for (const auto& named : children_) named.value->Train(training);
}

void Module::ZeroGrad() {
  for (Variable& parameter : Parameters()) parameter.ZeroGrad();
}

StateMap Module::StateDict() const {
  StateMap state;
  ForEach("", [&](const Module& module, const std::string& prefix) {
    for (const auto& [name, value] : module.parameters_)
      state[absl::StrCat(prefix, name)] = value->tensor();
    for (const auto& [name, value] : module.buffers_)
      state[absl::StrCat(prefix, name)] = *value;
  });
  return state;
}

absl::Status Module::LoadStateDict(const StateMap& state, bool strict) {
  const StateMap own = StateDict();
  RETURN_IF_ERROR(Compare(own, state, strict).ToStatus());
  return CatchErrors([&] {
    for (const auto& [name, target] : own) {
      const auto found = state.find(name);
      if (found != state.end()) target.CopyFrom(found->second);
    }
  });
}

// Replaces each own parameter and buffer by change(tensor).
template <typename Change>
void Module::ReplaceOwn(const Change& change) {
  for (const auto& named : parameters_) {
    const Tensor changed = change(named.value->tensor());
    if (changed.storage() != named.value->tensor().storage())
      named.value->set_tensor(changed);
  }
  for (const auto& named : buffers_) *named.value = change(*named.value);
}

void Module::To(DType dtype) {
  if (IsFloating(dtype)) dtype_ = dtype;
  ReplaceOwn([dtype](const Tensor& t) {
    return IsFloating(t.dtype()) ? t.To(dtype) : t;
  });
  for (const auto& named : children_) named.value->To(dtype);
}

void Module::LowerPrecision(DType dtype) {
  Require(IsFloating(dtype), "lower_precision", "expected a floating dtype, ",
          "got ", Name(dtype));
  dtype_ = dtype;
  if (!KeepsPrecision()) {
    ReplaceOwn([dtype](const Tensor& t) {
      return IsFloating(t.dtype()) ? t.To(dtype) : t;
    });
  }
  for (const auto& named : children_) named.value->LowerPrecision(dtype);
}

void Module::To(Device device) {
  ReplaceOwn([device](const Tensor& t) { return t.To(device); });
  device_ = device;
  for (const auto& named : children_) named.value->To(device);
}

void Module::ToFormat(MemoryFormat format) {
  ReplaceOwn([format](const Tensor& t) {
    return t.rank() == 4 ? t.Contiguous(format) : t;
  });
  for (const auto& named : children_) named.value->ToFormat(format);
}

void Module::Follow(const Module& other, Device device) {
  Require(parameters_.size() == other.parameters_.size() &&
              buffers_.size() == other.buffers_.size() &&
              children_.size() == other.children_.size(),
          "follow", "a module of other parts");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Variable& theirs = *other.parameters_[i].value;
    Variable& own = *parameters_[i].value;
    Require(own.shape() == theirs.shape(), "follow", parameters_[i].name,
            " is ", own.shape().ToString(), ", not ",
            theirs.shape().ToString());
    own = autograd::To(theirs, device);
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Tensor& theirs = *other.buffers_[i].value;
    const Tensor there = theirs.To(device);
    *buffers_[i].value =
        there.storage() == theirs.storage() ? there.Clone() : there;
  }
  device_ = device;
  dtype_ = other.dtype_;
  training_ = other.training_;
  for (size_t i = 0; i < children_.size(); ++i)
    children_[i].value->Follow(*other.children_[i].value, device);
}

void Module::CheckNewName(const std::string& name) const {
  const auto taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& named) { return named.name == name; });
  };
  BATON_CHECK(!name.empty() && name.find('.') == std::string::npos);
  BATON_CHECK(!taken(parameters_) && !taken(buffers_) && !taken(children_));
}

Variable& Module::RegisterParameter(const std::string& name, Tensor value) {
  CheckNewName(name);
  parameters_.push_back(
      {name, std::make_unique<Variable>(std::move(value), true)});
  return *parameters_.back().value;
}

Tensor& Module::RegisterBuffer(const std::string& name, Tensor value) {
  CheckNewName(name);
  buffers_.push_back({name, std::make_unique<Tensor>(std::move(value))});
  return *buffers_.back().value;
}

Generator& Module::RegisterGenerator(uint64_t seed) {
  return *generators_.emplace_back(std::make_unique<Generator>(seed));
}

void Module::AddChild(const std::string& name, std::shared_ptr<Module> child) {
  CheckNewName(name);
  BATON_CHECK(child != nullptr);
  children_.push_back({name, std::move(child)});
}

}  // namespace baton::nn
