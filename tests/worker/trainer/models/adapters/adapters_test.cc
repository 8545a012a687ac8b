// Adapters against what Hugging Face's peft computes (tests/golden/lora, by
// scripts/reference/lora.py), and as files that it opens.
#include "worker/trainer/models/adapters/adapters.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/models/model_config.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/golden_tensors.h"
#include "worker/trainer/models/files/adapter_folder.h"
#include "worker/trainer/models/files/weight_files.h"
#include "worker/trainer/models/files/weights.h"
#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/optimizers/adamw.h"

namespace hpo::trainer {
namespace {

constexpr char kPeftPrefix[] = "base_model.model.";

struct Case {
  const char* model;
  std::vector<std::string> targets;
};

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

SafetensorsFile Open(const std::string& path) {
  auto file = SafetensorsFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

class AdaptersTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const std::string folder = GoldenPath(absl::StrCat("tiny_models/", GetParam().model));
    const auto shape = ParseModelConfig(ReadText(folder + "/config.json"), folder);
    ASSERT_TRUE(shape.ok()) << shape.status();
    shape_ = *shape;
    options_ = {.rank = 4, .alpha = 6.0, .targets = GetParam().targets};
    auto model = MakeTextClassifier(shape_, {.num_labels = 3, .dropout = 0.0}, torch::kCPU);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    const auto weights = OpenWeights(folder);
    ASSERT_TRUE(weights.ok()) << weights.status();
    ASSERT_TRUE(LoadParameters(*model_, *weights).ok());
    const SafetensorsFile batch = Open(folder + "/expected.safetensors");
    input_ = {GoldenTensor(batch, "input_ids"), GoldenTensor(batch, "attention_mask"),
              GoldenTensor(batch, "token_type_ids")};
    labels_ = GoldenTensor(batch, "labels");
    const absl::Status added = AddAdapters(*model_, shape_, options_, /*seed=*/1, torch::kCPU);
    ASSERT_TRUE(added.ok()) << added;
  }

  std::string Golden(const std::string& file) const {
    return GoldenPath(absl::StrCat("lora/", GetParam().model, "/", file));
  }

  // Those of peft's file.
  void LoadAdapters() {
    const torch::NoGradGuard no_grad;
    const SafetensorsFile file = Open(Golden("adapter_model.safetensors"));
    size_t loaded = 0;
    for (auto& item : model_->named_parameters()) {
      if (!item.value().requires_grad()) continue;
      item.value().copy_(GoldenTensor(file, kPeftPrefix + item.key()));
      ++loaded;
    }
    EXPECT_EQ(loaded, file.tensors().size());
  }

  std::vector<torch::Tensor> Trained() const {
    std::vector<torch::Tensor> trained;
    for (const torch::Tensor& parameter : model_->parameters()) {
      if (parameter.requires_grad()) trained.push_back(parameter);
    }
    return trained;
  }

  torch::Tensor Logits() { return model_->forward(input_); }
  torch::Tensor Loss() { return at::cross_entropy_loss(Logits(), labels_); }

  // A folder of this test's.
  std::string Folder(const std::string& name) const {
    std::string test = absl::StrCat("adapters_", GetParam().model, "_", name);
    return testing::TempDir() + "/" + test;
  }

