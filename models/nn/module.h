// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "autograd/hooks.h"
#include "autograd/variable.h"
#include "core/random.h"
#include "core/tensor.h"

namespace baton::nn {

template <typename T>
struct Named {
  std::string name;  // "layer1.0.conv1.weight"
  T value;
};

using StateMap = std::map<std::string, Tensor>;

// A part of a model: parameters (trained), buffers (kept beside them, such as
// running statistics) and child modules, each with a name, and generators that
// its forward draws from. A constructor registers what it owns and keeps the
// references that registering returns:
//
//   explicit Scale(int64_t n)
//       : factor_(RegisterParameter("factor", Tensor::Ones({n}))) {}
//
// A module owns its parameters and buffers, and shares its children. Loading a
// state writes into the tensors that are there. To, ToFormat and LowerPrecision
// give the same Variables other tensors: optimizers, and handles from before,
// follow; what was recorded (nn::GraphedStep, nn::Graphed) is recorded anew,
// and a Graph of one's own refuses to Replay when the former tensors are gone.
// Thread-compatible; Forward counts as a write while training.
class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // What it gives for x; throws Error where that does not fit. A module that
  // takes or gives several values overrides ForwardAll in its place.
  virtual Variable Forward(const Variable& x);
  // What it gives for all that it takes. Of other modules: Forward of the one
  // value; throws Error for another number.
  virtual std::vector<Variable> ForwardAll(const std::vector<Variable>& values);

  // ForwardAll with the hooks, each in the order in which it was added: what
  // pipelines use. Throws what ForwardAll and hooks throw, the latter led by
  // "hook NAME: ".
  std::vector<Variable> operator()(const std::vector<Variable>& values);
  // The same of one value, which gives one: what modules and calls from other
  // workers use.
  Variable operator()(const Variable& x);

  // May give another x, or another y; an undefined one leaves it. Those that
  // run again (RerunScope) call them again. Where a module takes or gives
  // several values, a hook of one throws Error.
  using ForwardPreHook = std::function<Variable(Module&, const Variable& x)>;
  using ForwardHook =
      std::function<Variable(Module&, const Variable& x, const Variable& y)>;
  // Sees the gradient of x, and that of y as it came, in each backward that
  // gives x one, and may give another one of x; where x requires none, it is
  // undefined, and so is what the hook gives.
  using BackwardHook =
      std::function<Tensor(const Tensor& of_x, const Tensor& of_y)>;
  // The same of any module, with all that it takes and gives. They may give
  // others, a list as long or, to leave them, an empty one.
  using ForwardAllPreHook = std::function<std::vector<Variable>(
      Module&, const std::vector<Variable>& values)>;
  using ForwardAllHook = std::function<std::vector<Variable>(
      Module&, const std::vector<Variable>& values,
      const std::vector<Variable>& outputs)>;
  // In each backward that gives some value a gradient; undefined those of
  // values, and outputs, that get none, and what the hook gives for them.
  using BackwardAllHook =
      std::function<std::vector<Tensor>(const std::vector<Tensor>& of_values,
                                        const std::vector<Tensor>& of_outputs)>;
  // What runs where another worker calls kMethod of an M (rpc::Registry): its
  // Forward or ForwardAll with the hooks.
  template <typename M, auto kMethod>
  static constexpr auto CalledAs() {
    using One = Variable (Module::*)(const Variable&);
    using All = std::vector<Variable> (Module::*)(const std::vector<Variable>&);
    if constexpr (IsForward<M, kMethod>()) {
      return static_cast<One>(&Module::operator());
    } else if constexpr (IsForwardAll<M, kMethod>()) {
      return static_cast<All>(&Module::operator());
    } else {
      return kMethod;
    }
  }

  autograd::HookHandle AddForwardPreHook(ForwardPreHook hook,
                                         const std::string& name = "");
  autograd::HookHandle AddForwardPreHook(ForwardAllPreHook hook,
                                         const std::string& name = "");
  autograd::HookHandle AddForwardHook(ForwardHook hook,
                                      const std::string& name = "");
  autograd::HookHandle AddForwardHook(ForwardAllHook hook,
                                      const std::string& name = "");
  autograd::HookHandle AddBackwardHook(BackwardHook hook,
                                       const std::string& name = "");
  autograd::HookHandle AddBackwardHook(BackwardAllHook hook,
                                       const std::string& name = "");
  // Of this module or one below it.
  bool HasHooks() const;
  // The module below this one of that name ("layer1.0"); itself where it is
  // empty, null where there is none.
  Module* FindPart(std::string_view name);

  // Of this module and all below it: its own first, then child by child, in
  // the order of registration. What is registered twice is listed once.
  std::vector<Variable> Parameters() const;
  std::vector<Named<Variable>> NamedParameters() const;
  std::vector<Named<Tensor>> NamedBuffers() const;
  const std::vector<Named<std::shared_ptr<Module>>>& children() const {
    return children_;
  }
  // What forwards draw from.
  std::vector<Generator*> Generators() const;
  // Where each of them is, i64 [3] (seed, draws, replayed draws), by the name
  // of the module that has it and its number there: "layer1.dropout.0".
  StateMap GeneratorState() const;
  // InvalidArgument, with nothing changed, for one that is missing, unexpected
  // or no such state.
  absl::Status LoadGeneratorState(const StateMap& state);
  int64_t NumParameters() const;  // elements, all parameters together

