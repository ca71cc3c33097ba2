// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/mutex.h"

namespace baton::tools {

// Passes events of other machines from other threads to the one in RunAll
// (tools/launch/run_all.h). Thread-safe.
class RunInbox {
 public:
  struct Message {
    std::string event = "";  // a line to print; empty: none
    // Workers on other machines that will not be started again.
    std::set<std::string> lost = {};
    bool ends = false;  // the run ends with the exit code `code`
    int code = 0;
  };

  RunInbox() = default;
  ~RunInbox() { ::close(ready_); }
  RunInbox(const RunInbox&) = delete;
  RunInbox& operator=(const RunInbox&) = delete;

  void Add(Message message) {
    MutexLock lock(mutex_);
    messages_.push_back(std::move(message));
    ::eventfd_write(ready_, 1);
  }
  std::vector<Message> Take() {
    MutexLock lock(mutex_);
    eventfd_t count;
    ::eventfd_read(ready_, &count);
    return std::exchange(messages_, {});
  }
  // Readable while there are messages.
  int fd() const { return ready_; }

 private:
  const int ready_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  Mutex mutex_;
  std::vector<Message> messages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::tools
