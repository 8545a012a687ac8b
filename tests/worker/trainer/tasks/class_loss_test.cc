// Losses of classification with class weights and label smoothing, against torch's own mean over
// the whole batch.
#include "gtest/gtest.h"
#include "tests/worker/trainer/golden_tensors.h"
#include "tests/worker/trainer/tiny_model.h"
#include "worker/trainer/tasks/text_classification.h"

namespace hpo::trainer {
namespace {

class ClassLossTest : public TinyModelTest {
 protected:
  // Without dropout.
  void UseLoss(const LabelLoss& loss) {
    task_ = std::make_unique<TextClassification>(model_, Parts(), loss);
    model_->eval();
  }

  TaskParts Parts() const { return {.data = data_, .max_positions = 64}; }

  // Half of the rows get a second label.
  void UseSeveralLabels() {
    data_.train.multi_label = true;
    data_.train.labels.clear();
    data_.train.label_offsets = {0};
    for (int32_t row = 0; row < data_.train.num_rows(); ++row) {
      data_.train.labels.push_back(row % 2);
      if (row % 2 == 0) data_.train.labels.push_back(2);
      data_.train.label_offsets.push_back(static_cast<int64_t>(data_.train.labels.size()));
    }
  }

  DeviceBatch WholeBatch() const {
    return ToDevice(text::PadBatch(data_.train, rows_, 64), data_.train.num_labels, torch::kCPU);
  }

  // In parts of every size the loss and gradients of `whole`, a mean.
  void ExpectGradientsOf(const torch::Tensor& whole) {
    whole.backward();
    const Gradients expected = TakeGradients();
    for (const int64_t micro_batch : {16, 5, 1}) {
      SCOPED_TRACE(micro_batch);
      EXPECT_NEAR(Compute({.effective_batch = 16, .micro_batch = micro_batch}),
                  whole.item<double>(), 1e-6);
      const Gradients split = TakeGradients();
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_LE(LargestDifference(split[i], expected[i]), 1e-6) << i;
      }
    }
  }

  const std::vector<float> weights_ = {0.3f, 1.0f, 4.0f};
};

TEST_F(ClassLossTest, OneLabelARowHasTorchsWeightedSmoothedMean) {
  for (const bool weighted : {false, true}) {
    for (const double smoothing : {0.0, 0.2}) {
      SCOPED_TRACE(testing::Message() << weighted << " " << smoothing);
      UseLoss({.weights = weighted ? weights_ : std::vector<float>(), .smoothing = smoothing});
      const DeviceBatch batch = WholeBatch();
      ExpectGradientsOf(at::cross_entropy_loss(model_->forward(batch.input), batch.labels,
                                               weighted ? torch::tensor(weights_) : torch::Tensor(),
                                               at::Reduction::Mean, -100, smoothing));
    }
  }
}

TEST_F(ClassLossTest, SeveralLabelsARowHaveTorchsPositiveWeights) {
  UseSeveralLabels();
  for (const double smoothing : {0.0, 0.2}) {
    SCOPED_TRACE(smoothing);
    UseLoss({.weights = weights_, .smoothing = smoothing});
    const DeviceBatch batch = WholeBatch();
    const torch::Tensor labels = batch.labels * (1.0 - smoothing) + smoothing / 2.0;
    ExpectGradientsOf(at::binary_cross_entropy_with_logits(
        model_->forward(batch.input), labels, {}, torch::tensor(weights_), at::Reduction::Mean));
  }
}

// So that trials with other weights compare.
TEST_F(ClassLossTest, TheValidationLossIsPlain) {
  UseLoss({});
  const auto batches = text::EvaluationBatches(data_.validation, 7);
  const Metrics plain = task_->Evaluate(batches);
  UseLoss({.weights = weights_, .smoothing = 0.2});
  EXPECT_EQ(task_->Evaluate(batches), plain);
}

}  // namespace
}  // namespace hpo::trainer
