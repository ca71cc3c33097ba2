// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Names of types and functions as the compiler spells them. The ids on the wire
// are hashes of these names. Both sides must be built by the same compiler
// family; the registry's digest shows if they are not.
namespace baton::rpc::internal {

constexpr std::string_view Between(std::string_view text,
                                   std::string_view key) {
  text.remove_prefix(text.find(key) + key.size());
  text.remove_suffix(1);  // the closing ']'
  if (!text.empty() && text.front() == '&') text.remove_prefix(1);
  return text;
}

// Returns `auto` because the compiler would include a named return type in the
// text.
template <typename Named>
constexpr auto FullTypeName() {
  return Between(__PRETTY_FUNCTION__, "Named = ");
}

template <auto kNamed>
constexpr auto FullValueName() {
  return Between(__PRETTY_FUNCTION__, "kNamed = ");
}

// FNV-1a.
constexpr uint64_t HashName(std::string_view text,
                            uint64_t seed = 0xcbf29ce484222325ull) {
  for (char c : text) {
    seed ^= static_cast<unsigned char>(c);
    seed *= 0x100000001b3ull;
  }
  return seed;
}

// The part after the last "::" outside of template arguments.
constexpr std::string_view LastPart(std::string_view name) {
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth == 0 && name[i] == ':' && name[i + 1] == ':') start = i + 2;
  }
  return name.substr(start);
}

template <typename T>
constexpr uint64_t TypeId() {
  return HashName(FullTypeName<T>());
}

// "Stage", for display.
template <typename T>
std::string TypeName() {
  return std::string(LastPart(FullTypeName<T>()));
}

template <auto kFunction>
constexpr uint64_t FunctionId() {
  return HashName(FullTypeName<decltype(kFunction)>(),
                  HashName(FullValueName<kFunction>()));
}

// "Forward", for display.
template <auto kFunction>
std::string FunctionName() {
  return std::string(LastPart(FullValueName<kFunction>()));
}

}  // namespace baton::rpc::internal
