// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/capture.h"

#include "core/cuda/status.h"

namespace baton::cuda {

bool IsCapturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  Check("capture", cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

RelaxedCapture::RelaxedCapture() {
  Check("capture", cudaThreadExchangeStreamCaptureMode(&mode_));
}

RelaxedCapture::~RelaxedCapture() {
  cudaThreadExchangeStreamCaptureMode(&mode_);
}

CaptureLog*& CurrentCapture() {
  thread_local CaptureLog* current = nullptr;
  return current;
}

void NoteCopy(const Tensor& target, const Tensor& source) {
  CaptureLog* capture = CurrentCapture();
  if (capture == nullptr) return;
  capture->written.push_back(target.storage());
  capture->read.push_back(source.storage());
}

}  // namespace baton::cuda
