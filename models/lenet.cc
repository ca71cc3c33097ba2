// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/lenet.h"

#include "autograd/functions/activation.h"
#include "autograd/functions/pool.h"
#include "autograd/functions/shape.h"
#include "core/status.h"

namespace baton::models {

LeNet::LeNet(Generator& generator, int64_t classes)
    : conv1_(MakeModule<nn::Conv2d>(
          "conv1", 1, 6, nn::Conv2dOptions{.kernel = {5, 5}, .padding = {2, 2}},
          generator)),
      conv2_(MakeModule<nn::Conv2d>(
          "conv2", 6, 16, nn::Conv2dOptions{.kernel = {5, 5}}, generator)),
      fc1_(MakeModule<nn::Linear>("fc1", 16 * 5 * 5, 120, generator)),
      fc2_(MakeModule<nn::Linear>("fc2", 120, 84, generator)),
      fc3_(MakeModule<nn::Linear>("fc3", 84, classes, generator)) {}

Variable LeNet::Forward(const Variable& x) {
  Require(x.tensor().rank() == 4 && x.dim(1) == 1 && x.dim(2) == 28 &&
              x.dim(3) == 28,
          "lenet", "expected images [N, 1, 28, 28], got ",
          x.shape().ToString());
  using namespace autograd;  // NOLINT(google-build-using-namespace)
  Variable y = MaxPool2d(Relu(conv1_(x)), {});  // [N, 6, 14, 14]
  y = MaxPool2d(Relu(conv2_(y)), {});           // [N, 16, 5, 5]
  y = Relu(fc1_(Flatten(y, 1)));
  return fc3_(Relu(fc2_(y)));
}

}  // namespace baton::models
