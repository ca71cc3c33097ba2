// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a ResNet data-parallel with all members that are present: members may
// join, leave and die at any time, and none is a permanent leader.
//   baton-run --workers=2 --restarts=9 --worker_program=elastic_ddp
//       --worker_flags="--depth=18 --data=train" --
//       elastic_ddp --depth=18 --data=train
// Or start each member on any machine at any time, beside a baton-rendezvous:
//   elastic_ddp --name=first --rendezvous=HOST:PORT --world_size=1
//   elastic_ddp --name=second --rendezvous=HOST:PORT --extra

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status.h"
#include "examples/support/charts.h"
#include "examples/support/findings.h"
#include "examples/support/measurement.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/training_log.h"
#include "models/data/batch_loader.h"
#include "models/data/open.h"
#include "models/data/synthetic.h"
#include "models/distributed/data_parallel/elastic.h"
#include "models/nn/loss.h"
#include "models/resnet.h"
#include "optim/any.h"
#include "rpc/cluster.h"
#include "tools/cluster_flags.h"
#include "tools/command_line.h"

ABSL_FLAG(int, depth, 50, "of the ResNet: 18, 34, 50, 101 or 152");
ABSL_FLAG(int64_t, width, 64, "channels after the stem");
ABSL_FLAG(std::string, data, "",
          "images to train on, as a folder of classes or CIFAR-10's files; "
          "default random ones");
ABSL_FLAG(int64_t, samples, 320, "random images of an epoch");
ABSL_FLAG(int64_t, image, 128, "height and width of random images");
ABSL_FLAG(int64_t, classes, 1000, "of random images");
ABSL_FLAG(int64_t, batch, 32, "images of a step, of all members together");
ABSL_FLAG(int64_t, epochs, 1, "that all members together train for");
ABSL_FLAG(int, min_members, 1, "fewest members that take a step");
ABSL_FLAG(int, max_members, 1024, "most members; who comes then waits");
ABSL_FLAG(uint64_t, seed, 0, "of weights, images and their order");

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "usage: baton-run --workers=2 --restarts=9 --worker_program=elastic_ddp "
    "--\n"
    "           elastic_ddp [FLAGS]\n"
    "Trains a ResNet data-parallel with whoever is there; the trainer is one "
    "of\n"
    "them, and tells at the end how it went.\n"
    "Default: --optimizer=sgd --lr=0.01 --momentum=0.9.";

// How long to wait for enough members.
constexpr std::chrono::minutes kPatience{10};

absl::StatusOr<std::shared_ptr<data::Dataset>> Images() {
  const std::string path = absl::GetFlag(FLAGS_data);
  if (!path.empty()) return data::OpenDataset(path);
  return std::shared_ptr<data::Dataset>(std::make_shared<data::Synthetic>(
      data::SyntheticOptions{.size = absl::GetFlag(FLAGS_samples),
                             .height = absl::GetFlag(FLAGS_image),
                             .width = absl::GetFlag(FLAGS_image),
                             .classes = absl::GetFlag(FLAGS_classes),
                             .seed = absl::GetFlag(FLAGS_seed)}));
}

absl::Status CheckFlags() {
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_width, FLAGS_samples, FLAGS_image,
                                 FLAGS_classes, FLAGS_batch, FLAGS_epochs));
  const int least = absl::GetFlag(FLAGS_min_members);
  if (least < 1 || least > absl::GetFlag(FLAGS_max_members))
    return tools::WrongFlag("min_members", "must be 1 to --max_members");
  return absl::OkStatus();
}

dist::ElasticOptions OptionsFor(const data::Dataset& images) {
  dist::ElasticOptions options;
  options.samples = std::make_shared<data::RandomSampler>(
      images.size(),
      data::RandomSamplerOptions{.seed = absl::GetFlag(FLAGS_seed)});
  options.batch = absl::GetFlag(FLAGS_batch);
  options.min_members = absl::GetFlag(FLAGS_min_members);
  options.max_members = absl::GetFlag(FLAGS_max_members);
  options.timeout = kPatience;
  return options;
}

// This member's model, optimizer and images.
class Trainee {
 public:
  Trainee(std::unique_ptr<models::ResNet> model,
          std::shared_ptr<data::Dataset> images,
          const optim::AnyOptions& optimizer)
      : model_(std::move(model)),
        optimizer_(model_->NamedParameters(), optimizer),
        make_(data::FromSamples([images = std::move(images)](int64_t i)
                                    -> absl::StatusOr<data::Tensors> {
          ASSIGN_OR_RETURN(const data::Sample sample, images->Get(i));
          return data::Tensors{
              sample.image.To(DType::kF32),
              Tensor::Scalar(static_cast<double>(sample.label), DType::kI64)};
        })) {}

