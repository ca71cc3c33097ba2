// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace baton::autograd {

class Node;

// The form of a graph in 128 bits: which functions it has and which edges lead
// where, not what tensors they keep. Of two graphs with equal signatures each
// reaches what the other one reaches; that they are not of one form, and only
// their signatures equal, does not happen (once in 2^128 pairs). The same in
// every process. Value type.
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

// Of `node` and all that it reaches. Each node keeps its own, so that a graph
// is gone through once however often parts of it are asked for. Thread-safe.
Signature SignatureOf(const Node& node);

}  // namespace baton::autograd
