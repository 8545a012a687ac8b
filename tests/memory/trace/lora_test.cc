#include "memory/trace/lora.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/models/model_config.h"
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

TaskHead HeadOf(const std::string& name) {
  if (name == "causal-lm") return {.kind = TaskHead::Kind::kCausalLm};
  return {.kind = TaskHead::Kind::kSequenceClassification, .num_labels = Golden()["num_labels"]};
}

// peft puts a head's copies and embeddings' adapters where its modules are, in an order of its own.
std::vector<std::string> SortedLines(const std::vector<ParameterTensor>& tensors) {
  std::vector<std::string> lines;
  for (const ParameterTensor& tensor : tensors) {
    lines.push_back(absl::StrCat(tensor.name, " ", tensor.rows, " ", tensor.columns));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(LoraTensors, AreThoseOfPeft) {
  for (const nlohmann::json& expected : Golden()["lora"]) {
    const std::string name = expected["model"];
    SCOPED_TRACE(absl::StrCat(name, " ", expected["targets"].dump()));
    const auto tensors = LoraTensors(ShapeOf(name), HeadOf(expected["head"]),
                                     {.rank = expected["rank"], .targets = expected["targets"]});
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    EXPECT_EQ(CountElements(*tensors), expected["parameters"].get<int64_t>());
    EXPECT_EQ(tensors->size(), expected["tensors"].get<size_t>());
    std::vector<std::string> lines = expected["lines"];
    if (lines.size() < tensors->size()) {
      // Of a large model the file lists the first layer.
      EXPECT_EQ(SortedLines({tensors->begin(), tensors->begin() + lines.size()}),
                (std::sort(lines.begin(), lines.end()), lines));
    } else {
      std::sort(lines.begin(), lines.end());
      EXPECT_EQ(SortedLines(*tensors), lines);
    }
  }
}

TEST(LoraTensors, CostRankTimesInputsAndOutputs) {
  const ModelShape shape = *KnownModelShape("meta-llama/Llama-2-7b-hf");
  for (const int64_t rank : {1, 16, 128}) {
    const auto tensors = LoraTensors(shape, {.kind = TaskHead::Kind::kCausalLm},
                                     {.rank = rank, .targets = {"q_proj", "down_proj"}});
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    EXPECT_EQ(CountElements(*tensors), 32 * rank * ((4096 + 4096) + (11008 + 4096)));
    EXPECT_EQ(tensors->front().layer, 0);
    EXPECT_EQ(tensors->back().layer, 31);
  }
}

TEST(LoraTensors, RefuseWhatCannotBeAdapted) {
  const ModelShape llama = *KnownModelShape("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  const ModelShape distilbert = *KnownModelShape("distilbert-base-uncased");
  const std::string kOfLlama =
      "lora.targets: expected ends of names of linear layers or embeddings of llama (down_proj, "
      "embed_tokens, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj) or all-linear, ";
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
    const absl::Status status = LoraTensors(shape, {}, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), message);
  }
  EXPECT_TRUE(absl::IsUnimplemented(LoraTensors(ModelShape{.family = "t5"}, {}, {}).status()));
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

TEST(StoredTensorBytes, FollowTheBlocksOfFourBitWeights) {
  const ParameterTensor linear = {"h.c_attn.weight", ParameterKind::kLinear, 4096, 4096, 0};
  const ParameterTensor odd = {"a.weight", ParameterKind::kTransposedLinear, 3, 43, 0};
  const ParameterTensor norm = {"norm.weight", ParameterKind::kNorm, 4096, 1, 0};
  const ParameterTensor head = {"lm_head.weight", ParameterKind::kLinear, 32000, 4096, 32};
  const ParameterTensor score = {"score.weight", ParameterKind::kLinear, 2, 4096, 32};
  const FrozenStorage half = {.type = FrozenStorage::Type::kBFloat16};
  const FrozenStorage nf4 = {.type = FrozenStorage::Type::kNf4, .double_quantization = false};
  const FrozenStorage nested = {.type = FrozenStorage::Type::kNf4, .rest_element_bytes = 2};
  using Parts = std::vector<int64_t>;
  const std::tuple<ParameterTensor, FrozenStorage, Parts> cases[] = {
      {linear, {}, {4 * 4096 * 4096}},
      {linear, half, {2 * 4096 * 4096}},
      // Half a byte an element, 16 floats, and one float for 64 elements: the example of
      // bitsandbytes' documentation, 1 MiB of scales.
      {linear, nf4, {8 << 20, 64, 1 << 20}},
      {linear, nested, {8 << 20, 64, 256 << 10, 4 << 10, 4}},
      // 129 elements: 65 bytes of codes; 3 blocks.
      {odd, nf4, {65, 64, 12}},
      {odd, nested, {65, 64, 3, 4, 4}},
      {norm, nf4, {4 * 4096}},
      {norm, nested, {2 * 4096}},
      {head, nested, {2 * 32000 * 4096}},
      {score, nf4, {4 * 2 * 4096}},
  };
  for (const auto& [tensor, storage, bytes] : cases) {
    EXPECT_EQ(StoredTensorBytes(tensor, storage), bytes) << tensor.name;
  }
}

int64_t StoredBytes(const std::vector<ParameterTensor>& tensors, const FrozenStorage& storage) {
  int64_t total = 0;
  for (const ParameterTensor& tensor : tensors) {
    for (const int64_t bytes : StoredTensorBytes(tensor, storage)) total += bytes;
  }
  return total;
}

// Dettmers et al. 2023, section 3: double quantisation takes the scales from 0.5 to 0.127 bits a
// parameter.
TEST(StoredTensorBytes, OfALlamaAgreeWithTheSource) {
  const auto tensors = ParameterTensors(*KnownModelShape("meta-llama/Llama-2-7b-hf"),
                                        {.kind = TaskHead::Kind::kCausalLm});
  ASSERT_TRUE(tensors.ok());
  std::vector<ParameterTensor> linear;
  for (const ParameterTensor& tensor : *tensors) {
    if (tensor.kind == ParameterKind::kLinear && tensor.layer < 32) linear.push_back(tensor);
  }
  const double parameters = static_cast<double>(CountElements(linear));
  const auto bits = [&](bool twice) {
    const FrozenStorage storage = {.type = FrozenStorage::Type::kNf4, .double_quantization = twice};
    return 8.0 * static_cast<double>(StoredBytes(linear, storage)) / parameters;
  };
  EXPECT_NEAR(bits(false) - 4.0, 0.5, 0.001);
  EXPECT_NEAR(bits(true) - 4.0, 0.127, 0.001);
  // The whole of it in 16 bits: the 13.5 GB that is known of Llama-2-7B.
  EXPECT_EQ(StoredBytes(*tensors, {.type = FrozenStorage::Type::kFloat16}), 2 * 6'738'415'616);
}

}  // namespace
}  // namespace hpo::memory
