// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/cuda_ipc/ipc_ends.h"

#include "rpc/wire.pb.h"

namespace baton::rpc {

std::string OfferOf(IpcSide& side, const std::string& process) {
  wire::CudaIpcOffer offer;
  EXPECT_TRUE(offer.ParseFromString(*side.kind->Offer()));
  offer.set_process(process);
  return offer.SerializeAsString();
}

}  // namespace baton::rpc
