// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Two processes of C: worker1 offers functions, the trainer calls them.
//   baton-run --workers=1 --worker_program=c_pair -- c_pair
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/c/baton.h"

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "%s:%d: not so: %s; error: %s\n", __FILE__, __LINE__, \
              #condition, baton_error());                                   \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

// [offer]
static void twice(void* context, const baton_tensor* const* inputs, int count,
                  baton_results* results) {
  (void)context;
  if (count != 1 || baton_tensor_dtype(inputs[0]) != BATON_F32) {
    baton_results_fail(results, "twice takes one tensor of f32");
    return;
  }
  const float* from = baton_tensor_data(inputs[0]);
  const int64_t n = baton_tensor_bytes(inputs[0]) / (int64_t)sizeof(float);
  float* to = malloc((size_t)n * sizeof(float));
  for (int64_t i = 0; i < n; ++i) to[i] = 2 * from[i];
  baton_tensor* output = baton_tensor_new(BATON_F32, 1, &n, to);
  baton_results_add(results, output);
  baton_tensor_free(output);
  free(to);
}
// [end]

static void pair(void* context, const baton_tensor* const* inputs, int count,
                 baton_results* results) {
  ++*(int*)context;
  for (int i = 0; i < count; ++i) {
    baton_results_add(results, inputs[i]);
    baton_results_add(results, inputs[i]);
  }
}

static void check_tensors(void) {
  const int64_t shape[] = {2, 3};
  baton_tensor* zeros = baton_tensor_new(BATON_I64, 2, shape, NULL);
  CHECK(zeros != NULL && strcmp(baton_error(), "") == 0);
  CHECK(baton_tensor_dims(zeros) == 2 && baton_tensor_size(zeros, 1) == 3);
  CHECK(baton_tensor_bytes(zeros) == 48);
  CHECK(((const int64_t*)baton_tensor_data(zeros))[5] == 0);
  CHECK(baton_tensor_size(zeros, 2) == -1 && strlen(baton_error()) > 0);
  baton_tensor_free(zeros);
  CHECK(baton_tensor_new(99, 2, shape, NULL) == NULL);
  CHECK(strstr(baton_error(), "dtype 99") != NULL);
  CHECK(baton_tensor_new(BATON_F32, 1, (const int64_t[]){-1}, NULL) == NULL);
  CHECK(strlen(baton_error()) > 0);
}

static void call_all(baton_worker* self) {
  const int64_t shape = 3;
  const float numbers[] = {1, 2.5f, -3};
  baton_tensor* x = baton_tensor_new(BATON_F32, 1, &shape, numbers);
  const baton_tensor* two[] = {x, x};
  baton_tensor* y[4] = {NULL};

  CHECK(baton_call(self, "worker1", "twice", two, 1, y, 4, 30) == 1);
  CHECK(((const float*)baton_tensor_data(y[0]))[1] == 5);
  baton_tensor_free(y[0]);

  CHECK(baton_call(self, "worker1", "pair", two, 2, y, 4, 30) == 4);
  for (int i = 0; i < 4; ++i) baton_tensor_free(y[i]);
  CHECK(baton_call(self, "worker1", "pair", two, 2, y, 3, 30) == -1);
  CHECK(strstr(baton_error(), "4 outputs, and room for 3") != NULL);

  CHECK(baton_call(self, "worker1", "twice", two, 2, y, 4, 30) == -1);
  CHECK(strstr(baton_error(), "twice takes one tensor of f32") != NULL);
  CHECK(baton_call(self, "worker1", "thrice", two, 1, y, 4, 30) == -1);
  CHECK(strstr(baton_error(), "worker1 offers no function named 'thrice'"));
  CHECK(baton_call(self, "nobody", "twice", two, 1, y, 4, 30) == -1);
  CHECK(strstr(baton_error(), "nobody") != NULL);
  baton_tensor_free(x);
}

int main(void) {
  check_tensors();
  int calls = 0;
  const baton_export exports[] = {{"twice", twice, NULL},
                                  {"pair", pair, &calls}};
  const baton_join_options options = {.exports = exports, .exports_count = 2};
  baton_worker* self = baton_join(&options);
  CHECK(self != NULL);
  if (strcmp(baton_name(self), "trainer") != 0) {
    for (;;) pause();  // baton-run ends it
  }
  call_all(self);
  CHECK(baton_leave(self) == 0);
  puts("all of it is so");
  return 0;
}
