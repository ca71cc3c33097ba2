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
  Nanos longest{0};  // that a write or a flush takes
  // That it takes up to `slowest`.
  double slow = 0;
  Nanos slowest{0};
};

// The disks of the simulated machines: posix.cc tells it of all calls that
// write. Files are real ones, but what was not flushed is lost with the power,
// and what is written takes time. The processes of a machine end with it. Used
// by the thread that runs.
class Disk {
 public:
  static Disk& Get();

  void Begin(const DiskOptions& options);
  // A process wrote to the file, after it has waited; returns how many bytes of
  // these may be written at once.
  size_t Write(int file, size_t bytes);
  void Flush(int file_or_folder);
  void Rename(const std::string& from, const std::string& to);
  // Loses what processes of this group have not flushed.
  void LosePower(int group);

 private:
  // A file whose bytes, or whose name, have not reached the disk.
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
