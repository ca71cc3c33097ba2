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

// One of cuDNN's algorithms: an engine, and how its knobs (by type) stand.
struct ConvChoice {
  int64_t engine = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;
  friend bool operator==(const ConvChoice&, const ConvChoice&) = default;
};

// The algorithm found fastest for each convolution so far. A key says the GPU,
// the version of cuDNN and all that describes the convolution; it has no tabs
// and no line breaks. In a file each choice is a line, `key TAB engine TAB
// knob=value,knob=value`, below the line kHeading; of lines with one key the
// last counts. Several processes may use one file at once. Thread-safe.
class ConvChoices {
 public:
  static constexpr char kHeading[] = "baton convolution choices 1";

  // Takes over what the file at `path` says and writes later choices to it; ""
  // stands for no file. Lines that cannot be read are passed over with a
  // warning in the log; a file that begins differently is left alone.
  void UseFile(const std::string& path);
  std::optional<ConvChoice> Find(const std::string& key) const;
  void Add(const std::string& key, const ConvChoice& choice);

  // The process's own. Its file is what the environment's BATON_CUDNN_CACHE
  // says until SetConvCacheFile (core/conv_tuning.h) names one.
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
