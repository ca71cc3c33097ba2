// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/output_lines.h"

#include <errno.h>
#include <unistd.h>

#include <cstddef>

namespace baton::tools {
namespace {

constexpr size_t kLongestLine = 1 << 16;

}  // namespace

bool OutputLines::Read(int fd, OnLine on_line) {
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(fd, buffer, sizeof(buffer))) > 0) {
    for (const char* at = buffer; at != buffer + n; ++at) {
      if (*at == '\n') {
        on_line(line_);
        line_.clear();
      } else {
        line_ += *at;
        if (line_.size() == kLongestLine) Flush(on_line);
      }
    }
  }
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

void OutputLines::Flush(OnLine on_line) {
  if (line_.empty()) return;
  on_line(line_);
  line_.clear();
}

}  // namespace baton::tools
