// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/optimizer.h"

#include <bit>
#include <utility>
#include <variant>

#include "core/cpu/simd.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

// Steps elements of arrays that have one order, with the state slots in
// `kUsed`.
template <typename Rule, unsigned kUsed>
struct StepRow {
  template <typename T, typename G, typename... S>
  BATON_SIMD_INLINE void operator()(
      T* __restrict value, const G* __restrict grad, int64_t count,
      const typename Rule::template Element<T>* rule,
      const ops::GradientClip<T>* clip, S* __restrict... state) const {
    const auto step = *rule;
    const auto clipped = *clip;
    for (int64_t i = 0; i < count; ++i) {
      unsigned slot = 0;
      T states[] = {(kUsed >> slot++ & 1U) != 0 ? state[i] : T(0)...};
      T x = value[i];
      step(x, clipped(Convert<T>(grad[i])), states, kUsed);
      value[i] = x;
      slot = 0;
      ((void)((kUsed >> slot & 1U) != 0 ? (state[i] = states[slot]) : T(0),
              ++slot),
       ...);
    }
  }
};

template <typename T>
T* At(void* array, int64_t index) {
  return array == nullptr ? nullptr : static_cast<T*>(array) + index;
}

template <typename T>
const T* At(const void* array, int64_t index) {
  return static_cast<const T*>(array) + index;
}

struct Part {
  int64_t begin, count, grad_begin;
};

template <typename Rule, unsigned kUsed, typename T, typename G,
          size_t... kSlot>
void RunStep(const Rule& rule, const StepArrays& arrays,
             const StepArguments& arguments, Part part,
             std::index_sequence<kSlot...>) {
  const typename Rule::template Element<T> element(
      rule, rule.FactorsOf(arguments.rate, arguments.step));
  const ops::GradientClip<T> clip{static_cast<T>(arguments.limit),
                                  static_cast<T>(arguments.scale)};
  RunSimd(StepRow<Rule, kUsed>(), At<T>(arrays.value, part.begin),
          At<G>(arrays.grad, part.grad_begin), part.count, &element, &clip,
          At<T>(arrays.state[kSlot], part.begin)...);
}

// Adds to kUsed, at compile time, the slots that are used at run time.
template <typename T, typename G, unsigned kUsed, typename Rule>
void RunUsed(unsigned used, const Rule& rule, const StepArrays& arrays,
             const StepArguments& arguments, Part part) {
  constexpr bool kPossible = (kUsed & Rule::kRequired) == Rule::kRequired;
  if constexpr (kPossible) {
    if (used == kUsed) {
      return RunStep<Rule, kUsed, T, G>(
          rule, arrays, arguments, part,
          std::make_index_sequence<Rule::kSlots>());
    }
  }
  if constexpr (kUsed + 1 < (1U << Rule::kSlots)) {
    RunUsed<T, G, kUsed + 1>(used, rule, arrays, arguments, part);
  }
}

unsigned UsedSlots(const StepArrays& arrays) {
  unsigned used = 0;
  for (size_t i = 0; i < arrays.state.size(); ++i)
    used |= arrays.state[i] != nullptr ? 1U << i : 0U;
  return used;
}

// Calls fn with the types of the value and of its gradient.
template <typename Fn>
void VisitTypes(DType value, DType grad, Fn fn) {
  if (value == DType::kF64) {
    fn(std::type_identity<double>{}, std::type_identity<double>{});
  } else if (grad == DType::kBF16) {
    fn(std::type_identity<float>{}, std::type_identity<BFloat16>{});
  } else if (grad == DType::kF16) {
    fn(std::type_identity<float>{}, std::type_identity<Half>{});
  } else {
    fn(std::type_identity<float>{}, std::type_identity<float>{});
  }
}

struct LowerRow {
  template <typename L>
  BATON_SIMD_INLINE void operator()(L* __restrict to,
                                    const float* __restrict from,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) to[i] = Convert<L>(from[i]);
  }
};

struct TakeBackRow {
  template <typename L>
  BATON_SIMD_INLINE void operator()(float* __restrict value,
                                    const L* __restrict lowered,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const bool same = std::bit_cast<uint16_t>(Convert<L>(value[i])) ==
                        std::bit_cast<uint16_t>(lowered[i]);
      value[i] = same ? value[i] : Convert<float>(lowered[i]);
    }
  }
};

// Overwrites f32 values with elements of `lowered` (bf16 or f16) that differ
// from the rounded values.
void TakeBack(const StepArrays& arrays, int64_t begin, int64_t end) {
  float* to = At<float>(arrays.value, begin);
  if (arrays.lowered_dtype == DType::kBF16) {
    RunSimd(TakeBackRow(), to, At<BFloat16>(arrays.lowered, begin),
            end - begin);
  } else {
    RunSimd(TakeBackRow(), to, At<Half>(arrays.lowered, begin), end - begin);
  }
}

void Lower(const StepArrays& arrays, int64_t begin, int64_t end) {
  const float* from = At<float>(arrays.value, begin);
  if (arrays.lowered_dtype == DType::kBF16) {
    RunSimd(LowerRow(), At<BFloat16>(arrays.lowered, begin), from, end - begin);
  } else {
    RunSimd(LowerRow(), At<Half>(arrays.lowered, begin), from, end - begin);
  }
}

}  // namespace

void StepRange(const ops::StepRule& rule, const StepArrays& arrays,
               const StepArguments& arguments, int64_t begin, int64_t end,
               int64_t grad_begin) {
  if (arrays.lowered != nullptr) TakeBack(arrays, begin, end);
  const unsigned used = UsedSlots(arrays);
  VisitTypes(arrays.dtype, arrays.grad_dtype, [&](auto t, auto g) {
    using T = typename decltype(t)::type;
    using G = typename decltype(g)::type;
    const auto run = [&](const auto& of_kind) {
      RunUsed<T, G, 0>(used, of_kind, arrays, arguments,
                       {begin, end - begin, grad_begin});
    };
    std::visit(run, rule);
  });
  if (arrays.lowered != nullptr) Lower(arrays, begin, end);
}

}  // namespace baton::cpu
