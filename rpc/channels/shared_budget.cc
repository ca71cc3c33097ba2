// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/shared_budget.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace baton::rpc {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kPageBytes = 4096;

// Returns the number in a file; nothing for "max" or if there is no such file.
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number)) return std::nullopt;
  return number;
}

// Returns the number after `name` in a file of names and numbers.
std::optional<uint64_t> NumberOf(const std::string& path,
                                 const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" :\t"), absl::SkipEmpty());
    uint64_t number = 0;
    if (words.size() >= 2 && words[0] == name &&
        absl::SimpleAtoi(words[1], &number)) {
      return number;
    }
  }
  return std::nullopt;
}

// The files that the two versions of cgroups name differently.
struct CgroupFiles {
  const char* limit;
  const char* used;
  const char* reclaimable;  // in memory.stat: files not used lately
};
constexpr CgroupFiles kVersion2 = {"/memory.max", "/memory.current",
                                   "inactive_file"};
constexpr CgroupFiles kVersion1 = {
    "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};

// Applies the limits of a group and its ancestors. In a container the path may
// be one of the host's, while the mount begins with the container's own group.
void Lower(const std::string& mount, std::string group,
           const CgroupFiles& files, MemoryRoom& room) {
  for (;;) {
    const std::string folder = absl::StrCat(mount, group);
    if (const auto limit = NumberIn(folder + files.limit)) {
      const uint64_t used = NumberIn(folder + files.used).value_or(0);
      const uint64_t reclaimable =
          NumberOf(folder + "/memory.stat", files.reclaimable).value_or(0);
      const uint64_t kept = used - std::min(used, reclaimable);
      room.limit = std::min(room.limit, *limit);
      room.free = std::min(room.free, *limit - std::min(*limit, kept));
    }
    if (group.empty()) return;
    group.resize(group.rfind('/'));
  }
}

}  // namespace

MemoryRoom FindMemoryRoom(const std::string& root) {
  const std::string memory = root + "/proc/meminfo";
  MemoryRoom room;
  room.limit = 1024 * NumberOf(memory, "MemTotal").value_or(0);
  room.free = 1024 * NumberOf(memory, "MemAvailable").value_or(0);
  const std::string mount = root + "/sys/fs/cgroup";
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    // The line is like "0::/group" or "4:cpu,memory:/group".
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2][0] != '/') continue;
    const std::string group = parts[2] == "/" ? "" : parts[2];
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      Lower(mount, group, kVersion2, room);
    } else if (absl::c_linear_search(controllers, "memory")) {
      Lower(mount + "/memory", group, kVersion1, room);
    }
  }
  return room;
}

const std::shared_ptr<SharedBudget>& SharedBudget::OfMade() {
  static const auto* const kBudget = new std::shared_ptr<SharedBudget>(
      std::make_shared<SharedBudget>([] { return FindMemoryRoom(); }));
  return *kBudget;
}

const std::shared_ptr<SharedBudget>& SharedBudget::OfMapped() {
  static const auto* const kBudget = new std::shared_ptr<SharedBudget>(
      std::make_shared<SharedBudget>([]() -> MemoryRoom {
        return {FindMemoryRoom().limit, kUnlimited};
      }));
  return *kBudget;
}

std::unique_ptr<SharedBudget::Part> SharedBudget::Take(uint64_t least,
                                                       uint64_t most,
                                                       uint64_t limit) {
  const MemoryRoom room = room_();
  limit = std::min(limit, room.limit / 8);
  std::vector<Ask> asked;
  {
    MutexLock lock(mutex_);
    const uint64_t left =
        std::min(limit - std::min(limit, taken_), room.free / 2) / kPageBytes *
        kPageBytes;
    if (least <= left) {
      const uint64_t bytes = std::min(most, left);
      taken_ += bytes;
      return std::unique_ptr<Part>(new Part(shared_from_this(), bytes));
    }
    for (const auto& [member, ask] : members_) asked.push_back(ask);
  }
  for (const Ask& ask : asked) ask();
  return nullptr;
}

SharedBudget::Part::~Part() {
  MutexLock lock(budget_->mutex_);
  budget_->taken_ -= bytes_;
}

uint64_t SharedBudget::taken() const {
  MutexLock lock(mutex_);
  return taken_;
}

uint64_t SharedBudget::Join(Ask ask) {
  MutexLock lock(mutex_);
  members_[next_member_] = std::move(ask);
  return next_member_++;
}

void SharedBudget::Leave(uint64_t member) {
  MutexLock lock(mutex_);
  members_.erase(member);
}

}  // namespace baton::rpc
