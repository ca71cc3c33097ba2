// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/rpc/transport_worker.h"

namespace baton::rpc {

// What every transport must do. A kind of transport runs all of it by
//
//   INSTANTIATE_TEST_SUITE_P(Mine, TransportConformance,
//                            ::testing::Values(TransportKind{.name =
//                            "Tls"...}),
//                            ::testing::PrintToStringParamName());
struct TransportKind {
  // Its tests': letters and digits.
  std::string name;
  // Begins a network and gives what makes transports of it.
  std::function<std::function<std::unique_ptr<Transport>()>()> network;
  // Large tensors travel in chunks, between which there are small messages.
  bool in_chunks = false;
  // Large tensors travel by this channel, once it is open. Empty for none.
  std::string channel = {};
  // So do small messages, by rings, once there are any.
  bool rings = false;
};
void PrintTo(const TransportKind& kind, std::ostream* out);

// Bytes 0, 1, 2, ... from `first` on, modulo a prime.
Tensor Pattern(int64_t bytes, int first = 0);
// Shape, dtype and elements are the same.
bool SameBytes(const Tensor& a, const Tensor& b);

class TransportConformance : public ::testing::TestWithParam<TransportKind> {
 protected:
  // Not started, knowing nobody.
  std::unique_ptr<TestWorker> NewWorker(const std::string& name, int rank);
  // Two started workers that know each other.
  void MakePair();
  // They are connected and have all channels that they will have.
  void AwaitChannel();

  std::function<std::unique_ptr<Transport>()> make_;
  std::unique_ptr<TestWorker> alice_, bob_;
};

}  // namespace baton::rpc
