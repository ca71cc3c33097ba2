// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/cuda_ipc/two_ends.h"

#include "rpc/wire.pb.h"

namespace baton::rpc {

std::string OfferOf(End& end, const std::string& process) {
  wire::CudaIpcOffer offer;
  EXPECT_TRUE(offer.ParseFromString(*end.kind->Offer()));
  offer.set_process(process);
  return offer.SerializeAsString();
}

}  // namespace baton::rpc
