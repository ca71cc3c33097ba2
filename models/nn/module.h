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

// A part of a model. It has parameters, which are trained, buffers, which are
// not, such as running statistics, and child modules, each with a name, and
// random generators that its forward uses. A constructor registers them and
// keeps the references that registering returns:
//
//   explicit Scale(int64_t n)
//       : factor_(RegisterParameter("factor", Tensor::Ones({n}))) {}
//
// A module owns its parameters and buffers, and shares its children. Loading a
// state writes into the existing tensors. To, ToFormat and LowerPrecision put
// other tensors into the same Variables: optimizers and older handles see the
// new tensors; nn::GraphedStep and nn::Graphed record anew, and a Graph that
// was recorded directly refuses to Replay once the old tensors are gone.
// Thread-compatible; Forward counts as a write while training.
class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Computes the module's output for x; throws Error if x does not fit. A
  // module with several inputs or outputs overrides ForwardAll instead.
  virtual Variable Forward(const Variable& x);
  // Computes all outputs for all inputs. The default calls Forward for a single
  // value, and throws Error for any other number.
  virtual std::vector<Variable> ForwardAll(const std::vector<Variable>& values);

  // Runs ForwardAll and the hooks, in the order in which they were added; used
  // by pipelines. Throws what ForwardAll and hooks throw; the text of a hook's
  // error begins with "hook NAME: ".
  std::vector<Variable> operator()(const std::vector<Variable>& values);
  // The same for one input and one output; used by modules and by calls from
  // other workers.
  Variable operator()(const Variable& x);

  // Hooks of forwards. A hook may return another x, or another y; an undefined
  // result leaves it as it is. Forwards that are run again (RerunScope) call
  // their hooks again. With several inputs or outputs these hooks throw Error.
  using ForwardPreHook = std::function<Variable(Module&, const Variable& x)>;
  using ForwardHook =
      std::function<Variable(Module&, const Variable& x, const Variable& y)>;
  // Called in each backward that computes a gradient of x, with that gradient
  // and the incoming gradient of y. The hook may return another gradient of x;
  // an undefined result leaves it. If x does not require grad, its gradient is
  // undefined, and the result is ignored.
  using BackwardHook =
      std::function<Tensor(const Tensor& of_x, const Tensor& of_y)>;
  // The same for modules with any number of inputs and outputs. These hooks
  // return a list of the same length, or an empty one to leave the values as
  // they are.
  using ForwardAllPreHook = std::function<std::vector<Variable>(
      Module&, const std::vector<Variable>& values)>;
  using ForwardAllHook = std::function<std::vector<Variable>(
      Module&, const std::vector<Variable>& values,
      const std::vector<Variable>& outputs)>;
  // Called in each backward that computes a gradient of some input. Gradients
  // of inputs and outputs that get none are undefined; results for these inputs
  // are ignored, and undefined results leave a gradient as it is.
  using BackwardAllHook =
      std::function<std::vector<Tensor>(const std::vector<Tensor>& of_values,
                                        const std::vector<Tensor>& of_outputs)>;
  // Returns the method that runs if another worker calls kMethod of an M
  // (rpc::Registry). Forward and ForwardAll are replaced by the operators that
  // also run the hooks.
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
  // Returns true if this module or one below it has hooks.
  bool HasHooks() const;
  // Returns the module of that name ("layer1.0") below this one; itself if the
  // name is empty, null if there is none.
  Module* FindPart(std::string_view name);

  // These list the parameters and buffers of this module and all below it: its
  // own first, then those of each child, in the order of registration. One that
  // is registered twice is listed once.
  std::vector<Variable> Parameters() const;
  std::vector<Named<Variable>> NamedParameters() const;
  std::vector<Named<Tensor>> NamedBuffers() const;
  const std::vector<Named<std::shared_ptr<Module>>>& children() const {
    return children_;
  }
  // Returns the generators that forwards draw from, of this module and all
  // below it.
  std::vector<Generator*> Generators() const;
  // Returns each generator's state, i64 [3] (seed, draws, replayed draws), by
  // the name of its module and its number there: "layer1.dropout.0".
  StateMap GeneratorState() const;
  // InvalidArgument, with nothing changed, if a state is missing, unexpected or
  // malformed.
  absl::Status LoadGeneratorState(const StateMap& state);
  int64_t NumParameters() const;  // elements, all parameters together

  // Sets the mode of this module and all below it. A new module is in training
  // mode.
  void Train(bool training = true);
  void Eval() { Train(false); }
  bool is_training() const { return training_; }

  // Returns the bytes of all parameters and buffers, without gradients.
  int64_t HeldBytes() const;

  // Returns the device of the parameters and buffers. A module without any
  // returns the device that it was last moved to, at first the CPU.
  Device device() const;
  // Returns the dtype set by To or LowerPrecision; none if neither was called.
  std::optional<DType> dtype() const { return dtype_; }
  // Returns x as Forward needs it: on device() and, if it is floating, of
  // dtype(). The gradient of x has x's own device and dtype.
  Variable Placed(const Variable& x) const;
  std::vector<Variable> Placed(const std::vector<Variable>& values) const;

  void ZeroGrad();

  // Returns the parameters and buffers by name; they share memory with the
  // module.
  StateMap StateDict() const;
  // Copies values in, casting where needed. InvalidArgument lists every key
  // that is missing, unexpected or of another shape; nothing is written then.
  // If `strict` is false, missing and unexpected keys are ignored.
  absl::Status LoadStateDict(const StateMap& state, bool strict = true);

  // Moves parameters and buffers; a dtype applies to floating ones, a format to
  // 4-d ones. Gradients of parameters that change are dropped.
  void To(DType dtype);
  void To(Device device);
  void ToFormat(MemoryFormat format);
  // Makes this module a copy, on `device`, of `other`, which must have the same
  // structure. Parameters become copies that are not leaves, through which
  // gradients flow back to other's parameters (or those themselves if they are
  // on `device` already). Buffers and modes are copied. Throws Error if the
  // structures differ.
  void Follow(const Module& other, Device device);
  // Like To(dtype), but modules that keep full precision are not changed. Use
  // it to train in bf16 or f16, where the optimizer keeps f32 master weights.
  void LowerPrecision(DType dtype);

 protected:
  Module() = default;

  // Returns true if LowerPrecision must not change this module's own parameters
  // and buffers. Layers with statistics would lose too much by rounding.
  virtual bool KeepsPrecision() const { return false; }

  // The references stay valid as long as the module. A name must be unused and
  // must not contain '.'; otherwise the process aborts.
  Variable& RegisterParameter(const std::string& name, Tensor value);
  Tensor& RegisterBuffer(const std::string& name, Tensor value);
  // Forwards must draw from registered generators only, or they cannot be run
  // again: see RerunScope.
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
  const Tensor* FirstTensor() const;  // null if it has none
  std::vector<Variable> ForwardWithBackwardHooks(
      const std::vector<Variable>& values);
  std::vector<Named<Generator*>> NamedGenerators() const;
  template <typename Change>
  void ReplaceOwn(const Change& change);

  // The values are behind pointers, so that references to them stay valid.
  std::vector<Named<std::unique_ptr<Variable>>> parameters_;
  std::vector<Named<std::unique_ptr<Tensor>>> buffers_;
  std::vector<std::unique_ptr<Generator>> generators_;
  std::vector<Named<std::shared_ptr<Module>>> children_;
  Device device_ = Device::Cpu();  // that it was last moved to
  std::optional<DType> dtype_;
  bool training_ = true;
  autograd::Hooks<ForwardAllPreHook> pre_hooks_;
  autograd::Hooks<ForwardAllHook> forward_hooks_;
  // Shared with the graphs of forwards.
  const std::shared_ptr<autograd::Hooks<BackwardAllHook>> backward_hooks_ =
      std::make_shared<autograd::Hooks<BackwardAllHook>>();
};

}  // namespace baton::nn
