#include "worker/trainer/models/files/weights.h"

#include <unistd.h>

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/golden_tensors.h"
#include "worker/trainer/models/files/safetensors_writer.h"
#include "worker/trainer/models/text_classifier.h"

namespace hpo::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

ModelShape TinyShape() {
  ModelShape shape;
  shape.family = "bert";
  shape.vocab_size = 120;
  shape.hidden_size = 32;
  shape.num_layers = 2;
  shape.num_heads = 4;
  shape.intermediate_size = 64;
  shape.max_positions = 40;
  shape.type_vocab_size = 2;
  return shape;
}

std::shared_ptr<TextClassifier> TinyModel(int64_t num_labels = 3) {
  auto model = MakeTextClassifier(TinyShape(), {.num_labels = num_labels}, torch::kCPU);
  EXPECT_TRUE(model.ok()) << model.status();
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : (*model)->parameters()) parameter.fill_(-7.0);
  return *std::move(model);
}

// A tensor under edit before it is written.
struct Entry {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;
  std::string bytes;
};

class LoadParametersTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto file = SafetensorsFile::Open(GoldenPath("tiny_models/tiny-bert/model.safetensors"));
    ASSERT_TRUE(file.ok()) << file.status();
    for (const auto& [name, view] : file->tensors()) {
      entries_.push_back({name,
                          view.type,
                          view.shape,
                          {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()}});
    }
  }
  ~LoadParametersTest() override { ::unlink(path_.c_str()); }

  Entry& Find(const std::string& name) {
    for (Entry& entry : entries_) {
      if (entry.name == name) return entry;
    }
    ADD_FAILURE() << name;
    return entries_.front();
  }

  void Remove(const std::string& part) {
    std::erase_if(entries_,
                  [&](const Entry& entry) { return absl::StrContains(entry.name, part); });
  }

  absl::StatusOr<LoadReport> Load(torch::nn::Module& model) {
    std::vector<TensorSource> sources;
    for (const Entry& entry : entries_) {
      sources.push_back({entry.name, entry.type, entry.shape,
                         [&entry] { return std::as_bytes(std::span(entry.bytes)); }});
    }
    EXPECT_TRUE(WriteSafetensors(path_, sources, {}).ok());
    const auto file = SafetensorsFile::Open(path_);
    EXPECT_TRUE(file.ok()) << file.status();
    return LoadParameters(model, {&*file, 1});
  }

  std::string path_ =
      absl::StrCat(testing::TempDir(), "/weights_test_", ::getpid(), ".safetensors");
  std::vector<Entry> entries_;
};

TEST_F(LoadParametersTest, ABareEncoderNeedsNoPrefixAndNoHead) {
  Remove("classifier");
  for (Entry& entry : entries_) entry.name = entry.name.substr(5);  // "bert."
  const auto model = TinyModel();
  const auto report = Load(*model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing, UnorderedElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_EQ(model->named_parameters()["classifier.bias"][0].item<float>(), -7.0f);
  EXPECT_NE(model->named_parameters()["bert.pooler.dense.bias"][0].item<float>(), -7.0f);
}

TEST_F(LoadParametersTest, OldNamesOfLayerNormAreTaken) {
  Find("bert.embeddings.LayerNorm.weight").name = "bert.embeddings.LayerNorm.gamma";
  Find("bert.embeddings.LayerNorm.bias").name = "bert.embeddings.LayerNorm.beta";
  const auto model = TinyModel();
  const auto report = Load(*model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->missing.empty());
}

TEST_F(LoadParametersTest, HalfPrecisionBecomesFloat32) {
  Entry& entry = Find("bert.pooler.dense.bias");
  const torch::Tensor halves = at::arange(32, torch::kFloat32).mul_(0.25).to(torch::kFloat16);
  entry.type = TensorType::kFloat16;
  entry.bytes.assign(static_cast<const char*>(halves.const_data_ptr()), halves.nbytes());
  Entry& brain = Find("classifier.bias");
  const torch::Tensor brain_values = at::full({3}, 1.5).to(torch::kBFloat16);
  brain.type = TensorType::kBfloat16;
  brain.bytes.assign(static_cast<const char*>(brain_values.const_data_ptr()),
                     brain_values.nbytes());
  const auto model = TinyModel();
  ASSERT_TRUE(Load(*model).ok());
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters["bert.pooler.dense.bias"][3].item<float>(), 0.75f);
  EXPECT_EQ(parameters["classifier.bias"][2].item<float>(), 1.5f);
}

TEST_F(LoadParametersTest, PretrainingHeadsAndBuffersAreIgnoredByName) {
  entries_.push_back({"cls.predictions.bias", TensorType::kFloat32, {1}, std::string(4, '\0')});
  entries_.push_back(
      {"bert.embeddings.position_ids", TensorType::kInt64, {1, 1}, std::string(8, '\0')});
  const auto model = TinyModel();
  const auto report = Load(*model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->ignored, ElementsAre("bert.embeddings.position_ids", "cls.predictions.bias"));
}

