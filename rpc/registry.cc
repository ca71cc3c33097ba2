// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/shown_name.h"
#include "rpc/unregistered.h"

namespace baton::rpc {

void Registry::AddType(uint64_t id, std::string name,
                       std::vector<Method> methods) {
  name = ShownName(name);
  for (Method& method : methods) method.name = ShownName(method.name);
  auto [place, added] = types_.try_emplace(id, Type{name, std::move(methods)});
  if (added || !status_.ok()) return;
  status_ = absl::AlreadyExistsError(
      place->second.name == name
          ? absl::StrCat(name, " is registered twice")
          : absl::StrCat(name, " and ", place->second.name,
                         " hash to one id; rename one of them"));
}

uint64_t Registry::DigestOf(uint64_t id, const Type& type, uint64_t seed) {
  uint64_t digest = internal::HashName(absl::StrCat(id, " ", type.name), seed);
  for (const Method& method : type.methods) {
    digest = internal::HashName(
        absl::StrCat("/", method.name, " ", method.signature), digest);
  }
  return digest;
}

uint64_t Registry::Digest() const {
  uint64_t digest = internal::HashName("baton registry 1");
  for (const auto& [id, type] : types_) digest = DigestOf(id, type, digest);
  return digest;
}

std::map<uint64_t, std::string> Registry::Exports() const {
  std::map<uint64_t, std::string> exports;
  for (const auto& [id, type] : types_) {
    exports[DigestOf(id, type, internal::HashName("baton export 1"))] =
        type.name;
  }
  return exports;
}

absl::StatusOr<const Registry::Method*> Registry::Find(
    internal::MethodKey key) const {
  auto found = types_.find(key.type);
  if (found == types_.end()) {
    return absl::UnimplementedError(kNotRegistered);
  }
  if (key.index >= found->second.methods.size()) {
    return absl::UnimplementedError(absl::StrCat(
        found->second.name, " exports ", found->second.methods.size(),
        " methods, not a method ", key.index));
  }
  return &found->second.methods[key.index];
}

std::vector<std::string> Registry::MethodNames() const {
  std::vector<std::string> names;
  for (const auto& [id, type] : types_) {
    for (const Method& method : type.methods) names.push_back(method.name);
  }
  return names;
}

}  // namespace baton::rpc
