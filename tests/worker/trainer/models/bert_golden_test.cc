// tiny-bert against outputs that other people's code computed (tests/golden/tiny_models).
#include <fstream>
#include <sstream>

#include "common/model_config.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/golden_tensors.h"
#include "worker/trainer/models/safetensors.h"
#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/models/weights.h"
#include "worker/trainer/training/adamw.h"

namespace hpo {
namespace {

class BertGolden : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream config(GoldenPath("tiny_models/tiny-bert/config.json"));
    std::ostringstream text;
    text << config.rdbuf();
    const auto shape = ParseModelConfig(text.str(), "tiny-bert/config.json");
    ASSERT_TRUE(shape.ok()) << shape.status();
    auto model = MakeTextClassifier(*shape, {.num_labels = 3, .dropout = 0.0}, torch::kCPU);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    auto weights = SafetensorsFile::Open(GoldenPath("tiny_models/tiny-bert/model.safetensors"));
    ASSERT_TRUE(weights.ok()) << weights.status();
    const auto report = LoadParameters(*model_, *weights);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->missing.empty());
    auto expected = SafetensorsFile::Open(GoldenPath("tiny_models/tiny-bert/expected.safetensors"));
    ASSERT_TRUE(expected.ok()) << expected.status();
    expected_ = std::make_unique<SafetensorsFile>(*std::move(expected));
    input_ = {Expected("input_ids"), Expected("attention_mask"), Expected("token_type_ids")};
    labels_ = Expected("labels");
  }

  torch::Tensor Expected(const std::string& name) { return GoldenTensor(*expected_, name); }
  torch::Tensor Loss() { return at::cross_entropy_loss(model_->forward(input_), labels_); }

  std::shared_ptr<TextClassifier> model_;
  std::unique_ptr<SafetensorsFile> expected_;
  EncoderInput input_;
  torch::Tensor labels_;
};

TEST_F(BertGolden, HiddenStatesAndLogitsAgree) {
  for (const bool training : {false, true}) {
    SCOPED_TRACE(training);
    model_->train(training);
    std::vector<torch::Tensor> hidden;
    const torch::Tensor logits = model_->Trace(input_, hidden);
    ASSERT_EQ(hidden.size(), 3u);
    const torch::Tensor real = input_.mask.unsqueeze(-1).to(torch::kFloat32);
    for (size_t i = 0; i < hidden.size(); ++i) {
      const torch::Tensor expected = Expected("hidden_states." + std::to_string(i));
      EXPECT_LE(LargestDifference(hidden[i] * real, expected * real), 1e-5) << "layer " << i;
    }
    EXPECT_LE(LargestDifference(logits, Expected("logits")), 1e-5);
  }
}

TEST_F(BertGolden, GradientsAgree) {
  const torch::Tensor loss = Loss();
  EXPECT_NEAR(loss.item<double>(), Expected("loss").item<double>(), 1e-5);
  loss.backward();
  const auto parameters = model_->named_parameters();
  EXPECT_EQ(parameters.size(), 41u);
  for (const auto& item : parameters) {
    EXPECT_LE(LargestDifference(item.value().grad(), Expected("grad." + item.key())), 1e-4)
        << item.key();
  }
}

TEST_F(BertGolden, FiveAdamWStepsAgree) {
  AdamW optimizer({{.names = {}, .parameters = model_->parameters(), .weight_decay = 0.01}},
                  AdamWOptions{});
  const torch::Tensor expected_losses = Expected("adamw.losses");
  for (int64_t step = 0; step < 5; ++step) {
    const torch::Tensor loss = Loss();
    EXPECT_NEAR(loss.item<double>(), expected_losses[step].item<double>(), 1e-5) << step;
    loss.backward();
    optimizer.Step(1e-3);
    ClearGradients(optimizer.groups());
  }
  const auto parameters = model_->named_parameters();
  for (const char* name :
       {"classifier.weight", "bert.encoder.layer.0.attention.self.query.weight"}) {
    EXPECT_LE(LargestDifference(parameters[name], Expected(std::string("adamw.after.") + name)),
              1e-5)
        << name;
  }
}

}  // namespace
}  // namespace hpo
