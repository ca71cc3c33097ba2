// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Baton for other languages: a process joins a cluster, calls functions of
// tensors by name at other workers, offers some of its own, and leaves.
//
//   baton_worker* self = baton_join(NULL);    as baton-run started it
//   float numbers[] = {1, 2, 3};
//   int64_t shape[] = {3};
//   baton_tensor* x = baton_tensor_new(BATON_F32, 1, shape, numbers);
//   baton_tensor* y;
//   int count = baton_call(self, "worker1", "double", &x, 1, &y, 1, 10);
//   if (count < 0) puts(baton_error());
//   baton_leave(self);
//
// Link the shared library libbaton_c. A function that fails returns NULL or -1,
// and baton_error says why. All functions are thread-safe; tensors do not
// change.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BATON_C_API __attribute__((visibility("default")))

typedef struct baton_worker baton_worker;
typedef struct baton_tensor baton_tensor;
typedef struct baton_results baton_results;

// The dtypes of elements. The numbers are those of the wire protocol.
enum {
  BATON_F32 = 0,
  BATON_F64 = 1,
  BATON_F16 = 2,
  BATON_BF16 = 3,
  BATON_I32 = 4,
  BATON_I64 = 5,
  BATON_U8 = 6,
  BATON_BOOL = 7
};

// Returns why the last call on this thread failed; "" if it did not. Valid
// until the next call.
BATON_C_API const char* baton_error(void);

// Makes a row-major tensor with a copy of `elements`, or with zeros if that is
// NULL.
BATON_C_API baton_tensor* baton_tensor_new(int dtype, int dims,
                                           const int64_t* shape,
                                           const void* elements);
BATON_C_API void baton_tensor_free(baton_tensor* tensor);  // may be NULL
BATON_C_API int baton_tensor_dtype(const baton_tensor* tensor);
BATON_C_API int baton_tensor_dims(const baton_tensor* tensor);
BATON_C_API int64_t baton_tensor_size(const baton_tensor* tensor, int dim);
BATON_C_API int64_t baton_tensor_bytes(const baton_tensor* tensor);
// Returns the elements in row-major order; valid as long as the tensor.
BATON_C_API const void* baton_tensor_data(const baton_tensor* tensor);

// A function that other workers call. The inputs are valid until it returns. It
// returns each output by baton_results_add, or its failure by
// baton_results_fail. It runs on Baton's threads, several calls at a time.
typedef void (*baton_function)(void* context, const baton_tensor* const* inputs,
                               int count, baton_results* results);
// The caller keeps the tensor.
BATON_C_API void baton_results_add(baton_results* results,
                                   const baton_tensor* output);
BATON_C_API void baton_results_fail(baton_results* results, const char* why);

typedef struct {
  const char* name;
  baton_function function;
  void* context;
} baton_export;

// Fields that are NULL or 0 are taken from the environment that baton-run sets
// (BATON_NAME, BATON_RENDEZVOUS, BATON_WORLD_SIZE).
typedef struct {
  const char* name;
  const char* rendezvous;  // host:port, or etcd://host:port,...
  int world_size;          // workers that the rendezvous waits for
  const baton_export* exports;
  int exports_count;
} baton_join_options;

// Joins the cluster. `options` may be NULL: then all come from the environment.
BATON_C_API baton_worker* baton_join(const baton_join_options* options);
BATON_C_API const char* baton_name(const baton_worker* worker);

// Calls a function that the worker `to` offers, and waits for its outputs, at
// most `seconds`. Returns their number; the caller frees them. Fails if there
// are more than `room`.
BATON_C_API int baton_call(baton_worker* worker, const char* to,
                           const char* function,
                           const baton_tensor* const* inputs, int inputs_count,
                           baton_tensor** outputs, int room, double seconds);

// Ends all calls and frees the worker, even if it returns -1 because other
// workers still used it.
BATON_C_API int baton_leave(baton_worker* worker);

#ifdef __cplusplus
}
#endif
