// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/sort.h"

#include <algorithm>
#include <vector>

#include "core/cpu/strided.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

template <typename C>
struct Entry {
  C value;
  int64_t index;
};

template <bool kDescending>
struct ComesBefore {
  template <typename C>
  bool operator()(const Entry<C>& a, const Entry<C>& b) const {
    const C &greater = kDescending ? a.value : b.value,
            &less = kDescending ? b.value : a.value;
    if ((less < greater) || (greater != greater && less == less)) return true;
    const bool same =
        a.value == b.value || (a.value != a.value && b.value != b.value);
    return same && a.index < b.index;
  }
};

template <typename C, typename Before>
void SortFirst(std::vector<Entry<C>>& line, int64_t count, Before before) {
  const auto end = line.begin() + count;
  if (end != line.end()) {
    std::nth_element(line.begin(), end, line.end(), before);
  }
  std::sort(line.begin(), end, before);
}

template <typename T>
void SortLine(const T* x, int64_t size, int64_t count, bool descending,
              std::vector<Entry<ComputeType<T>>>& line, T* values,
              int64_t* indices) {
  line.clear();
  for (int64_t i = 0; i < size; ++i) {
    line.push_back({Convert<ComputeType<T>>(x[i]), i});
  }
  if (descending) {
    SortFirst(line, count, ComesBefore<true>{});
  } else {
    SortFirst(line, count, ComesBefore<false>{});
  }
  for (int64_t i = 0; i < count; ++i) {
    indices[i] = line[static_cast<size_t>(i)].index;
    values[i] = x[indices[i]];
  }
}

}  // namespace

void Sort(const Tensor& values, const Tensor& indices, const Tensor& x,
          bool descending) {
  if (values.numel() == 0) return;
  const int64_t size = x.dim(-1), count = values.dim(-1);
  const int64_t grain = std::max<int64_t>(1, 1024 / size);
  VisitDType(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = x.data<T>();
    T* to = values.data<T>();
    int64_t* positions = indices.data<int64_t>();
    ParallelFor(x.numel() / size, grain, [&](int64_t begin, int64_t end) {
      std::vector<Entry<ComputeType<T>>> line;
      line.reserve(static_cast<size_t>(size));
      for (int64_t i = begin; i < end; ++i) {
        SortLine(from + i * size, size, count, descending, line, to + i * count,
                 positions + i * count);
      }
    });
  });
}

}  // namespace baton::cpu
