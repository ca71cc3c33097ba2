// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tests/support/golden/golden_path.h"
#include "tests/support/named.h"
#include "tests/support/test_device.h"

// Values from tools/golden/optimizers.py.
namespace baton::optim {
namespace {

using nlohmann::json;
using NamedDType = testing::Named<DType>;

void Read(const json& from, const char* name, double& option) {
  option = from.value(name, option);
}
void Read(const json& from, const char* name, bool& option) {
  option = from.value(name, option);
}

// Fields() in words, which the values of PyTorch go by.
template <typename Options>
constexpr std::array<const char*, 0> kNames = {};
template <>
constexpr std::array kNames<SgdOptions> = {
    "lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize"};
template <>
constexpr std::array kNames<AdamOptions> = {
    "lr",           "beta1",   "beta2",    "eps",
    "weight_decay", "amsgrad", "maximize", "decoupled_weight_decay"};
template <>
constexpr std::array kNames<AdamWOptions> = {
    "lr", "beta1", "beta2", "eps", "weight_decay", "amsgrad", "maximize"};
template <>
constexpr std::array kNames<AdagradOptions> = {
    "lr",  "lr_decay", "weight_decay", "initial_accumulator_value",
    "eps", "maximize"};
template <>
constexpr std::array kNames<RmsPropOptions> = {
    "lr", "alpha", "eps", "weight_decay", "momentum", "centered", "maximize"};

template <typename Options>
Options OptionsFrom(const json& from) {
  Options options;
  size_t read = 0;
  std::apply(
      [&](auto... field) {
        size_t i = 0;
        (Read(from, kNames<Options>.at(i++), options.*field), ...);
      },
      Options::Fields());
  for (const char* name : kNames<Options>) read += from.count(name);
  EXPECT_EQ(read, from.size()) << from;
  return options;
}

// The parameters, or all but the first in a group of their own.
template <typename O>
std::unique_ptr<Optimizer> Made(const std::vector<Variable>& parameters,
                                const json& a_case) {
  using Options = typename O::Options;
  const auto options = OptionsFrom<Options>(a_case["options"]);
  if (!a_case.contains("second"))
    return std::make_unique<O>(parameters, options);
  const std::vector<Variable> rest(parameters.begin() + 1, parameters.end());
  const typename O::Groups groups = {
      {{parameters[0]}, options},
      {rest, OptionsFrom<Options>(a_case["second"])}};
  return std::make_unique<O>(groups);
}

std::unique_ptr<Optimizer> Make(const std::vector<Variable>& parameters,
                                const json& a_case) {
  const std::string kind = a_case["kind"];
  if (kind == "adam") return Made<Adam>(parameters, a_case);
  if (kind == "adamw") return Made<AdamW>(parameters, a_case);
  if (kind == "adagrad") return Made<Adagrad>(parameters, a_case);
  if (kind == "rmsprop") return Made<RmsProp>(parameters, a_case);
  EXPECT_EQ(kind, "sgd");
  return Made<Sgd>(parameters, a_case);
}

class Golden : public ::testing::TestWithParam<NamedDType> {
 protected:
  void SetUp() override {
    std::ifstream file(testing::GoldenPath("optimizers.json"));
    ASSERT_TRUE(file.good());
    golden_ = json::parse(file);
  }

  std::vector<Tensor> TensorsOf(const json& lists) const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < lists.size(); ++i) {
      const auto dims = golden_["shapes"][i].get<std::vector<int64_t>>();
      tensors.push_back(test::Put(lists[i].get<std::vector<double>>(),
                                  Shape(Dims(dims.begin(), dims.end())))
                            .To(GetParam().value));
    }
    return tensors;
  }

  void Run(const json& a_case) const {
    std::vector<Variable> parameters;
    for (const Tensor& start : TensorsOf(golden_["starts"]))
      parameters.emplace_back(start.Clone(), true);
    const auto optimizer = Make(parameters, a_case);
    optimizer->set_clip({.norm = a_case.value("clip_norm", Clip::kNone),
                         .value = a_case.value("clip_value", Clip::kNone)});
    const double tolerance = GetParam().value == DType::kF64 ? 1e-12 : 2e-6;
    for (size_t step = 0; step < golden_["grads"].size(); ++step) {
      std::vector<Tensor> grads = TensorsOf(golden_["grads"][step]);
      if (step == 1) grads[1] = Tensor();  // absent there, too
      for (size_t i = 0; i < grads.size(); ++i)
        parameters[i].set_grad(grads[i]);
      optimizer->Step();
      const std::vector<Tensor> expected = TensorsOf(a_case["values"][step]);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(ops::AllClose(parameters[i].tensor(), expected[i],
                                  tolerance, tolerance))
            << a_case["kind"] << a_case["options"] << " step " << step
            << ": parameter " << i << " " << parameters[i].tensor().ToString()
            << ", expected " << expected[i].ToString();
      }
    }
  }

  json golden_;
};

TEST_P(Golden, StepsEqualPyTorchs) {
  ASSERT_GE(golden_["cases"].size(), 30u);
  for (const json& a_case : golden_["cases"]) Run(a_case);
}

TEST(GoldenSchedules, EqualPyTorchs) {
  std::ifstream file(testing::GoldenPath("optimizers.json"));
  const json golden = json::parse(file);
  const std::map<std::string, Schedule> schedules = {
      {"step", StepLr({.every = 4, .factor = 0.3})},
      {"linear", LinearLr({})},
      {"linear_down", LinearLr({.start = 1, .end = 0.1, .total = 7})},
      {"polynomial", PolynomialLr({.total = 12, .power = 2.5})},
      {"cosine", CosineLr({.total = 19, .floor = 0.01})},
      {"one_cycle", OneCycleLr({.total = 20})},
      {"one_cycle_linear", OneCycleLr({.total = 20,
                                       .rise = 0.25,
                                       .cosine = false,
                                       .div_factor = 10,
                                       .final_div_factor = 50})},
      {"one_cycle_three", OneCycleLr({.total = 20, .three_phase = true})},
      {"sequential", SequentialLr({LinearLr({.start = 0.25, .total = 3}),
                                   StepLr({.every = 2, .factor = 0.5}),
                                   PolynomialLr({.total = 6})},
                                  {4, 11})},
      {"chained", ChainedLr({StepLr({.every = 6, .factor = 0.5}),
                             LinearLr({.start = 0.2, .total = 4})})}};
  ASSERT_EQ(golden["schedules"].size(), schedules.size());
  for (const auto& [name, expected] : golden["schedules"].items()) {
    Sgd sgd({Variable(Tensor::Zeros({1}), true)}, {.lr = 0.5});
    sgd.set_schedule(schedules.at(name));
    for (size_t step = 0; step < expected.size(); ++step) {
      EXPECT_NEAR(sgd.lr(), expected[step].get<double>(), 1e-12)
          << name << " step " << step;
      sgd.Step();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Golden,
                         ::testing::Values(NamedDType{"f32", DType::kF32},
                                           NamedDType{"f64", DType::kF64}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace baton::optim
