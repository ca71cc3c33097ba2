// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What saving ResNet50 with Adam costs: how long a training is held up until a
// save returns, and by how much the step after it takes longer; how fast shards
// reach the disk, and how long it takes to resume from them beside a plain
// reading of the same files. Files are read from the disk, as after a start of
// the machine.
//
//   checkpoint_bench --folder=/data/bench [--device=cuda]
//   dd if=/dev/zero of=/data/bench/dd bs=1M count=293 conv=fsync
//
// Each save comes after a training step, as in a training; the step that comes
// beside the writing is timed in a save of its own.

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "core/checkpoint_writer.h"
#include "core/file.h"
#include "core/random.h"
#include "core/status.h"
#include "core/stream.h"
#include "models/nn/loss.h"
#include "models/resnet.h"
#include "optim/adam.h"
#include "tests/bench/bench_main.h"
#include "tests/bench/timing.h"

ABSL_FLAG(std::string, folder, "/tmp/checkpoint_bench",
          "where to save; its checkpoints are removed");
ABSL_FLAG(std::string, device, "cpu", "where to train: cpu, cuda or cuda:N");
ABSL_FLAG(int64_t, batch, 8, "images of a step");
ABSL_FLAG(int64_t, image, 64, "height and width of the images");
ABSL_FLAG(int, repeat, 5, "saves, after one that is not counted");

namespace baton {
namespace {

double SecondsSince(bench::Clock::time_point begin) {
  return bench::Microseconds(bench::Clock::now() - begin) / 1e6;
}

struct Training {
  std::shared_ptr<models::ResNet> model;
  std::unique_ptr<optim::Adam> adam;

  static absl::StatusOr<Training> Make(Device device) {
    Training training;
    ASSIGN_OR_RETURN(training.model, models::ResNet::Make({.depth = 50}));
    training.model->To(device);
    training.adam = std::make_unique<optim::Adam>(
        training.model->NamedParameters(), optim::AdamOptions{.lr = 1e-4});
    return training;
  }
  void Step(const Tensor& images, const Tensor& labels) const {
    adam->ZeroGrad();
    nn::CrossEntropy(model->Forward(Variable(images)), labels).Backward();
    adam->Step();
    Synchronize(images.device());
  }
  NamedTensors State() const {
    NamedTensors state = AsPart("model", model->StateDict());
    state.merge(AsPart("optimizer", adam->SharedState()));
    return state;
  }
  absl::Status Resume(const std::string& folder, int64_t step) const {
    ASSIGN_OR_RETURN(const Checkpoint saved, Checkpoint::Open(folder, step));
    ASSIGN_OR_RETURN(const NamedTensors all, saved.Read(saved.Names()));
    RETURN_IF_ERROR(model->LoadStateDict(PartOf(all, "model")));
    RETURN_IF_ERROR(adam->ImportState(PartOf(all, "optimizer")));
    Synchronize(model->device());
    return absl::OkStatus();
  }
};

std::vector<std::string> FilesOf(const std::string& folder, int64_t step) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           absl::StrCat(folder, "/step_", step)))
    files.push_back(entry.path());
  return files;
}

// So that who reads next reads the disk.
absl::Status Forget(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    ASSIGN_OR_RETURN(const File file, File::Open(path));
    posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
  return absl::OkStatus();
}

// As dd of=/dev/null bs=1M does; gives the bytes.
absl::StatusOr<uint64_t> ReadPlainly(const std::vector<std::string>& files) {
  std::vector<char> buffer(size_t{1} << 20);
  uint64_t all = 0;
  for (const std::string& path : files) {
    ASSIGN_OR_RETURN(const File file, File::Open(path));
    ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
    for (uint64_t at = 0; at < bytes; at += buffer.size()) {
      RETURN_IF_ERROR(file.ReadAt(
          buffer.data(), std::min<uint64_t>(buffer.size(), bytes - at), at));
    }
    all += bytes;
  }
  return all;
}

struct Batch {
  Tensor images, labels;
};

double StepTime(const Training& training, const Batch& batch) {
  const auto step = bench::Clock::now();
  training.Step(batch.images, batch.labels);
  return SecondsSince(step);
}

absl::Status Measure(const Training& training, const Batch& batch,
                     CheckpointWriter& writer, int64_t number, bool counts) {
  const std::string& folder = writer.options().folder;
  const double step_s = StepTime(training, batch);
  RETURN_IF_ERROR(writer.Save(2 * number, training.State()));
  const double beside_s = StepTime(training, batch);
  RETURN_IF_ERROR(writer.Wait());
  const auto hold = bench::Clock::now();
  RETURN_IF_ERROR(writer.Save(2 * number + 1, training.State()));
  const double hold_s = SecondsSince(hold);
  const auto write = bench::Clock::now();
  RETURN_IF_ERROR(writer.Wait());
  const double write_s = SecondsSince(write);

  const std::vector<std::string> files = FilesOf(folder, 2 * number + 1);
  RETURN_IF_ERROR(Forget(files));
  const auto read = bench::Clock::now();
  ASSIGN_OR_RETURN(const uint64_t bytes, ReadPlainly(files));
  const double read_s = SecondsSince(read);
  RETURN_IF_ERROR(Forget(files));
  const auto resume = bench::Clock::now();
  RETURN_IF_ERROR(training.Resume(folder, 2 * number + 1));
  const double resume_s = SecondsSince(resume);
  if (!counts) return absl::OkStatus();
  const double mb = static_cast<double>(bytes) / 1e6;
  std::printf(
      "step %.1f ms, held up %.1f ms (%.1f%%), next step %.1f ms; %.0f MB "
      "written at %.0f MB/s, read plainly in %.2f s (%.0f MB/s), resumed in "
      "%.2f s\n",
      1e3 * step_s, 1e3 * hold_s, 100 * hold_s / step_s, 1e3 * beside_s, mb,
      mb / write_s, read_s, mb / read_s, resume_s);
  return absl::OkStatus();
}

absl::Status Run() {
  ASSIGN_OR_RETURN(const Device device,
                   Device::Parse(absl::GetFlag(FLAGS_device)));
  const std::string folder = absl::GetFlag(FLAGS_folder);
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  const int64_t image = absl::GetFlag(FLAGS_image);
  Generator generator(1);
  ASSIGN_OR_RETURN(const Training training, Training::Make(device));
  const Batch data = {RandNormal({batch, 3, image, image}, generator)
                          .Contiguous(MemoryFormat::kChannelsLast)
                          .To(device),
                      RandInt(0, 1000, {batch}, generator).To(device)};
  CheckpointWriter writer({.folder = folder, .keep = 0});
  for (int i = 0; i <= absl::GetFlag(FLAGS_repeat); ++i) {
    RETURN_IF_ERROR(Measure(training, data, writer, i, i > 0));
    for (const int64_t before : CheckpointSteps(folder))
      std::filesystem::remove_all(absl::StrCat(folder, "/step_", before));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  return baton::bench::Main(argc, argv, baton::Run);
}
