// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "rpc/transport.h"

namespace baton::rpc {

class InProcessHub;

// A network of workers that live in one process: each transport made here
// reaches all others by the address it reports.
//
//   InProcessNetwork network;
//   auto alice = network.NewTransport();
//   auto bob = network.NewTransport();
//
// Tensors arrive as copies, made inside Send, unless the sender gave up the
// only handle to one. The network may be destroyed before its transports.
// Thread-safe.
class InProcessNetwork {
 public:
  InProcessNetwork();
  ~InProcessNetwork();
  InProcessNetwork(const InProcessNetwork&) = delete;
  InProcessNetwork& operator=(const InProcessNetwork&) = delete;

  std::unique_ptr<Transport> NewTransport();

 private:
  std::shared_ptr<InProcessHub> hub_;
};

}  // namespace baton::rpc
