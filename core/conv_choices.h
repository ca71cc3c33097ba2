// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace baton {

// One of cuDNN's algorithms: an engine, and the values of its knobs, by type.
struct ConvChoice {
  int64_t engine = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;
  friend bool operator==(const ConvChoice&, const ConvChoice&) = default;
};

// The fastest known algorithm for each convolution. A key contains the GPU, the
// version of cuDNN and the description of the convolution; it has no tabs and
// no line breaks. A file has the line kHeading, then one line for each choice:
// `key TAB engine TAB knob=value,knob=value`. If several lines have the same
// key, the last one counts. Several processes may use one file at once.
// Thread-safe.
class ConvChoices {
 public:
  static constexpr char kHeading[] = "baton convolution choices 1";

  // Reads choices from the file at `path` and writes later ones to it; "" means
  // no file. Skips unreadable lines with a warning in the log; does not change
  // a file that begins differently.
  void UseFile(const std::string& path);
  std::optional<ConvChoice> Find(const std::string& key) const;
  void Add(const std::string& key, const ConvChoice& choice);

  // The process's instance. Its file is the one that BATON_CUDNN_CACHE in the
  // environment names, until SetConvCacheFile (core/conv_tuning.h) names
  // another.
  static ConvChoices& OfProcess();

 private:
  void ReadLocked(const std::string& text)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendLocked(const std::string& text)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, ConvChoice> choices_ ABSL_GUARDED_BY(mutex_);
  std::string path_ ABSL_GUARDED_BY(mutex_);  // "" for none
};

}  // namespace baton
