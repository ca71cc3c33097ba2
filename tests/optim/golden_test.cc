// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/indexing.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "optim/any.h"
#include "optim/sgd.h"
#include "tests/support/golden/golden_path.h"
#include "tests/support/named.h"
#include "tests/support/test_device.h"

// Values from tools/golden/optimizers.py.
namespace baton::optim {
namespace {

using nlohmann::json;
using NamedDType = testing::Named<DType>;

AnyOptions OptionsFrom(const json& a_case, const char* which) {
  AnyOptions options = AnyOptions::Parse(a_case["kind"]).value();
  for (const auto& [name, value] : a_case[which].items()) {
    const absl::Status set = options.Set(
        name, value.is_boolean() ? value.get<bool>() : value.get<double>());
    EXPECT_TRUE(set.ok()) << set;
  }
  return options;
}

// The parameters, or all but the first in a group of their own.
Any Make(const std::vector<Variable>& parameters, const json& a_case) {
  const AnyOptions options = OptionsFrom(a_case, "options");
  if (!a_case.contains("second")) return Any(parameters, options);
  const std::vector<Variable> rest(parameters.begin() + 1, parameters.end());
  return Any(Any::Groups{{{parameters[0]}, options},
                         {rest, OptionsFrom(a_case, "second")}});
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

  double Tolerance() const {
    return GetParam().value == DType::kF64 ? 1e-12 : 2e-6;
  }

  Tensor Of(const json& values, const Shape& shape) const {
    return test::Put(values.get<std::vector<double>>(), shape)
        .To(GetParam().value);
  }

  // As many steps by the rows that an embedding looks up, some several times.
  void RunRows(const json& rows, const json& a_case) const {
    const Shape shape({rows["shape"][0], rows["shape"][1]});
    const Variable table(Of(rows["start"], shape).Clone(), true);
    Any optimizer({table}, OptionsFrom(a_case, "options"));
    optimizer.set_clip({.norm = a_case.value("clip_norm", Clip::kNone)});
    for (size_t step = 0; step < rows["indices"].size(); ++step) {
      const auto index = rows["indices"][step].get<std::vector<int64_t>>();
      const Tensor weights = Of(rows["weights"][step],
                                {static_cast<int64_t>(index.size()), shape[1]});
      optimizer.ZeroGrad();
      autograd::Sum(autograd::Embedding(table, test::Put(Tensor::From(index)),
                                        {.sparse = true}) *
                    Variable(weights))
          .Backward();
      ASSERT_TRUE(table.gradient().is_rows());
      optimizer.Step();
      EXPECT_TRUE(ops::AllClose(table.tensor(),
                                Of(a_case["values"][step], shape), Tolerance(),
                                Tolerance()))
          << a_case["kind"] << a_case["options"] << " step " << step << ": "
          << table.tensor().ToString();
    }
  }

  void Run(const json& a_case) const {
    std::vector<Variable> parameters;
    for (const Tensor& start : TensorsOf(golden_["starts"]))
      parameters.emplace_back(start.Clone(), true);
    Any optimizer = Make(parameters, a_case);
    optimizer.set_clip({.norm = a_case.value("clip_norm", Clip::kNone),
                        .value = a_case.value("clip_value", Clip::kNone)});
    for (size_t step = 0; step < golden_["grads"].size(); ++step) {
      std::vector<Tensor> grads = TensorsOf(golden_["grads"][step]);
      if (step == 1) grads[1] = Tensor();  // absent there, too
      for (size_t i = 0; i < grads.size(); ++i)
        parameters[i].set_grad(grads[i]);
      optimizer.Step();
      const std::vector<Tensor> expected = TensorsOf(a_case["values"][step]);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(ops::AllClose(parameters[i].tensor(), expected[i],
                                  Tolerance(), Tolerance()))
            << a_case["kind"] << a_case["options"] << " step " << step
            << ": parameter " << i << " " << parameters[i].tensor().ToString()
            << ", expected " << expected[i].ToString();
      }
    }
  }

  json golden_;
};

TEST_P(Golden, StepsEqualPyTorchs) {
  ASSERT_GE(golden_["cases"].size(), 39u);
  for (const json& a_case : golden_["cases"]) Run(a_case);
}

TEST_P(Golden, StepsByRowsEqualPyTorchs) {
  const json& rows = golden_["rows"];
  ASSERT_GE(rows["cases"].size(), 8u);
  for (const json& a_case : rows["cases"]) RunRows(rows, a_case);
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
