// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/codec.h"
#include "rpc/worker.h"

// Codecs of common types. Numbers are little-endian and of fixed size.
namespace baton::rpc {

template <typename T>
struct Codec<
    T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>>> {
  static void Encode(Encoder& encoder, T value) {
    encoder.PutBytes(&value, sizeof value);
  }
  static T Decode(Decoder& decoder) {
    T value{};
    decoder.GetBytes(&value, sizeof value);
    return value;
  }
};

template <>
struct Codec<bool> {
  static void Encode(Encoder& encoder, bool value) {
    const uint8_t byte = value ? 1 : 0;
    encoder.PutBytes(&byte, 1);
  }
  static bool Decode(Decoder& decoder) {
    uint8_t byte = 0;
    decoder.GetBytes(&byte, 1);
    if (byte > 1) decoder.Fail(absl::InvalidArgumentError("bad bool"));
    return byte == 1;
  }
};

template <typename T>
struct Codec<T, std::enable_if_t<std::is_enum_v<T>>> {
  using Number = std::underlying_type_t<T>;
  static void Encode(Encoder& encoder, T value) {
    encoder.Put(static_cast<Number>(value));
  }
  static T Decode(Decoder& decoder) {
    return static_cast<T>(decoder.Get<Number>());
  }
};

template <>
struct Codec<std::string> {
  static void Encode(Encoder& encoder, const std::string& value) {
    encoder.PutCount(value.size());
    encoder.PutBytes(value.data(), value.size());
  }
  static std::string Decode(Decoder& decoder) { return decoder.GetString(); }
};

template <>
struct Codec<Tensor> {
  static void Encode(Encoder& encoder, const Tensor& value) {
    encoder.PutTensor(value);
  }
  static Tensor Decode(Decoder& decoder) { return decoder.GetTensor(); }
};

#define BATON_RPC_CODEC(type)                                \
  template <>                                                \
  struct Codec<type> {                                       \
    static void Encode(Encoder& encoder, const type& value); \
    static type Decode(Decoder& decoder);                    \
  }
BATON_RPC_CODEC(absl::Status);
BATON_RPC_CODEC(Compute);
BATON_RPC_CODEC(WorkerInfo);
BATON_RPC_CODEC(Shape);
BATON_RPC_CODEC(Device);
#undef BATON_RPC_CODEC

template <>
struct Codec<std::monostate> {
  static void Encode(Encoder& encoder, std::monostate) { encoder.Put(true); }
  static std::monostate Decode(Decoder& decoder) {
    decoder.Get<bool>();
    return {};
  }
};

template <typename Rep, typename Period>
struct Codec<std::chrono::duration<Rep, Period>> {
  using Duration = std::chrono::duration<Rep, Period>;
  static void Encode(Encoder& encoder, Duration value) {
    encoder.Put(value.count());
  }
  static Duration Decode(Decoder& decoder) {
    return Duration(decoder.Get<Rep>());
  }
};

template <typename T>
struct Codec<std::vector<T>> {
  static constexpr bool kPlain =
      std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
  static void Encode(Encoder& encoder, const std::vector<T>& values) {
    encoder.PutCount(values.size());
    if constexpr (kPlain) {
      encoder.PutBytes(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) encoder.Put<T>(value);
    }
  }
  static std::vector<T> Decode(Decoder& decoder) {
    std::vector<T> values;
    if constexpr (kPlain) {
      values.resize(decoder.GetCount(sizeof(T)));
      decoder.GetBytes(values.data(), values.size() * sizeof(T));
    } else {
      const size_t count = decoder.GetCount();
      for (size_t i = 0; i < count && decoder.ok(); ++i) {
        values.push_back(decoder.Get<T>());
      }
    }
    return values;
  }
};

template <typename T, size_t kSize>
struct Codec<std::array<T, kSize>> {
  static void Encode(Encoder& encoder, const std::array<T, kSize>& values) {
    encoder.PutCount(kSize);
    for (const T& value : values) encoder.Put(value);
  }
  static std::array<T, kSize> Decode(Decoder& decoder) {
    std::array<T, kSize> values{};
    if (decoder.GetCount() != kSize) {
      decoder.Fail(absl::InvalidArgumentError("an array of another size"));
    }
    for (T& value : values) value = decoder.Get<T>();
    return values;
  }
};

namespace internal {
template <typename Map>
struct MapCodec {
  static void Encode(Encoder& encoder, const Map& map) {
    encoder.PutCount(map.size());
    for (const auto& [key, value] : map) {
      encoder.Put(key);
      encoder.Put(value);
    }
  }
  static Map Decode(Decoder& decoder) {
    Map map;
    const size_t count = decoder.GetCount();
    for (size_t i = 0; i < count && decoder.ok(); ++i) {
      auto key = decoder.Get<typename Map::key_type>();
      map.insert_or_assign(std::move(key),
                           decoder.Get<typename Map::mapped_type>());
    }
    return map;
  }
};
}  // namespace internal

template <typename K, typename V>
struct Codec<std::map<K, V>> : internal::MapCodec<std::map<K, V>> {};
template <typename K, typename V>
struct Codec<std::unordered_map<K, V>>
    : internal::MapCodec<std::unordered_map<K, V>> {};

template <typename A, typename B>
struct Codec<std::pair<A, B>> {
  static void Encode(Encoder& encoder, const std::pair<A, B>& value) {
    encoder.Put(value.first);
    encoder.Put(value.second);
  }
  static std::pair<A, B> Decode(Decoder& decoder) {
    A first = decoder.Get<A>();
    return {std::move(first), decoder.Get<B>()};
  }
};

template <typename... T>
struct Codec<std::tuple<T...>> {
  static void Encode(Encoder& encoder, const std::tuple<T...>& value) {
    encoder.Put(true);
    std::apply([&](const T&... item) { (encoder.Put(item), ...); }, value);
  }
  static std::tuple<T...> Decode(Decoder& decoder) {
    decoder.Get<bool>();
    return std::tuple<T...>{decoder.Get<T>()...};  // braces: left to right
  }
};

template <typename T>
struct Codec<std::optional<T>> {
  static void Encode(Encoder& encoder, const std::optional<T>& value) {
    encoder.Put(value.has_value());
    if (value.has_value()) encoder.Put(*value);
  }
  static std::optional<T> Decode(Decoder& decoder) {
    if (!decoder.Get<bool>()) return std::nullopt;
    return decoder.Get<T>();
  }
};

template <typename T>
struct Codec<absl::StatusOr<T>> {
  static void Encode(Encoder& encoder, const absl::StatusOr<T>& value) {
    encoder.Put(value.status());
    if (value.ok()) encoder.Put(*value);
  }
  static absl::StatusOr<T> Decode(Decoder& decoder) {
    absl::Status status = decoder.Get<absl::Status>();
    if (!status.ok()) return status;
    return decoder.Get<T>();
  }
};

namespace internal {
template <typename T>
concept ListsFields = requires {
  T::Fields;
};

template <typename T>
constexpr auto FieldsOf() {
  if constexpr (requires { T::Fields(); }) {
    return T::Fields();
  } else {
    return T::Fields;
  }
}
}  // namespace internal

// The number of fields comes first, so that a struct with added fields is
// detected.
template <typename T>
struct Codec<T, std::enable_if_t<internal::ListsFields<T>>> {
  static void Encode(Encoder& encoder, const T& value) {
    std::apply(
        [&](auto... field) {
          encoder.Put(static_cast<uint8_t>(sizeof...(field)));
          (encoder.Put(value.*field), ...);
        },
        internal::FieldsOf<T>());
  }
  static T Decode(Decoder& decoder) {
    T value{};
    std::apply(
        [&](auto... field) {
          if (decoder.Get<uint8_t>() != sizeof...(field)) {
            decoder.Fail(absl::InvalidArgumentError(
                "a struct with another number of fields"));
          }
          if (decoder.EnterNested()) (GetInto(decoder, value.*field), ...);
          decoder.LeaveNested();
        },
        internal::FieldsOf<T>());
    return value;
  }

 private:
  template <typename F>
  static void GetInto(Decoder& decoder, F& field) {
    field = decoder.Get<F>();
  }
};

}  // namespace baton::rpc