TEST_F(LoadParametersTest, TheHeadOfAnotherNumberOfLabelsIsLeftOut) {
  for (Entry& entry : entries_) {
    if (!absl::StartsWith(entry.name, "classifier.")) continue;
    entry.shape[0] = 1;
    entry.bytes.resize(entry.bytes.size() / 3);
  }
  const auto model = TinyModel();
  const auto report = Load(*model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing, UnorderedElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_THAT(report->other_head,
              UnorderedElementsAre("classifier.weight [1, 32]", "classifier.bias [1]"));
  EXPECT_EQ(model->named_parameters()["classifier.bias"][0].item<float>(), -7.0f);
  EXPECT_NE(model->named_parameters()["bert.pooler.dense.bias"][0].item<float>(), -7.0f);
}

TEST_F(LoadParametersTest, AHeadOfOtherNamesIsLeftOut) {
  Remove("classifier");
  for (const char* const name : {"classifier.out_proj.bias", "regression_head.weight"}) {
    entries_.push_back({name, TensorType::kFloat32, {1}, std::string(4, '\0')});
  }
  const auto model = TinyModel();
  const auto report = Load(*model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing, UnorderedElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_THAT(report->other_head,
              UnorderedElementsAre("classifier.out_proj.bias [1]", "regression_head.weight [1]"));
}

TEST_F(LoadParametersTest, AMissingPoolerIsInitialised) {
  Remove("pooler");
  const auto model = TinyModel();
  const auto report = Load(*model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing,
              UnorderedElementsAre("bert.pooler.dense.weight", "bert.pooler.dense.bias"));
}

TEST_F(LoadParametersTest, ErrorsNameTheTensorAndBothShapes) {
  Remove("layer.1.output.dense.bias");
  auto model = TinyModel();
  absl::Status status = Load(*model).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'bert.encoder.layer.1.output.dense.bias' of shape [32] is missing"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));

  SetUp();
  entries_.erase(entries_.begin(), entries_.end() - 41);
  Find("bert.pooler.dense.bias").shape = {2, 16};
  status = Load(*model).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'bert.pooler.dense.bias': expected floats of shape [32] by config.json, "
                        "found F32 [2, 16]"));
}

TEST_F(LoadParametersTest, ALayerTooManyIsAnError) {
  Entry extra = Find("bert.encoder.layer.1.output.dense.bias");
  extra.name = "bert.encoder.layer.2.output.dense.bias";
  entries_.push_back(extra);
  const auto model = TinyModel();
  EXPECT_THAT(std::string(Load(*model).status().message()),
              HasSubstr("'bert.encoder.layer.2.output.dense.bias' of shape [32] is no parameter"));
}

TEST_F(LoadParametersTest, IntegersAreNoWeights) {
  Entry& entry = Find("classifier.bias");
  entry.type = TensorType::kInt64;
  entry.bytes = std::string(24, '\1');
  const auto model = TinyModel();
  EXPECT_THAT(std::string(Load(*model).status().message()),
              HasSubstr("expected numbers of F32, F16, BF16 or F64, found I64"));
}

TEST_F(LoadParametersTest, QuantizedWeightsAreNamed) {
  Entry& entry = Find("bert.embeddings.LayerNorm.bias");
  entry.type = TensorType::kFloat8E4m3;
  entry.bytes = std::string(entry.bytes.size() / 4, '\1');
  const auto model = TinyModel();
  EXPECT_THAT(std::string(Load(*model).status().message()),
              HasSubstr("found F8_E4M3, as quantized models have"));
}

TEST(InitializeParameters, FollowsTheRulesByName) {
  const auto model = TinyModel();
  InitializeParameters(*model, ParameterNames(*model), 0.02, /*pad_token_id=*/3, 11);
  for (const auto& item : model->named_parameters()) {
    SCOPED_TRACE(item.key());
    const torch::Tensor& value = item.value();
    if (value.dim() == 1) {
      const double expected = absl::EndsWith(item.key(), "LayerNorm.weight") ? 1.0 : 0.0;
      EXPECT_TRUE(at::equal(value, at::full_like(value, expected)));
    } else {
      EXPECT_NEAR(value.std().item<double>(), 0.02, 0.006);
      EXPECT_NEAR(value.mean().item<double>(), 0.0, 0.006);
    }
  }
  const torch::Tensor words = model->named_parameters()["bert.embeddings.word_embeddings.weight"];
  EXPECT_EQ(words[3].abs().max().item<float>(), 0.0f);
  EXPECT_GT(words[4].abs().max().item<float>(), 0.0f);
}

TEST(InitializeParameters, AParameterDependsOnSeedAndPlaceAlone) {
  const auto all = TinyModel();
  InitializeParameters(*all, ParameterNames(*all), 0.02, 0, 11);
  const auto head_only = TinyModel();
  const std::vector<std::string> names = {"classifier.weight"};
  InitializeParameters(*head_only, names, 0.02, 0, 11);
  const torch::Tensor expected = all->named_parameters()["classifier.weight"];
  EXPECT_TRUE(at::equal(head_only->named_parameters()["classifier.weight"], expected));
  EXPECT_EQ(head_only->named_parameters()["classifier.bias"][0].item<float>(), -7.0f);
  const auto other = TinyModel();
  InitializeParameters(*other, names, 0.02, 0, 12);
  EXPECT_FALSE(at::equal(other->named_parameters()["classifier.weight"], expected));
}

TEST(MakeTextClassifier, RefusesWhatItCannotRun) {
  ModelShape shape = TinyShape();
  shape.family = "t5";
  const absl::Status unknown = MakeTextClassifier(shape, {}, torch::kCPU).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("model_type: expected one of bert, roberta, xlm-roberta"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("; got 't5'"));
  shape = TinyShape();
  shape.hidden_act = "softplus";
  EXPECT_EQ(MakeTextClassifier(shape, {}, torch::kCPU).status().code(),
            absl::StatusCode::kUnimplemented);
  shape = TinyShape();
  shape.attention_dropout = 1.0;
  EXPECT_EQ(MakeTextClassifier(shape, {}, torch::kCPU).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeTextClassifier(TinyShape(), {.hidden_sizes = {0}}, torch::kCPU).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo::trainer
