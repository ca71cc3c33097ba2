// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// checkpoint_saver FOLDER FIRST KEEP: saves steps FIRST, FIRST + 1, ... until
// it is killed, each third one twice, and says which are on the disk. A second
// thread writes one of the two shards. All numbers of a checkpoint are its
// step.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/checkpoint_writer.h"
#include "core/executor.h"

namespace baton {
namespace {

NamedTensors NumbersOf(const std::string& part, int64_t step) {
  NamedTensors tensors;
  for (const int64_t size : {1, 1000, 100'000}) {
    tensors[part + "." + std::to_string(size)] =
        Tensor::Full({size}, static_cast<double>(step));
  }
  return tensors;
}

absl::Status SaveOnAndOn(const std::string& folder, int64_t step, int keep) {
  ThreadPool other(1, "other");
  CheckpointWriter writer({.folder = folder, .keep = keep});
  for (int repeat = 0;; ++repeat) {
    const auto others = [&](const CheckpointDraft& draft) {
      const Promise<std::vector<Shard>> promise;
      other.Post([promise, draft] {
        auto shard = WriteShard(draft, 1, NumbersOf("far", draft.step));
        if (shard.ok()) promise.Set(std::vector<Shard>{*std::move(shard)});
      });
      return promise.future();
    };
    absl::Status status = writer.Save(step, NumbersOf("near", step), others);
    if (status.ok()) status = writer.Wait();
    if (!status.ok()) return status;
    std::printf("%lld\n", static_cast<long long>(step));
    std::fflush(stdout);
    if (step % 3 != 0 || repeat % 2 == 1) ++step;
  }
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const absl::Status status =
      baton::SaveOnAndOn(argv[1], std::atoll(argv[2]), std::atoi(argv[3]));
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
