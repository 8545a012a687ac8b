#include "common/models/model_parameters.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/sha256.h"
#include "common/models/model_config.h"
#include "common/study/model_catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"

namespace hpo {
namespace {

const nlohmann::json& Golden() {
  static const auto* const golden = new nlohmann::json(ReadGolden("model_catalog.json"));
  return *golden;
}

TaskHead HeadOf(const std::string& name) {
  if (name == "causal-lm") return {.kind = TaskHead::Kind::kCausalLm};
  if (name == "none") return {};
  return {.kind = TaskHead::Kind::kSequenceClassification, .num_labels = Golden()["num_labels"]};
}

std::vector<std::string> LinesOf(const std::vector<ParameterTensor>& tensors) {
  std::vector<std::string> lines;
  for (const ParameterTensor& tensor : tensors) {
    lines.push_back(absl::StrCat(tensor.name, " ", tensor.rows, " ", tensor.columns));
  }
  return lines;
}

// What Hugging Face's own modules have, in their order: `expected` is one head of the golden file.
void ExpectTensors(const ModelShape& shape, const TaskHead& head, const nlohmann::json& expected) {
  const auto tensors = ParameterTensors(shape, head);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  const std::vector<std::string> lines = LinesOf(*tensors);
  EXPECT_EQ(lines.size(), expected["tensors"].get<size_t>());
  EXPECT_EQ(CountElements(*tensors), expected["parameters"].get<int64_t>());
  EXPECT_EQ(NumParameters(shape, head).value_or(0), expected["parameters"].get<int64_t>());
  if (expected.contains("lines")) {
    EXPECT_EQ(lines, expected["lines"].get<std::vector<std::string>>());
  } else {
    EXPECT_EQ(Sha256Hex(absl::StrJoin(lines, "\n")), expected["sha256"].get<std::string>());
  }
}

TEST(ParameterTensors, AreThoseOfHuggingFace) {
  for (const char* part : {"catalog", "tiny"}) {
    for (const auto& [name, entry] : Golden()[part].items()) {
      SCOPED_TRACE(name);
      const auto shape = ParseModelConfig(entry["config"].dump(), name);
      ASSERT_TRUE(shape.ok()) << shape.status();
      for (const auto& [head, expected] : entry["heads"].items()) {
        SCOPED_TRACE(head);
        ExpectTensors(*shape, HeadOf(head), expected);
      }
    }
  }
}

TEST(ParameterTensors, KnowTheirLayerAndKind) {
  const ModelShape shape = *KnownModelShape("gpt2");
  const auto tensors = ParameterTensors(shape, {.kind = TaskHead::Kind::kSequenceClassification});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ(tensors->front(),
            (ParameterTensor{"transformer.wte.weight", ParameterKind::kEmbedding, 50257, 768, -1}));
  EXPECT_EQ((*tensors)[4], (ParameterTensor{"transformer.h.0.attn.c_attn.weight",
                                            ParameterKind::kTransposedLinear, 768, 2304, 0}));
  EXPECT_EQ((*tensors)[5], (ParameterTensor{"transformer.h.0.attn.c_attn.bias",
                                            ParameterKind::kBias, 2304, 1, 0}));
  EXPECT_EQ((*tensors)[tensors->size() - 4].layer, 11);
  EXPECT_EQ((*tensors)[tensors->size() - 3],
            (ParameterTensor{"transformer.ln_f.weight", ParameterKind::kNorm, 768, 1, 12}));
  EXPECT_EQ(tensors->back(), (ParameterTensor{"score.weight", ParameterKind::kLinear, 2, 768, 12}));
}

TEST(ParameterTensors, RefuseWhatThereIsNot) {
  const ModelShape bert = *KnownModelShape("bert-base-uncased");
  ModelShape unknown = bert;
  unknown.family = "t5";
  ModelShape absurd = bert;
  absurd.hidden_size = int64_t{1} << 40;
  ModelShape empty = bert;
  empty.num_layers = 0;
  const TaskHead classifier = {.kind = TaskHead::Kind::kSequenceClassification};
  TaskHead no_labels = classifier;
  no_labels.num_labels = 0;
  const std::tuple<ModelShape, TaskHead, absl::StatusCode, const char*> cases[] = {
      {unknown,
       {},
       absl::StatusCode::kUnimplemented,
       "model_type: expected one of bert, roberta, xlm-roberta, camembert, deberta-v2, distilbert, "
       "electra, gpt2, llama, qwen2; got 't5'"},
      {absurd, classifier, absl::StatusCode::kInvalidArgument,
       "hidden_size: expected an integer in [1, 131072], got 1099511627776"},
      {empty,
       {},
       absl::StatusCode::kInvalidArgument,
       "num_layers: expected an integer in [1, 4096], got 0"},
      {bert, no_labels, absl::StatusCode::kInvalidArgument,
       "num_labels: expected an integer in [1, 1048576], got 0"},
      {bert,
       {.kind = TaskHead::Kind::kCausalLm},
       absl::StatusCode::kInvalidArgument,
       "head: expected a decoder (gpt2, llama, qwen2) under a language-model head, got bert"},
  };
  for (const auto& [shape, head, code, message] : cases) {
    SCOPED_TRACE(message);
    for (const absl::Status& status :
         {ParameterTensors(shape, head).status(), NumParameters(shape, head).status()}) {
      EXPECT_EQ(status.code(), code);
      EXPECT_EQ(status.message(), message);
    }
  }
}

TEST(NumParameters, DoNotOverflowAtTheBounds) {
  ModelShape shape = *KnownModelShape("meta-llama/Llama-2-7b-hf");
  shape.vocab_size = 1 << 24;
  shape.hidden_size = 1 << 17;
  shape.num_layers = 1 << 12;
  shape.num_heads = 1 << 12;
  shape.head_size = 1 << 14;
  shape.intermediate_size = 1 << 20;
  const auto parameters = NumParameters(shape, {.kind = TaskHead::Kind::kCausalLm});
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  // Sixteen bytes for each still fit.
  EXPECT_GT(*parameters, int64_t{1} << 54);
  EXPECT_LT(*parameters, int64_t{1} << 59);
}

TEST(IsHeavy, FromAQuarterOfABillionOn) {
  EXPECT_FALSE(IsHeavy(*KnownModelShape("microsoft/deberta-v3-base")));
  EXPECT_TRUE(IsHeavy(*KnownModelShape("xlm-roberta-base")));
  EXPECT_TRUE(IsHeavy(*KnownModelShape("Qwen/Qwen2.5-0.5B")));
  EXPECT_FALSE(IsHeavy(ModelShape{.family = "t5"}));
}

}  // namespace
}  // namespace hpo
