// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/convert.cuh"
#include "core/cuda/copy.h"
#include "core/cuda/map.cuh"

namespace baton::cuda {
namespace {

template <typename To>
struct ConvertFn {
  template <typename From>
  __device__ To operator()(From value) const {
    return ConvertTo<To>(value);
  }
};

template <typename T>
inline constexpr bool kIsNumber = std::is_floating_point_v<T> || kIsSmall<T>;

// Floating values, and bytes such as those of images and masks, come in large
// numbers, so these use packs.
template <typename To, typename From>
inline constexpr int kCastPack = kIsNumber<To> &&
                                         (kIsNumber<From> || sizeof(From) == 1)
                                     ? kCommonPack<To, From>
                                     : 1;

}  // namespace

void Cast(const Launch& launch, const Tensor& target, const Tensor& source) {
  VisitDeviceType(target.dtype(), [&](auto to) {
    VisitDeviceType(source.dtype(), [&](auto from) {
      using To = typename decltype(to)::type;
      using From = typename decltype(from)::type;
      if constexpr (!std::is_same_v<To, From>) {
        MapPacked<kCastPack<To, From>, To, From>(launch, ConvertFn<To>{},
                                                 target, source);
      }
    });
  });
}

}  // namespace baton::cuda