  ModelShape shape_;
  memory::LoraOptions options_;
  std::shared_ptr<TextClassifier> model_;
  ModelInput input_;
  torch::Tensor labels_;
};

TEST_P(AdaptersTest, ComputeWhatPeftComputes) {
  LoadAdapters();
  const SafetensorsFile expected = Open(Golden("expected.safetensors"));
  EXPECT_LE(LargestDifference(Logits(), GoldenTensor(expected, "logits")), 1e-5);
  const torch::Tensor loss = Loss();
  EXPECT_NEAR(loss.item<double>(), GoldenTensor(expected, "loss").item<double>(), 1e-5);
  loss.backward();
  for (const auto& item : model_->named_parameters()) {
    SCOPED_TRACE(item.key());
    ASSERT_EQ(item.value().grad().defined(), item.value().requires_grad());
    if (!item.value().requires_grad()) continue;
    const torch::Tensor gradient =
        GoldenTensor(expected, absl::StrCat("grad.", kPeftPrefix, item.key()));
    EXPECT_LE(LargestDifference(item.value().grad(), gradient), 1e-4);
    item.value().mutable_grad().reset();
  }
  AdamW optimizer({{.names = {}, .parameters = Trained(), .weight_decay = 0.01}}, AdamWOptions{});
  const torch::Tensor losses = GoldenTensor(expected, "adamw.losses");
  for (int64_t step = 0; step < losses.numel(); ++step) {
    const torch::Tensor step_loss = Loss();
    EXPECT_NEAR(step_loss.item<double>(), losses[step].item<double>(), 1e-5) << step;
    step_loss.backward();
    optimizer.Step(1e-3);
    ClearGradients(optimizer.groups());
  }
}

// B is zero, A is drawn between the bounds that its width gives.
TEST_P(AdaptersTest, ChangeNothingAtFirst) {
  const SafetensorsFile plain =
      Open(GoldenPath(absl::StrCat("tiny_models/", GetParam().model, "/expected.safetensors")));
  EXPECT_LE(LargestDifference(Logits(), GoldenTensor(plain, "logits")), 1e-5);
  for (const auto& item : model_->named_parameters()) {
    if (absl::StrContains(item.key(), "lora_A")) {
      const double bound = 1.0 / std::sqrt(static_cast<double>(item.value().size(1)));
      const double largest = item.value().abs().max().item<double>();
      EXPECT_LE(largest, bound) << item.key();
      EXPECT_GT(largest, 0.8 * bound) << item.key();
    }
  }
}

TEST_P(AdaptersTest, DependOnTheSeedAlone) {
  const auto other = MakeTextClassifier(shape_, {.num_labels = 3, .dropout = 0.0}, torch::kCPU);
  ASSERT_TRUE(other.ok()) << other.status();
  torch::manual_seed(12345);
  ASSERT_TRUE(AddAdapters(**other, shape_, options_, /*seed=*/1, torch::kCPU).ok());
  auto again = (*other)->named_parameters();
  std::set<double> sums;
  int adapters = 0;
  for (const auto& item : model_->named_parameters()) {
    if (!absl::StrContains(item.key(), "lora_A")) continue;
    EXPECT_TRUE(item.value().equal(*again.find(item.key()))) << item.key();
    sums.insert(item.value().sum().item<double>());
    ++adapters;
  }
  EXPECT_EQ(static_cast<int>(sums.size()), adapters) << "two are alike";
}

TEST_P(AdaptersTest, AreMergedIntoTheSavedWeights) {
  LoadAdapters();
  const std::string path = Folder("merged.safetensors");
  ASSERT_TRUE(SaveParameters(*model_, path).ok());
  const SafetensorsFile saved = Open(path);
  const SafetensorsFile expected = Open(Golden("expected.safetensors"));
  int merged = 0;
  for (const auto& [name, view] : expected.tensors()) {
    if (!absl::StartsWith(name, "merged.")) continue;
    ++merged;
    EXPECT_LE(LargestDifference(GoldenTensor(saved, name.substr(7)), GoldenTensor(expected, name)),
              1e-6)
        << name;
  }
  EXPECT_EQ(merged, 1);
  // A plain model takes them, and computes the same.
  const auto plain = MakeTextClassifier(shape_, {.num_labels = 3, .dropout = 0.0}, torch::kCPU);
  ASSERT_TRUE(plain.ok()) << plain.status();
  std::vector<SafetensorsFile> files;
  files.push_back(Open(path));
  const auto report = LoadParameters(**plain, files);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->missing.empty());
  EXPECT_LE(LargestDifference((*plain)->forward(input_), Logits()), 1e-5);
  std::filesystem::remove(path);
}

