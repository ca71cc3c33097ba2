// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/support/golden/golden_path.h"
#include "tests/support/named.h"
#include "tests/support/test_device.h"

// Values from tools/golden/optimizers.py.
namespace baton::optim {
namespace {

using nlohmann::json;
using NamedDType = testing::Named<DType>;

template <typename Options>
Options AdamLike(const json& from) {
  Options options;
  options.lr = from.at("lr");
  options.beta1 = from.value("beta1", options.beta1);
  options.beta2 = from.value("beta2", options.beta2);
  options.eps = from.value("eps", options.eps);
  options.weight_decay = from.value("weight_decay", options.weight_decay);
  options.amsgrad = from.value("amsgrad", false);
  options.maximize = from.value("maximize", false);
  return options;
}

std::unique_ptr<Optimizer> Make(const std::vector<Variable>& parameters,
                                const std::string& kind, const json& from) {
  if (kind == "adam")
    return std::make_unique<Adam>(parameters, AdamLike<AdamOptions>(from));
  if (kind == "adamw")
    return std::make_unique<AdamW>(parameters, AdamLike<AdamWOptions>(from));
  return std::make_unique<Sgd>(
      parameters, SgdOptions{.lr = from.at("lr"),
                             .momentum = from.value("momentum", 0.0),
                             .dampening = from.value("dampening", 0.0),
                             .weight_decay = from.value("weight_decay", 0.0),
                             .nesterov = from.value("nesterov", false),
                             .maximize = from.value("maximize", false)});
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
    const auto optimizer = Make(parameters, a_case["kind"], a_case["options"]);
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
  ASSERT_GE(golden_["cases"].size(), 11u);
  for (const json& a_case : golden_["cases"]) Run(a_case);
}

INSTANTIATE_TEST_SUITE_P(DTypes, Golden,
                         ::testing::Values(NamedDType{"f32", DType::kF32},
                                           NamedDType{"f64", DType::kF64}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace baton::optim
