// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/mixed_device/bag_of_words.h"

#include "autograd/functions/reduce.h"
#include "autograd/functions/transfer.h"

namespace baton::examples {
namespace {

template <typename M>
std::shared_ptr<M> On(Device device, std::shared_ptr<M> module) {
  module->To(device);
  return module;
}

}  // namespace

BagOfWords::BagOfWords(const Options& options)
    : device_(options.linear),
      table_(RegisterModule("table",
                            [&] {
                              Generator generator(options.seed);
                              return On(
                                  options.table,
                                  std::make_shared<nn::Embedding>(
                                      options.words, options.width, generator));
                            }())),
      linear_(RegisterModule("linear", [&] {
        Generator generator(options.seed + 1);
        return On(options.linear,
                  std::make_shared<nn::Linear>(options.width, options.classes,
                                               generator));
      }())) {}

Variable BagOfWords::Forward(const Variable& ids) {
  const Variable mean = autograd::Mean(table_.Forward(ids), {1});
  return linear_.Forward(autograd::To(mean, device_));
}

}  // namespace baton::examples
