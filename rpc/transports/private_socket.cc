// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/private_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace baton::rpc {
namespace {

constexpr char kPrefix[] = "baton-";
constexpr size_t kNameSize = sizeof(kPrefix) - 1 + 6;
// sun_path holds 108 bytes.
constexpr size_t kLongestBase = 108 - kNameSize - 4;

// The kernel releases the lock when the process ends in any way. Fails if
// another process holds the lock, or took and removed it before we had it.
int Lock(const std::string& directory, int flags) {
  const int fd = open((directory + "/lock").c_str(),
                      O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  struct stat info;
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &info) == 0 &&
      info.st_nlink > 0) {
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

void Remove(const std::string& directory, int lock) {
  unlink((directory + "/s").c_str());
  unlink((directory + "/f").c_str());
  unlink((directory + "/worker").c_str());
  unlink((directory + "/lock").c_str());
  rmdir(directory.c_str());
  close(lock);
}

bool IsOfThisUser(const std::string& directory) {
  struct stat info;
  return lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == geteuid();
}

// Calls `see` with each directory of this user that Make has made in any
// process.
void ForEachDirectory(const std::string& base,
                      const std::function<void(const std::string&)>& see) {
  DIR* listing = opendir(base.c_str());
  if (listing == nullptr) return;
  while (const dirent* entry = readdir(listing)) {
    const std::string name = entry->d_name;
    const std::string directory = absl::StrCat(base, "/", name);
    if (name.size() == kNameSize && absl::StartsWith(name, kPrefix) &&
        IsOfThisUser(directory)) {
      see(directory);
    }
  }
  closedir(listing);
}

// A directory without a lock is still being made.
void RemoveAbandoned(const std::string& base) {
  ForEachDirectory(base, [](const std::string& directory) {
    const int lock = Lock(directory, 0);
    if (lock >= 0) Remove(directory, lock);
  });
}

}  // namespace

std::string PrivateSocket::Base() {
  const char* base = std::getenv("TMPDIR");
  return base != nullptr && *base != '\0' && std::strlen(base) < kLongestBase
             ? base
             : "/tmp";
}

absl::StatusOr<PrivateSocket> PrivateSocket::Make() {
  const std::string base = Base();
  RemoveAbandoned(base);
  // Before the new lock is held, another process may take the directory for an
  // abandoned one.
  constexpr int kTries = 16;
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    std::string directory = absl::StrCat(base, "/", kPrefix, "XXXXXX");
    if (mkdtemp(directory.data()) == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("cannot make ", directory, ": ", std::strerror(errno)));
    }
    const int lock = Lock(directory, O_CREAT | O_EXCL);
    if (lock >= 0) return PrivateSocket(std::move(directory), lock);
    error = errno;
    unlink((directory + "/lock").c_str());
    rmdir(directory.c_str());
  }
  return absl::UnavailableError(absl::StrCat("cannot lock a directory in ",
                                             base, ": ", std::strerror(error)));
}

PrivateSocket::PrivateSocket(PrivateSocket&& other) noexcept
    : directory_(std::exchange(other.directory_, "")),
      lock_(std::exchange(other.lock_, -1)) {}

PrivateSocket& PrivateSocket::operator=(PrivateSocket&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(lock_, other.lock_);
  return *this;
}

PrivateSocket::~PrivateSocket() {
  if (!empty()) Remove(directory_, lock_);
}

void PrivateSocket::Announce(const LocalWorker& worker) const {
  // Written at once, so that nobody reads a part of it.
  std::ofstream(directory_ + "/worker")
      << absl::StrCat(worker.name, "\n", worker.address, "\n", worker.cluster);
}

std::vector<LocalWorker> LocalWorkers() {
  const std::string base = PrivateSocket::Base();
  RemoveAbandoned(base);
  std::vector<LocalWorker> workers;
  ForEachDirectory(base, [&](const std::string& directory) {
    std::stringstream text;
    text << std::ifstream(directory + "/worker").rdbuf();
    const std::vector<std::string> lines =
        absl::StrSplit(text.str(), absl::MaxSplits('\n', 2));
    if (lines.size() == 3)  // else it has not joined, or is not a worker
      workers.push_back({lines[2], lines[0], lines[1]});
  });
  std::sort(workers.begin(), workers.end(),
            [](const LocalWorker& a, const LocalWorker& b) {
              return std::tie(a.cluster, a.name, a.address) <
                     std::tie(b.cluster, b.name, b.address);
            });
  return workers;
}

std::string PrivateSocket::path() const { return directory_ + "/s"; }
std::string PrivateSocket::fd_path() const { return directory_ + "/f"; }

}  // namespace baton::rpc
