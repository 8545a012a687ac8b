// MiniLM-L6 against twenty training steps of Hugging Face's transformers
// (scripts/reference/minilm_losses.py). Needs the model's folder: scripts/fetch_minilm.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/models/model_config.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/golden_tensors.h"
#include "worker/trainer/data/batch_tensors.h"
#include "worker/trainer/models/files/weights.h"
#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/optimizers/adamw.h"

namespace hpo::trainer {
namespace {

std::string MiniLmFolder() {
  const char* const models = std::getenv("HPO_MODEL_DIR");
  const char* const home = std::getenv("HOME");
  for (const std::string& folder :
       {absl::StrCat(models != nullptr ? models : "", "/all-minilm-l6-v2"),
        absl::StrCat(home != nullptr ? home : "", "/.cache/hpo/models/all-minilm-l6-v2")}) {
    if (std::filesystem::exists(folder + "/model.safetensors")) return folder;
  }
  return "";
}

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The model of the golden run: no dropout, and its fixed head.
std::shared_ptr<TextClassifier> LoadModel(const std::string& folder, int64_t num_labels) {
  auto shape = ParseModelConfig(ReadAll(folder + "/config.json"), folder + "/config.json");
  EXPECT_TRUE(shape.ok()) << shape.status();
  shape->hidden_dropout = shape->attention_dropout = 0.0;
  auto model = MakeTextClassifier(*shape, {.num_labels = num_labels, .dropout = 0.0}, torch::kCPU);
  EXPECT_TRUE(model.ok()) << model.status();
  const auto weights = SafetensorsFile::Open(folder + "/model.safetensors");
  EXPECT_TRUE(weights.ok()) << weights.status();
  const auto report = LoadParameters(**model, {&*weights, 1});
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->missing.size(), 2u);  // the head
  const torch::NoGradGuard no_grad;
  const auto parameters = (*model)->named_parameters();
  const torch::Tensor rows = at::arange(num_labels, torch::kFloat32).unsqueeze(1);
  const torch::Tensor columns = at::arange(shape->hidden_size, torch::kFloat32).unsqueeze(0);
  parameters["classifier.weight"].copy_(((7 * rows + 3 * columns).fmod(11) - 5) / 100);
  parameters["classifier.bias"].zero_();
  return *std::move(model);
}

DeviceBatch BatchOf(const nlohmann::json& json) {
  text::TokenBatch batch;
  const auto flatten = [&](const char* name) {
    std::vector<int64_t> values;
    for (const auto& row : json.at(name)) {
      for (const auto& value : row) values.push_back(value.get<int64_t>());
    }
    return values;
  };
  batch.rows = static_cast<int64_t>(json.at("ids").size());
  batch.ids = flatten("ids");
  batch.length = static_cast<int64_t>(batch.ids.size()) / batch.rows;
  batch.mask = flatten("mask");
  batch.type_ids = flatten("types");
  batch.labels = json.at("labels").get<std::vector<int64_t>>();
  return ToDevice(batch, /*num_labels=*/0, torch::kCPU);
}

TEST(MiniLmGolden, TwentyStepsHaveTheReferencesLosses) {
  const std::string folder = MiniLmFolder();
  if (folder.empty()) {
    GTEST_SKIP() << "no all-minilm-l6-v2 in HPO_MODEL_DIR or ~/.cache/hpo/models; "
                    "scripts/fetch_minilm fetches it";
  }
  const auto golden = nlohmann::json::parse(ReadAll(GoldenPath("minilm_losses.json")));
  const auto model = LoadModel(folder, golden.at("num_labels").get<int64_t>());
  model->train();
  AdamW optimizer(DecayGroups(*model, golden.at("weight_decay").get<double>()), AdamWOptions{});
  std::vector<DeviceBatch> batches;
  for (const auto& batch : golden.at("batches")) batches.push_back(BatchOf(batch));
  const auto losses = golden.at("losses").get<std::vector<double>>();
  ASSERT_EQ(losses.size(), 20u);
  for (size_t step = 0; step < losses.size(); ++step) {
    const DeviceBatch& batch = batches[step % batches.size()];
    const torch::Tensor loss = SumOfRowLosses(model->forward(batch.input), batch.labels) /
                               static_cast<double>(batch.labels.size(0));
    EXPECT_NEAR(loss.item<double>(), losses[step], 1e-4) << "step " << step;
    loss.backward();
    ClipGradients(optimizer.groups(), golden.at("max_grad_norm").get<double>());
    optimizer.Step(golden.at("lr").get<double>());
    ClearGradients(optimizer.groups());
  }
}

}  // namespace
}  // namespace hpo::trainer
