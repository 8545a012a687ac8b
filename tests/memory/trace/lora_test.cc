#include "memory/trace/lora.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/models/model_config.h"
#include "common/models/model_modules.h"
#include "common/study/model_catalog.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"

namespace hpo::memory {
namespace {

const nlohmann::json& Golden() {
  static const auto* const golden = new nlohmann::json(ReadGolden("model_catalog.json"));
  return *golden;
}

ModelShape ShapeOf(const std::string& name) {
  for (const char* part : {"tiny", "catalog"}) {
    const auto found = Golden()[part].find(name);
    if (found == Golden()[part].end()) continue;
    return ParseModelConfig((*found)["config"].dump(), name).value();
  }
  HPO_CHECK(false);
}

std::vector<std::string> SortedLines(const std::vector<ParameterTensor>& tensors) {
  std::vector<std::string> lines;
  for (const ParameterTensor& tensor : tensors) {
    lines.push_back(absl::StrCat(tensor.name, " ", tensor.rows, " ", tensor.columns));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<ParameterTensor> TensorsOf(const std::vector<AdaptedLayer>& layers, int64_t rank) {
  std::vector<ParameterTensor> tensors;
  for (const AdaptedLayer& layer : layers) {
    for (ParameterTensor& tensor : AdapterTensors(layer, rank))
      tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Of linear layers under the head; ours puts adapters on no others.
TEST(AdaptedLayers, AreThoseOfPeft) {
  for (const nlohmann::json& expected : Golden()["lora"]) {
    const std::string name = expected["model"];
    SCOPED_TRACE(absl::StrCat(name, " ", expected["targets"].dump()));
    const ModelShape shape = ShapeOf(name);
    const std::string prefix = absl::StrCat(ModulesOf(*ModelFamilyOf(shape.family)).prefix, ".");
    std::vector<std::string> lines;
    bool adapts_others = false;
    for (const std::string line : expected["lines"]) {
      adapts_others = adapts_others || absl::StrContains(line, ".lora_embedding_");
      if (absl::StartsWith(line, prefix)) lines.push_back(line);
    }
    if (adapts_others) continue;
    const int64_t rank = expected["rank"];
    const auto layers = AdaptedLayers(shape, {.rank = rank, .targets = expected["targets"]});
    ASSERT_TRUE(layers.ok()) << layers.status();
    std::vector<ParameterTensor> tensors = TensorsOf(*layers, rank);
    ASSERT_GE(tensors.size(), lines.size());
    // Of a large model the file lists the first layer.
    if (expected["tensors"] > expected["lines"].size()) tensors.resize(lines.size());
    std::sort(lines.begin(), lines.end());
    EXPECT_EQ(SortedLines(tensors), lines);
  }
}

TEST(AdaptedLayers, CostRankTimesInputsAndOutputs) {
  const ModelShape shape = *KnownModelShape("meta-llama/Llama-2-7b-hf");
  for (const int64_t rank : {1, 16, 128}) {
    const auto layers = AdaptedLayers(shape, {.rank = rank, .targets = {"q_proj", "down_proj"}});
    ASSERT_TRUE(layers.ok()) << layers.status();
    EXPECT_EQ(CountElements(TensorsOf(*layers, rank)),
              32 * rank * ((4096 + 4096) + (11008 + 4096)));
    EXPECT_EQ(layers->front().layer, 0);
    EXPECT_EQ(layers->back().layer, 31);
  }
}

TEST(AdaptedLayers, RefuseWhatCannotBeAdapted) {
  const ModelShape llama = *KnownModelShape("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  const ModelShape distilbert = *KnownModelShape("distilbert-base-uncased");
  const std::string kOfLlama =
      "lora.targets: expected ends of names of linear layers of llama (down_proj, gate_proj, "
      "k_proj, o_proj, q_proj, up_proj, v_proj) or all-linear, ";
  const std::tuple<ModelShape, LoraOptions, std::string> cases[] = {
      {llama, {.rank = 0}, "lora.rank: expected an integer in [1, 65536], got 0"},
      {llama,
       {.rank = int64_t{1} << 40},
       "lora.rank: expected an integer in [1, 65536], got 1099511627776"},
      {llama, {.targets = {"q_proj", "query"}}, kOfLlama + "got 'query'"},
      // An end of a word is not an end of a name; a norm has no adapter.
      {llama, {.targets = {"proj"}}, kOfLlama + "got 'proj'"},
      {llama, {.targets = {"input_layernorm"}}, kOfLlama + "got 'input_layernorm'"},
      {distilbert,
       {},
       "lora.targets: expected names of modules (peft has no default for distilbert)"},
  };
  for (const auto& [shape, options, message] : cases) {
    const absl::Status status = AdaptedLayers(shape, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), message);
  }
  EXPECT_TRUE(absl::IsUnimplemented(AdaptedLayers(ModelShape{.family = "t5"}, {}).status()));
}

std::vector<std::string> ModulesOfLayers(const std::vector<AdaptedLayer>& layers) {
  std::vector<std::string> modules;
  for (const AdaptedLayer& layer : layers) modules.push_back(layer.module);
  return modules;
}

TEST(AdaptedLayers, AreBelowTheHead) {
  ModelShape bert = *KnownModelShape("bert-base-uncased");
  bert.num_layers = 1;
  const auto queries = AdaptedLayers(bert, {.rank = 4});
  ASSERT_TRUE(queries.ok()) << queries.status();
  const std::string self = "bert.encoder.layer.0.attention.self.";
  EXPECT_EQ(*queries, (std::vector<AdaptedLayer>{
                          {.module = self + "query", .inputs = 768, .outputs = 768, .layer = 0},
                          {.module = self + "value", .inputs = 768, .outputs = 768, .layer = 0}}));
  const auto all = AdaptedLayers(bert, {.rank = 4, .targets = {kAllLinear}});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->size(), 7u);
  EXPECT_EQ(all->back().module, "bert.pooler.dense");
  // DeBERTa's pooler is a part of the head, RoBERTa's dense layer too.
  for (const char* name : {"microsoft/deberta-v3-base", "roberta-base"}) {
    const ModelShape shape = *KnownModelShape(name);
    const auto layers = AdaptedLayers(shape, {.rank = 4, .targets = {"dense"}});
    ASSERT_TRUE(layers.ok()) << layers.status();
    EXPECT_EQ(static_cast<int64_t>(layers->size()), 3 * shape.num_layers);
    for (const std::string& module : ModulesOfLayers(*layers)) {
      EXPECT_NE(module.find(".layer."), std::string::npos) << module;
    }
  }
}

TEST(AdaptedLayers, TurnTransposedWeightsAround) {
  const ModelShape gpt2 = *KnownModelShape("gpt2");
  const auto layers = AdaptedLayers(gpt2, {.rank = 2});
  ASSERT_TRUE(layers.ok()) << layers.status();
  ASSERT_EQ(layers->size(), 12u);
  EXPECT_EQ(layers->front().inputs, 768);
  EXPECT_EQ(layers->front().outputs, 3 * 768);
  const std::vector<ParameterTensor> tensors = AdapterTensors(layers->front(), 2);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "transformer.h.0.attn.c_attn.lora_A.default.weight");
  EXPECT_EQ(tensors[0].columns, 768);
  EXPECT_EQ(tensors[1].rows, 3 * 768);
}

// Unlike peft's, which may be on embeddings too.
TEST(AdaptedLayers, RefuseEmbeddingsAndUnknownNames) {
  const ModelShape gpt2 = *KnownModelShape("gpt2");
  for (const char* target : {"wte", "score", "query"}) {
    const absl::Status status = AdaptedLayers(gpt2, {.targets = {target}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              absl::StrCat("lora.targets: expected ends of names of linear layers of gpt2 (c_attn, "
                           "c_fc, c_proj) or all-linear, got '",
                           target, "'"));
  }
}

}  // namespace
}  // namespace hpo::memory
