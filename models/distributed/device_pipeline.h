// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "autograd/variable.h"
#include "models/distributed/batch_inputs.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/program_run.h"
#include "models/distributed/schedules.h"
#include "models/distributed/simulation.h"
#include "models/distributed/stage_streams.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/step_trace.h"
#include "models/nn/loss_module.h"
#include "models/nn/module.h"

namespace baton::dist {

struct DeviceStage {
  std::shared_ptr<nn::Module> module;
  Device device;
};

struct DevicePipelineOptions {
  int64_t split_size = 0;  // rows of a micro-batch; 0: the whole batch
  // Rows of each micro-batch, in place of split_size; they add up to the batch.
  // Small ones first and last leave devices idle for less at a step's ends,
  // large ones between waste less on kernels' beginnings.
  std::vector<int64_t> micro_batches = {};
  // Its workers are the devices, from 0 as the stages name them first. "auto"
  // goes by usual costs until Tune has measured them.
  ScheduleChoice schedule = {};
  Loss loss = Loss::kCrossEntropy;  // or kMse
  // In its place: a loss of one's own, which moves to the last device.
  std::shared_ptr<nn::LossModule> own_loss = nullptr;
  std::vector<StageRoute> routes = {};  // as in PipelineOptions
  bool deferred_batch_norm = false;     // as in PipelineOptions
  // Micro-batches that a GPU works on at once, on streams of their own: small
  // ones leave much of it idle. The schedule then orders groups of so many.
  // Running statistics move at the end of the step.
  int at_once = 1;
  // Whether forwards run beside backwards of other micro-batches, on streams of
  // their own: pays where there are more micro-batches than stages.
  bool overlap = false;
  // Whether copies between GPUs run beside the computing. Off, only to see what
  // that is worth: a copy begins after what the computing streams of its two
  // GPUs have been given, and what they are given next waits for it, as on a
  // stream of theirs. Nothing is computed otherwise.
  bool copy_streams = true;
  // Of the stages' weights (see nn::Module::LowerPrecision): inputs are cast to
  // it, and outputs to f32 for the loss.
  DType dtype = DType::kF32;
};

// Trains a chain of modules on the GPUs of one machine, in micro-batches: the
// Pipeline whose links are all local. One thread gives all devices their work,
// which goes on by itself: each computes on its current stream, and activations
// and gradients cross on streams for copies, beside the computing.
// Nothing is read back, so that a step can be recorded (nn::GraphedStep).
//
//   dist::DevicePipeline pipeline({{front, Device::Cuda(0)},
//                                  {back, Device::Cuda(1)}},
//                                 {.split_size = 20});
//   optim::Sgd sgd(pipeline.Parameters(), {.lr = 0.1});
//   for (...) {
//     sgd.ZeroGrad();
//     loss = pipeline.Step(images, labels);
//     sgd.Step();
//   }
//
// The loss is the mean over the batch whatever the sizes of the micro-batches,
// and gradients equal those of one process that accumulates over the same
// micro-batches in order (on the CPU bit for bit). Modules that read the other
// rows of a batch (batch norm) see micro-batches. Devices may be the CPU, and
// one device may have several stages: dealt out in turn (0, 1, 0, 1), with the
// schedules "interleaved-1f1b" and "auto", they leave devices idle for less at
// a step's ends. Thread-compatible.
class DevicePipeline {
 public:
  // Moves each module to its device, before anything else has its parameters.
  // Throws Error for no stages, a stage without a module, bad options and
  // routes, and devices that are not there.
  DevicePipeline(std::vector<DeviceStage> stages,
                 const DevicePipelineOptions& options);

  // Forward and backward of one batch: inputs on the first device and targets
  // on the last, or elsewhere and copied there, both with the batch's rows
  // first. The gradients of all parameters are those of this step; they are
  // f32 where several micro-batches add up, also of bf16 and f16 parameters.
  // Returns the mean loss, f32 (f64 for f64) [], on the last device.
  struct StepOptions {
    Tensor loss_scale = {};      // f32 [] there: gradients are so much larger
    StepTrace* trace = nullptr;  // times each instruction and copy
  };
  Tensor Step(const BatchInputs& inputs, const Tensor& targets,
              const StepOptions& options);
  Tensor Step(const BatchInputs& inputs, const Tensor& targets) {
    return Step(inputs, targets, StepOptions());
  }

  // Times a step on such a batch, by which the steps of "auto" are ordered from
  // now on: what it comes to, in milliseconds, the devices for workers. Takes
  // some steps, which leave parameters and buffers as they were, but gradients
  // of their own, and random numbers drawn. Not within a recording, nor after
  // one was made.
  PipelineTiming Tune(const BatchInputs& inputs, const Tensor& targets);

  // The forwards alone, in eval mode; the outputs, on the last device.
  Values Evaluate(const BatchInputs& inputs);

  // That a step on so many rows has; throws Error as Step does.
  int64_t MicroBatches(int64_t rows) const;
  // Of all stages, in order, and of a loss of one's own.
  std::vector<Variable> Parameters() const;
  std::vector<Device> devices() const;  // each once, in order
  int num_stages() const { return static_cast<int>(stages_.size()); }
  const DevicePipelineOptions& options() const { return options_; }

 private:
  // What the last stage has, of each micro-batch.
  struct Results {
    std::vector<Tensor> losses;
    std::vector<Values> outputs;
  };
  // Runs such a step, whose micro-batches are these.
  Results Run(StepPlan plan, const std::vector<RowRange>& rows,
              const ProgramRun::Batch& batch, StepTrace* trace) const;
  // What one thread gives to all devices, as it is expected to begin.
  Program ProgramFor(bool training, const std::vector<RowRange>& rows) const;
  std::vector<RowRange> RowsOf(int64_t batch) const;
  // The groups of as many micro-batches as a device works on at once.
  Workload WorkFor(const std::vector<RowRange>& rows) const;
  Schedule ScheduleFor(const Workload& work) const;
  std::vector<StepTrace::Span> TimedStep(const BatchInputs& inputs,
                                         const Tensor& targets);
  // Each where the first stage that takes it computes.
  Values Placed(const BatchInputs& inputs) const;

  std::vector<DeviceStage> stages_;
  const DevicePipelineOptions options_;
  std::vector<StageCosts> costs_;  // of each stage; empty: the usual ones
  std::map<int, StageStreams>
      streams_;  // beside the current one, by index of the GPU
};

}  // namespace baton::dist