  models::ResNet& model() { return *model_; }
  optim::Any& optimizer() { return optimizer_; }
  double rate() const { return optimizer_.lr(); }
  // Throws Error.
  Variable Loss(const dist::ElasticTraining::Share& share) {
    const auto batch = make_(share.epoch, share.samples);
    if (!batch.ok()) throw Error(batch.status());
    return nn::CrossEntropy((*model_)((*batch)[0]), (*batch)[1]);
  }

 private:
  const std::unique_ptr<models::ResNet> model_;
  optim::Any optimizer_;
  const data::MakeBatch make_;
};

absl::StatusOr<std::unique_ptr<Trainee>> MakeTrainee(
    std::shared_ptr<data::Dataset> images) {
  models::ResNetOptions model;
  model.depth = absl::GetFlag(FLAGS_depth);
  model.width = absl::GetFlag(FLAGS_width);
  model.num_classes = static_cast<int64_t>(images->classes().size());
  model.seed = absl::GetFlag(FLAGS_seed);
  ASSIGN_OR_RETURN(auto made, models::ResNet::Make(model));
  ASSIGN_OR_RETURN(
      const optim::AnyOptions optimizer,
      OptimizerFromFlags(
          {.kind = "sgd", .lr = 0.01, .others = {{"momentum", 0.9}}}));
  return std::make_unique<Trainee>(std::move(made), std::move(images),
                                   optimizer);
}

// Trains until the epochs are over; the details have the members of each step.
absl::StatusOr<Measurement> Train(rpc::Agent& agent) {
  using Clock = std::chrono::steady_clock;
  ASSIGN_OR_RETURN(const auto images, Images());
  ASSIGN_OR_RETURN(const auto trainee, MakeTrainee(images));
  ASSIGN_OR_RETURN(
      const auto training,
      dist::ElasticTraining::Make(agent, trainee->model(), trainee->optimizer(),
                                  OptionsFor(*images)));
  std::fprintf(stderr, "%s is in, process %d\n", agent.self().name.c_str(),
               static_cast<int>(::getpid()));
  Measurement measurement{
      .variant = "elastic", .items = absl::GetFlag(FLAGS_batch), .seconds = {}};
  std::vector<double> losses, members;
  std::optional<TrainingLog> log;  // of the member with rank 0
  while (training->epoch() < absl::GetFlag(FLAGS_epochs)) {
    const auto begin = Clock::now();
    ASSIGN_OR_RETURN(
        const dist::ElasticTraining::Done done,
        training->Step([&](const dist::ElasticTraining::Share& share) {
          return trainee->Loss(share);
        }));
    measurement.seconds.push_back(
        std::chrono::duration<double>(Clock::now() - begin).count());
    losses.push_back(done.loss);
    members.push_back(done.members);
    if (training->group().rank() != 0) continue;
    std::fprintf(stderr, "step %lld  epoch %lld  members %d  loss %.4f\n",
                 static_cast<long long>(done.step),
                 static_cast<long long>(done.epoch), done.members, done.loss);
    if (!log.has_value()) log.emplace("elastic", "images", trainee->rate());
    log->Add(done.step, absl::GetFlag(FLAGS_batch), {{"loss", done.loss}});
  }
  // A member that ended first would be taken for lost in the last step.
  training->group().Barrier().Await().IgnoreError();
  if (losses.empty())
    return absl::NotFoundError("the epochs were over before this member came");
  measurement.loss = losses.back();
  measurement.details = {{"batch", absl::GetFlag(FLAGS_batch)},
                         {"depth", int64_t{absl::GetFlag(FLAGS_depth)}},
                         {"members", std::move(members)},
                         {"losses", std::move(losses)}};
  return measurement;
}

absl::Status Main() {
  RETURN_IF_ERROR(CheckFlags());
  ASSIGN_OR_RETURN(rpc::ClusterOptions options,
                   tools::ClusterOptionsFromFlags("trainer"));
  const bool tells = options.name == "trainer";
  if (tells) RETURN_IF_ERROR(CheckFindingsFlags());
  options.agent.on_start = [](rpc::Agent& agent) {
    rpc::AttachCollectives(agent);
    dist::AttachElastic(agent);
  };
  rpc::Registry registry;
  rpc::RegisterCollectives(registry);
  dist::RegisterElastic(registry);
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   rpc::JoinCluster(std::move(options), std::move(registry)));
  const auto trained = CatchErrors([&] { return Train(*agent); });
  const absl::Status shutdown = agent->Shutdown();
  RETURN_IF_ERROR(trained.status());
  RETURN_IF_ERROR(shutdown);
  if (!tells) return absl::OkStatus();
  return Tell({.measurements = {*trained},
               .charts = {{"loss", LossChart("Members that come and go",
                                             {*trained})}}});
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::examples::Main());
}
