// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Writes inputs that the fuzzers begin with: fuzz_seeds tests/fuzz/corpus

#include "tests/fuzz/seeds.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "core/executor.h"
#include "core/status.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/outgoing.h"

namespace baton::fuzz {
namespace {

namespace fs = std::filesystem;

fs::path corpus;

}  // namespace

const rpc::WorkerInfo kAlice{"alice", rpc::Rank{0}, 1, "127.0.0.1:1;unix:/s"};
const rpc::WorkerInfo kBob{"bob", rpc::Rank{1}, 2, "127.0.0.1:2"};

fs::path PathOf(const std::string& target, const std::string& name) {
  fs::create_directories(corpus / target);
  return corpus / target / name;
}

void Save(const std::string& target, const std::string& name,
          const std::string& bytes) {
  std::ofstream(PathOf(target, name), std::ios::binary) << bytes;
}

std::string Chunk(const std::string& bytes) {
  return std::string{static_cast<char>(bytes.size()),
                     static_cast<char>(bytes.size() >> 8)} +
         bytes;
}

std::string Sent(rpc::Message message) {
  rpc::Transport::Sent sent = nullptr;
  const auto outgoing =
      rpc::Outgoing::Make(std::move(message), 1 << 20, sent,
                          std::make_shared<ThreadPool>(1, "seed"));
  BATON_CHECK(outgoing.ok());
  std::string all;
  for (bool done = false; !done;) {
    std::vector<grpc::Slice> slices;
    size_t budget = 20'000;
    done = rpc::Outgoing::Take(*outgoing, budget, slices);
    all += '\1';
    std::string bytes;
    for (const grpc::Slice& slice : slices)
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    all += Chunk(bytes);
  }
  return all;
}

}  // namespace baton::fuzz

int main(int argc, char** argv) {
  using namespace baton::fuzz;
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  corpus = argv[1];
  SaveWireSeeds();
  SaveChannelSeeds();
  SaveAgentSeeds();
  SaveFileSeeds();
  SaveWordSeeds();
  return 0;
}
