// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/signature.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "autograd/node.h"

namespace baton::autograd {
namespace {

// The finalizer of SplitMix64: each bit of the word changes about half of the
// result's bits.
uint64_t Mix(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
  return word ^ (word >> 31);
}

}  // namespace

void Signature::Add(uint64_t word) {
  low_ = Mix((low_ ^ word) + 0x9e3779b97f4a7c15ull);
  high_ = Mix(high_ * 0xd6e8feb86659fd93ull + (word ^ 0xa0761d6478bd642full));
}

void Signature::Add(std::string_view text) {
  Add(text.size());
  while (!text.empty()) {
    uint64_t word = 0;
    const size_t bytes = std::min(text.size(), sizeof(word));
    std::memcpy(&word, text.data(), bytes);
    Add(word);
    text.remove_prefix(bytes);
  }
}

void Signature::Add(const Signature& other) {
  Add(other.low_);
  Add(other.high_);
}

// A node's signature is made after those of all nodes below it. This uses a
// stack instead of recursion, because chains may be long.
Signature SignatureOf(const Node& node) {
  Signature signature;
  std::vector<const Node*> open = {&node};
  while (!open.empty()) {
    const Node& next = *open.back();
    const size_t before = open.size();
    if (next.KeptSignature(signature)) {
      open.pop_back();
      continue;
    }
    Signature made;
    next.Sign(made);
    for (const Edge& edge : next.edges()) {
      Signature below;
      if (!edge.valid()) {
        made.Add(uint64_t{0});
      } else if (edge.node->KeptSignature(below)) {
        made.Add(static_cast<uint64_t>(edge.index) + 1);
        made.Add(below);
      } else {
        open.push_back(edge.node.get());
      }
    }
    if (open.size() == before) next.KeepSignature(made);
  }
  return signature;
}

}  // namespace baton::autograd