  // For this module and all below it; a new module trains.
  void Train(bool training = true);
  void Eval() { Train(false); }
  bool is_training() const { return training_; }

  // Of parameters and buffers, without gradients.
  int64_t HeldBytes() const;

  // Where its parameters and buffers are; of a module that has none, where it
  // was moved to last, the CPU at first.
  Device device() const;
  // That To or LowerPrecision gave; none where neither was called.
  std::optional<DType> dtype() const { return dtype_; }
  // x as Forward wants it: on device() and, if it is floating, of dtype().
  // Gradients come back to x as it is.
  Variable Placed(const Variable& x) const;
  std::vector<Variable> Placed(const std::vector<Variable>& values) const;

  void ZeroGrad();

  // Parameters and buffers by name, sharing memory with the module.
  StateMap StateDict() const;
  // Copies values in, casting where needed. InvalidArgument lists every key
  // that is missing, unexpected or of another shape, and nothing is written
  // then. `strict` false: missing and unexpected keys are passed over.
  absl::Status LoadStateDict(const StateMap& state, bool strict = true);

  // Moves parameters and buffers; a dtype applies to floating ones, a format
  // to 4-d ones. Gradients of what moves are dropped.
  void To(DType dtype);
  void To(Device device);
  void ToFormat(MemoryFormat format);
  // Becomes, on `device`, what `other` of the same parts is now: parameters are
  // copies through which gradients flow back to other's (itself where it lies
  // there already), and no leaves; buffers are copies, modes are the same.
  // Throws Error where the parts differ.
  void Follow(const Module& other, Device device);
  // As To(dtype), but modules that keep full precision stay as they are: what
  // training in bf16 or f16 wants, whose optimizer steps f32 masters.
  void LowerPrecision(DType dtype);

 protected:
  Module() = default;

  // Whether LowerPrecision passes over this module's own parameters and
  // buffers: those of statistics lose too much by rounding.
  virtual bool KeepsPrecision() const { return false; }

  // The references stay valid as long as the module. A name is used once and
  // holds no '.'; anything else aborts.
  Variable& RegisterParameter(const std::string& name, Tensor value);
  Tensor& RegisterBuffer(const std::string& name, Tensor value);
  // Forwards that draw from others cannot be run again: see RerunScope.
  Generator& RegisterGenerator(uint64_t seed);
  template <typename M>
  M& RegisterModule(const std::string& name, std::shared_ptr<M> child) {
    M& reference = *child;
    AddChild(name, std::move(child));
    return reference;
  }
  template <typename M, typename... Args>
  M& MakeModule(const std::string& name, Args&&... args) {
    return RegisterModule(name,
                          std::make_shared<M>(std::forward<Args>(args)...));
  }

 private:
  template <auto kMethod>
  struct Method;
  template <typename M, auto kMethod>
  static constexpr bool IsForward() {
    if constexpr (requires { &M::Forward; }) {
      return std::is_same_v<Method<kMethod>, Method<&M::Forward>> &&
             std::is_convertible_v<decltype(kMethod),
                                   Variable (M::*)(const Variable&)>;
    } else {
      return false;
    }
  }
  template <typename M, auto kMethod>
  static constexpr bool IsForwardAll() {
    if constexpr (requires { &M::ForwardAll; }) {
      return std::is_same_v<Method<kMethod>, Method<&M::ForwardAll>>;
    } else {
      return false;
    }
  }

  void AddChild(const std::string& name, std::shared_ptr<Module> child);
  void CheckNewName(const std::string& name) const;
  template <typename Visit>
  void ForEach(const std::string& prefix, const Visit& visit) const;
  const Tensor* FirstTensor() const;  // null: it has none
  std::vector<Variable> ForwardWithBackwardHooks(
      const std::vector<Variable>& values);
  std::vector<Named<Generator*>> NamedGenerators() const;
  template <typename Change>
  void ReplaceOwn(const Change& change);

  // Behind pointers, so that references to the values stay valid.
  std::vector<Named<std::unique_ptr<Variable>>> parameters_;
  std::vector<Named<std::unique_ptr<Tensor>>> buffers_;
  std::vector<std::unique_ptr<Generator>> generators_;
  std::vector<Named<std::shared_ptr<Module>>> children_;
  Device device_ = Device::Cpu();  // that it was moved to last
  std::optional<DType> dtype_;
  bool training_ = true;
  autograd::Hooks<ForwardAllPreHook> pre_hooks_;
  autograd::Hooks<ForwardAllHook> forward_hooks_;
  // Shared with the graphs of forwards.
  const std::shared_ptr<autograd::Hooks<BackwardAllHook>> backward_hooks_ =
      std::make_shared<autograd::Hooks<BackwardAllHook>>();
};

}  // namespace baton::nn
