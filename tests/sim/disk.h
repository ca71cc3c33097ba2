// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "tests/sim/rng.h"
#include "tests/sim/world.h"

namespace baton::sim {

struct DiskOptions {
  uint64_t seed = 0;
  Nanos longest{0};  // of a write or a flush
  // The probability that one takes up to `slowest`.
  double slow = 0;
  Nanos slowest{0};
};

// The disks of the simulated machines; posix.cc tells it of all calls that
// write. Files are real, but writes take time, and a power loss destroys what
// was not flushed. A machine's processes end with its power. Used by the
// running thread.
class Disk {
 public:
  static Disk& Get();

  void Begin(const DiskOptions& options);
  // A process writes to the file: waits as long as that takes, and returns how
  // many of the bytes to write at once.
  size_t Write(int file, size_t bytes);
  void Flush(int file_or_folder);
  void Rename(const std::string& from, const std::string& to);
  // Destroys what the processes of this group have not flushed.
  void LosePower(int group);

 private:
  // A file whose bytes, or whose new name, are not on the disk yet.
  struct Cached {
    int group = 0;
    bool bytes = false;
    std::string before{};  // its name on the disk; empty: the same
  };
  void Wait();

  DiskOptions options_;
  Rng random_;
  std::map<std::string, Cached> cached_;  // by path
};

}  // namespace baton::sim
