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
  // Rows of each micro-batch, instead of split_size; they must add up to the
  // batch. With small micro-batches first and last, devices idle less at the
  // ends of a step; with large ones between, less time goes to starting
  // kernels.
  std::vector<int64_t> micro_batches = {};
  // The schedule's workers are the devices, numbered from 0 in the order in
  // which the stages first name them. "auto" uses default costs until Tune has
  // measured them.
  ScheduleChoice schedule = {};
  Loss loss = Loss::kCrossEntropy;  // or kMse
  // If set, used instead of `loss`; it is moved to the last device.
  std::shared_ptr<nn::LossModule> own_loss = nullptr;
  std::vector<StageRoute> routes = {};  // as in PipelineOptions
  bool deferred_batch_norm = false;     // as in PipelineOptions
  // The number of micro-batches that a GPU works on at once, on separate
  // streams, because small ones leave much of it idle. The schedule then orders
  // groups of this size. Running statistics change at the end of the step.
  int at_once = 1;
  // Whether forwards run concurrently with backwards of other micro-batches, on
  // separate streams. It pays if there are more micro-batches than stages.
  bool overlap = false;
  // Whether copies between GPUs run on separate streams, concurrently with
  // computing. Turn it off only to measure the benefit: then a copy begins
  // after the earlier work of the computing streams of both GPUs, and their
  // later work waits for the copy. Results are the same.
  bool copy_streams = true;
  // The dtype of the stages' weights (see nn::Module::LowerPrecision): inputs
  // are cast to it, and outputs to f32 for the loss.
  DType dtype = DType::kF32;
};

// Trains a chain of modules on the GPUs of one machine, in micro-batches: a
// pipeline whose links are all local. One thread enqueues the work of all
// devices, which then runs asynchronously. Each device computes on its current
// stream; activations and gradients are copied on other streams, concurrently
// with computing. The host reads nothing back, so that a step can be recorded
// (nn::GraphedStep).
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
// The loss is the mean over the batch whatever the sizes of the micro-batches.
// Gradients equal those of one process that accumulates over the same
// micro-batches in order (bit for bit on the CPU). Modules that mix the rows of
// a batch (batch norm) see micro-batches. Devices may be the CPU, and one
// device may have several stages: assigned round-robin (0, 1, 0, 1), with the
// schedules "interleaved-1f1b" and "auto", they reduce the idle time at the
// ends of a step. Thread-compatible.
class DevicePipeline {
 public:
  // Moves each module to its device; construct the pipeline before anything
  // else takes the modules' parameters. Throws Error if there are no stages,
  // for a stage without a module, for bad options or routes, and for devices
  // that do not exist.
  DevicePipeline(std::vector<DeviceStage> stages,
                 const DevicePipelineOptions& options);

  // Runs forward and backward of one batch. Inputs are on the first device and
  // targets on the last, or they are copied there; the first dimension of both
  // is the batch's rows. Afterwards the gradients of all parameters are those
  // of this step; if there are several micro-batches, they are f32, even for
  // bf16 and f16 parameters. Returns the mean loss, f32 (f64 for f64) [], on
  // the last device.
  struct StepOptions {
    Tensor loss_scale = {};  // f32 [] on the last device: multiplies the loss
    StepTrace* trace = nullptr;  // times each instruction and copy
  };
  Tensor Step(const BatchInputs& inputs, const Tensor& targets,
              const StepOptions& options);
  Tensor Step(const BatchInputs& inputs, const Tensor& targets) {
    return Step(inputs, targets, StepOptions());
  }

  // Measures a step on such a batch; later steps with "auto" are ordered by the
  // result. Returns the measured and the predicted course of a step, in
  // milliseconds, with the devices as workers. Runs some steps: parameters and
  // buffers stay as they were, but gradients are replaced, and random numbers
  // are drawn. Do not call it within a recording or after one was made.
  PipelineTiming Tune(const BatchInputs& inputs, const Tensor& targets);

  // Runs only the forwards, in eval mode; the outputs are on the last device.
  Values Evaluate(const BatchInputs& inputs);

  // Returns the number of micro-batches in a step on `rows` rows. Throws Error
  // as Step does.
  int64_t MicroBatches(int64_t rows) const;
  // Returns the parameters of all stages, in order, and of own_loss.
  std::vector<Variable> Parameters() const;
  std::vector<Device> devices() const;  // each once, in order
  int num_stages() const { return static_cast<int>(stages_.size()); }
  const DevicePipelineOptions& options() const { return options_; }

 private:
  // The last stage's results of each micro-batch.
  struct Results {
    std::vector<Tensor> losses;
    std::vector<Values> outputs;
  };
  // Runs a step of the plan with these micro-batches.
  Results Run(StepPlan plan, const std::vector<RowRange>& rows,
              const ProgramRun::Batch& batch, StepTrace* trace) const;
  // Returns the program by which one thread enqueues the work of all devices,
  // in the order of the predicted begin times.
  Program ProgramFor(bool training, const std::vector<RowRange>& rows) const;
  std::vector<RowRange> RowsOf(int64_t batch) const;
  // Returns the workload of groups of at_once micro-batches.
  Workload WorkFor(const std::vector<RowRange>& rows) const;
  Schedule ScheduleFor(const Workload& work) const;
  std::vector<StepTrace::Span> TimedStep(const BatchInputs& inputs,
                                         const Tensor& targets);
  // Copies each input to the device of the first stage that takes it.
  Values Placed(const BatchInputs& inputs) const;

  std::vector<DeviceStage> stages_;
  const DevicePipelineOptions options_;
  std::vector<StageCosts> costs_;  // of each stage; empty: the usual ones
  std::map<int, StageStreams>
      streams_;  // beside the current one, by index of the GPU
};

}  // namespace baton::dist
