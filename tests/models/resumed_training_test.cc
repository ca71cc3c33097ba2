// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/checkpoint_writer.h"
#include "core/random.h"
#include "core/status.h"
#include "models/data/batch_loader.h"
#include "models/mlp.h"
#include "models/nn/loss.h"
#include "optim/adam.h"
#include "optim/grad_scaler.h"
#include "tests/support/test_device.h"
#include "tests/support/test_files.h"

// A training of one process with everything that a checkpoint has to keep:
// dropout, a schedule, a loss scale, samples in random order.
namespace baton {
namespace {

constexpr int kSamples = 22, kBatch = 4, kSteps = 15;  // six batches an epoch

class Training {
 public:
  // Weights and dropout begin as `seed` says; data and order are the same.
  explicit Training(uint64_t seed)
      : generator_(seed),
        model_({.widths = {5, 16, 3}, .dropout = 0.3}, generator_),
        adam_(Placed().NamedParameters(), {.lr = 0.05}),
        scaler_({test::TestDevice()}, {.scale = 64, .interval = 4}) {
    adam_.set_schedule(optim::CosineLr({.total = kSteps}));
    Generator data(3);
    const Tensor samples = RandNormal({kSamples, 5}, data);
    const Tensor labels = RandInt(0, 3, {kSamples}, data);
    loader_ =
        data::BatchLoader::Make(
            std::make_shared<data::FixedBatches>(
                std::make_shared<data::RandomSampler>(kSamples), kBatch),
            data::FromSamples([samples, labels](
                                  int64_t i) -> absl::StatusOr<data::Tensors> {
              return data::Tensors{samples.Select(0, i), labels.Select(0, i)};
            }),
            {.device = test::TestDevice()})
            .value();
  }

  // The losses of so many steps, epoch after epoch.
  std::vector<double> Train(int steps) {
    std::vector<double> losses;
    while (static_cast<int>(losses.size()) < steps) {
      const auto batch = loader_->Next().value();
      if (!batch.has_value()) {
        loader_->StartEpoch(loader_->epoch() + 1);
        continue;
      }
      adam_.ZeroGrad();
      const Variable loss = nn::CrossEntropy(
          model_.Forward(Variable(batch->at(0))), batch->at(1));
      loss.Backward(scaler_.scale(test::TestDevice()));
      scaler_.Step(adam_);
      losses.push_back(loss.tensor().Item());
    }
    return losses;
  }

  NamedTensors State() const {
    NamedTensors state = AsPart("model", model_.StateDict());
    state.merge(AsPart("generators", model_.GeneratorState()));
    state.merge(AsPart("optimizer", adam_.SharedState()));
    state.merge(AsPart("scaler", scaler_.ExportState()));
    state.merge(AsPart("loader", loader_->ExportState()));
    return state;
  }
  absl::Status Load(const Checkpoint& from) {
    ASSIGN_OR_RETURN(const NamedTensors all, from.Read(from.Names()));
    RETURN_IF_ERROR(model_.LoadStateDict(PartOf(all, "model")));
    RETURN_IF_ERROR(model_.LoadGeneratorState(PartOf(all, "generators")));
    RETURN_IF_ERROR(adam_.ImportState(PartOf(all, "optimizer")));
    RETURN_IF_ERROR(scaler_.ImportState(PartOf(all, "scaler")));
    return loader_->ImportState(PartOf(all, "loader"));
  }
  double rate() const { return adam_.lr(); }
  double scale() const { return scaler_.scale(test::TestDevice()).Item(); }

 private:
  models::Mlp& Placed() {
    model_.To(test::TestDevice());
    return model_;
  }

  Generator generator_;
  models::Mlp model_;
  optim::Adam adam_;
  optim::GradScaler scaler_;
  std::unique_ptr<data::BatchLoader> loader_;
};

TEST(ResumedTraining, HasTheLossesRatesAndScalesOfTheUndisturbedOne) {
  constexpr int kSaved = 8;  // in the middle of the second epoch
  const testing::TempFolder folder;
  Training whole(1);
  std::vector<double> undisturbed = whole.Train(kSteps);
  {
    Training first(1);
    first.Train(kSaved);
    CheckpointWriter writer({.folder = folder / "run"});
    ASSERT_TRUE(writer.Save(kSaved, first.State()).ok());
    first.Train(2);  // is no part of it, though it may not be written yet
    ASSERT_TRUE(writer.Wait().ok());
  }
  Training resumed(9);
  const auto step =
      ResumeFrom(folder / "run", IfBroken::kFail,
                 [&](const Checkpoint& from) { return resumed.Load(from); });
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(*step, kSaved);
  undisturbed.erase(undisturbed.begin(), undisturbed.begin() + kSaved);
  const std::vector<double> losses = resumed.Train(kSteps - kSaved);
  if (test::TestDevice().is_cpu()) {
    EXPECT_EQ(losses, undisturbed);
  } else {
    EXPECT_NEAR(losses.back(), undisturbed.back(), 1e-4);
  }
  EXPECT_EQ(resumed.rate(), whole.rate());
  EXPECT_EQ(resumed.scale(), whole.scale());
  EXPECT_EQ(whole.scale(), 64 * 8);  // it grew three times
}

}  // namespace
}  // namespace baton