TEST_P(AdaptersTest, AreSavedAsPeftSavesThem) {
  LoadAdapters();
  const std::string folder = Folder("saved");
  const absl::Status written = WriteAdapterFolder(
      *model_, {.options = options_, .shape = shape_, .model_name = "tiny"}, folder);
  ASSERT_TRUE(written.ok()) << written;
  const SafetensorsFile saved = Open(folder + "/adapter_model.safetensors");
  const SafetensorsFile expected = Open(Golden("adapter_model.safetensors"));
  EXPECT_EQ(saved.tensors().size(), expected.tensors().size());
  for (const auto& [name, view] : expected.tensors()) {
    SCOPED_TRACE(name);
    ASSERT_NE(saved.Find(name), nullptr);
    EXPECT_EQ(saved.Find(name)->shape, view.shape);
    EXPECT_TRUE(GoldenTensor(saved, name).equal(GoldenTensor(expected, name)));
  }
  const auto config = nlohmann::json::parse(ReadText(folder + "/adapter_config.json"));
  const auto peft = nlohmann::json::parse(ReadText(Golden("adapter_config.json")));
  for (const char* key : {"peft_type", "task_type", "r", "lora_alpha", "lora_dropout",
                          "fan_in_fan_out", "bias", "inference_mode"}) {
    EXPECT_EQ(config[key], peft[key]) << key;
  }
  EXPECT_EQ(config["base_model_name_or_path"], "tiny");
  const std::string head = shape_.family == "bert" ? "classifier" : "score";
  EXPECT_EQ(config["modules_to_save"], nlohmann::json({head}));
  EXPECT_EQ(2 * config["target_modules"].size(),
            saved.tensors().size() - (head == "score" ? 1 : 2));
  std::filesystem::remove_all(folder);
}

// As on a model whose weights are those that the base stands for.
TEST_P(AdaptersTest, TrainOnAStoredBaseAsOnItsValues) {
  using Type = memory::FrozenType;
  const auto make = [this](Type base) {
    return *MakeTextClassifier(shape_, {.num_labels = 3, .dropout = 0.0}, torch::kCPU, base);
  };
  std::vector<SafetensorsFile> golden;
  golden.push_back(
      Open(GoldenPath(absl::StrCat("tiny_models/", GetParam().model, "/model.safetensors"))));
  for (const Type base : {Type::kBFloat16, Type::kNf4}) {
    const auto stored = make(base);
    ASSERT_TRUE(LoadParameters(*stored, golden).ok());
    const std::string path = Folder("stored.safetensors");
    ASSERT_TRUE(SaveParameters(*stored, path).ok());
    std::vector<SafetensorsFile> rounded;
    rounded.push_back(Open(path));
    EXPECT_EQ(rounded.front().tensors().size(), golden.front().tensors().size());
    const auto plain = make(Type::kFloat32);
    ASSERT_TRUE(LoadParameters(*plain, rounded).ok());
    for (const auto& model : {stored, plain}) {
      ASSERT_TRUE(AddAdapters(*model, shape_, options_, /*seed=*/1, torch::kCPU).ok());
    }
    auto of_plain = plain->named_parameters();
    for (int step = 0; step < 2; ++step) {
      const torch::Tensor a = at::cross_entropy_loss(stored->forward(input_), labels_);
      const torch::Tensor b = at::cross_entropy_loss(plain->forward(input_), labels_);
      EXPECT_NEAR(a.item<double>(), b.item<double>(), 1e-6);
      a.backward();
      b.backward();
      const torch::NoGradGuard no_grad;
      for (auto& item : stored->named_parameters()) {
        if (!item.value().requires_grad()) continue;
        torch::Tensor& other = of_plain[item.key()];
        EXPECT_LE(LargestDifference(item.value().grad(), other.grad()), 1e-6) << item.key();
        // A step of the same size, so that B is no longer zero.
        item.value().sub_(other.grad(), 0.1);
        other.sub_(other.grad(), 0.1);
        item.value().mutable_grad().reset();
        other.mutable_grad().reset();
      }
    }
    std::filesystem::remove(path);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AdaptersTest,
                         testing::Values(Case{"tiny-bert", {"query", "value"}},
                                         Case{"llama", {memory::kAllLinear}},
                                         Case{"gpt2", {"c_attn"}}),
                         [](const auto& tested) {
                           std::string name = tested.param.model;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Adapters, ATargetThatMatchesNothingNamesWhatThereIs) {
  const ModelShape shape = [] {
    const std::string folder = GoldenPath("tiny_models/tiny-bert");
    return *ParseModelConfig(ReadText(folder + "/config.json"), folder);
  }();
  const auto model = MakeTextClassifier(shape, {.num_labels = 3}, torch::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::Status status =
      AddAdapters(**model, shape, {.rank = 2, .targets = {"q_proj"}}, 1, torch::kCPU);
  EXPECT_EQ(status.message(),
            "lora.targets: expected ends of names of linear layers of bert (dense, key, query, "
            "value) or all-linear, got 'q_proj'");
  for (const torch::Tensor& parameter : (*model)->parameters()) {
    EXPECT_TRUE(parameter.requires_grad());
  }
}

}  // namespace
}  // namespace hpo::trainer
