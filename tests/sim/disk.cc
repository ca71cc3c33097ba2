// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/disk.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/sim/real.h"

namespace baton::sim {
namespace {

std::string PathOf(int file) {
  char path[PATH_MAX];
  const std::string link = absl::StrCat("/proc/self/fd/", file);
  const ssize_t length = readlink(link.c_str(), path, sizeof(path));
  return length < 0 ? "" : std::string(path, static_cast<size_t>(length));
}

}  // namespace

Disk& Disk::Get() {
  static Disk* const disk = new Disk;  // outlives all threads
  return *disk;
}

void Disk::Begin(const DiskOptions& options) {
  options_ = options;
  random_ = Rng(options.seed);
}

void Disk::Wait() {
  Nanos length(random_.Between(0, options_.longest.count()));
  if (random_.Chance(options_.slow))
    length += Nanos(random_.Between(0, options_.slowest.count()));
  World::Get().Sleep(length);
}

size_t Disk::Write(int file, size_t bytes) {
  Wait();
  cached_[PathOf(file)] = {.group = World::Get().group(), .bytes = true};
  return random_.Chance(0.5) ? bytes : (bytes + 1) / 2;
}

void Disk::Flush(int file_or_folder) {
  const std::string path = PathOf(file_or_folder);
  Wait();
  std::erase_if(cached_, [&](const auto& entry) {
    const auto& [name, cached] = entry;
    return cached.bytes ? name == path
                        : std::filesystem::path(name).parent_path() == path;
  });
}

void Disk::Rename(const std::string& from, const std::string& to) {
  const auto found = cached_.find(from);
  const bool bytes = found != cached_.end() && found->second.bytes;
  if (found != cached_.end()) cached_.erase(found);
  cached_[to] = {.group = World::Get().group(), .bytes = bytes, .before = from};
}

// After a power loss a renamed file has either name, and unflushed bytes are
// gone.
void Disk::LosePower(int group) {
  for (auto it = cached_.begin(); it != cached_.end();) {
    const auto& [path, cached] = *it;
    if (cached.group != group) {
      ++it;
      continue;
    }
    if (cached.bytes && truncate(path.c_str(), 0) != 0) perror("truncate");
    if (!cached.before.empty() && random_.Chance(0.5))
      real::Rename(path.c_str(), cached.before.c_str());
    it = cached_.erase(it);
  }
}

}  // namespace baton::sim
