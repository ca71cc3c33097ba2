// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/fuzz/targets.h"

namespace baton::fuzz {

const std::vector<Target>& Targets() {
  static const std::vector<Target> targets = {
      {"frames", Frames},
      {"hello", Hello},
      {"headers", Headers},
      {"arguments", Arguments},
      {"control", Control},
      {"rendezvous", Rendezvous},
      {"call_proof", CallProof},
      {"shared_memory", SharedMemory},
      {"message_ring", MessageRing},
      {"tcp", Tcp},
      {"safetensors", SafeTensorsFile},
      {"manifest", CheckpointManifest},
      {"idx", IdxFile},
      {"archive", ArchiveFile},
      {"cifar", CifarFile},
      {"jpeg", JpegFile},
      {"words", Words},
      {"certificates", Certificates},
  };
  return targets;
}

}  // namespace baton::fuzz
