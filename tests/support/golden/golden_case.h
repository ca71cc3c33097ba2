// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/safetensors.h"
#include "models/nn/module.h"
#include "tests/support/golden/golden_path.h"
#include "tests/support/test_device.h"

namespace baton::testing {

inline double LargestDistance(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.ToVector<double>(), y = b.ToVector<double>();
  double largest = x.size() == y.size() ? 0 : 1e300;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    const double distance = std::abs(x[i] - y[i]);
    largest = std::isnan(distance) ? 1e300 : std::max(largest, distance);
  }
  return largest;
}

// Expects equal shapes, and values that are both NaN, equal, or within
// tolerance * (1 + |wanted|) of each other.
inline void ExpectSame(const Tensor& got, const Tensor& wanted,
                       double tolerance, const std::string& what) {
  ASSERT_TRUE(got.defined() && wanted.defined()) << what;
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const std::vector<double> x = got.ToVector<double>();
  const std::vector<double> y = wanted.ToVector<double>();
  for (size_t i = 0; i < x.size(); ++i) {
    const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])) ||
                      std::abs(x[i] - y[i]) <= tolerance * (1 + std::abs(y[i]));
    EXPECT_TRUE(same) << what << " at " << i << ": " << x[i] << ", wanted "
                      << y[i];
  }
}

// The tensors named "NAME...." in a file that tools/golden made, on `device`.
class GoldenCase {
 public:
  GoldenCase(const std::string& file, const std::string& name,
             Device device = test::TestDevice())
      : prefix_(name + "."), device_(device) {
    auto read = ReadSafeTensors(GoldenPath(file));
    EXPECT_TRUE(read.ok()) << read.status();
    if (read.ok()) all_ = read->tensors;
  }
  // Returns the tensor of this name; undefined if there is none.
  Tensor operator[](const std::string& name) const {
    const auto it = all_.find(prefix_ + name);
    return it == all_.end() ? Tensor() : it->second.To(device_);
  }
  Variable Leaf(const std::string& name) const {
    const Tensor value = (*this)[name];
    return value.defined() ? Variable(value, true) : Variable();
  }
  nn::StateMap State() const {
    const std::string start = prefix_ + "state.";
    nn::StateMap state;
    for (const auto& [name, value] : all_) {
      if (name.rfind(start, 0) == 0) state[name.substr(start.size())] = value;
    }
    return state;
  }
  // Puts the case's parameters into `module`, in f64, on the device.
  void Load(nn::Module& module) const {
    module.To(DType::kF64);
    module.To(device_);
    const absl::Status loaded = module.LoadStateDict(State());
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
  void ExpectGradients(const nn::Module& module, double tolerance) const {
    for (const auto& [key, value] : module.NamedParameters()) {
      ASSERT_TRUE(value.grad().defined()) << prefix_ << key;
      EXPECT_LT(LargestDistance(value.grad(), (*this)["grad." + key]),
                tolerance)
          << prefix_ << key;
    }
  }

 private:
  const std::string prefix_;
  const Device device_;
  std::map<std::string, Tensor> all_;
};

}  // namespace baton::testing
