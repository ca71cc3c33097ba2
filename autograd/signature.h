// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace baton::autograd {

class Node;

// The form of a graph in 128 bits: its functions and edges, but not the tensors
// that it keeps. If two graphs have equal signatures, each reaches what the
// other one reaches; different forms with equal signatures do not occur in
// practice (once in 2^128 pairs). Equal in every process. Value type.
class Signature {
 public:
  void Add(uint64_t word);
  void Add(std::string_view text);
  void Add(const Signature& other);

  static constexpr auto Fields() {
    return std::tuple{&Signature::low_, &Signature::high_};
  }
  friend auto operator<=>(const Signature&, const Signature&) = default;

 private:
  friend class Node;
  uint64_t low_ = 0;
  uint64_t high_ = 0;
};

// Returns the signature of `node` and everything that it reaches. Each node
// caches its own, so that a graph is traversed once however often parts of it
// are requested. Thread-safe.
Signature SignatureOf(const Node& node);

}  // namespace baton::autograd
