#include "common/models/model_modules.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/models/model_parameters.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

constexpr const char* kTypes[] = {"bert",       "roberta", "xlm-roberta", "camembert", "deberta-v2",
                                  "distilbert", "electra", "gpt2",        "llama",     "qwen2"};

ModelShape SmallShape(const char* type) {
  ModelShape shape;
  shape.family = type;
  shape.vocab_size = 50;
  shape.hidden_size = 8;
  shape.num_layers = 1;
  shape.num_heads = 2;
  shape.intermediate_size = 12;
  shape.max_positions = 16;
  shape.type_vocab_size = 2;
  return shape;
}

bool Has(const std::vector<ParameterTensor>& tensors, const std::string& name) {
  for (const ParameterTensor& tensor : tensors) {
    if (tensor.name == name) return true;
  }
  return false;
}

// The list of parameters is held to the library's by its own test.
TEST(ModelModules, NameParametersThatExist) {
  for (const char* type : kTypes) {
    SCOPED_TRACE(type);
    const ModelFamily family = *ModelFamilyOf(type);
    const auto tensors =
        ParameterTensors(SmallShape(type), {.kind = TaskHead::Kind::kSequenceClassification});
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    const ModelModules& modules = ModulesOf(family);
    const ClassifierModules& head = modules.classifier;
    EXPECT_TRUE(Has(*tensors, absl::StrCat(head.output, ".weight")));
    EXPECT_EQ(Has(*tensors, absl::StrCat(head.output, ".bias")), head.output_bias);
    EXPECT_EQ(head.dense == nullptr, IsDecoder(family));
    EXPECT_EQ(head.last_token, IsDecoder(family));
    if (IsDecoder(family)) continue;
    EXPECT_TRUE(Has(*tensors, absl::StrCat(head.dense, ".weight")));
    const EncoderLayerModules& layer = EncoderLayerModulesOf(family);
    for (const char* name :
         {layer.query, layer.key, layer.value, layer.attention_dense, layer.attention_norm,
          layer.intermediate, layer.output_dense, layer.output_norm}) {
      EXPECT_TRUE(
          Has(*tensors, absl::StrCat(modules.prefix, ".", modules.layers, ".0.", name, ".weight")))
          << name;
    }
  }
}

TEST(HeadDropoutOf, IsTheModelsButForDecoders) {
  ModelShape shape = SmallShape("roberta");
  shape.hidden_dropout = 0.25;
  EXPECT_EQ(HeadDropoutOf(shape), 0.25);
  shape.family = "gpt2";
  EXPECT_EQ(HeadDropoutOf(shape), 0.0);
}

TEST(ArchitectureName, IsTheLibrarysClass) {
  const std::pair<const char*, const char*> classes[] = {{"bert", "BertForX"},
                                                         {"roberta", "RobertaForX"},
                                                         {"xlm-roberta", "XLMRobertaForX"},
                                                         {"camembert", "CamembertForX"},
                                                         {"deberta-v2", "DebertaV2ForX"},
                                                         {"distilbert", "DistilBertForX"},
                                                         {"electra", "ElectraForX"},
                                                         {"gpt2", "GPT2ForX"},
                                                         {"llama", "LlamaForX"},
                                                         {"qwen2", "Qwen2ForX"}};
  for (const auto& [type, name] : classes) EXPECT_EQ(ArchitectureName(type, "ForX"), name);
}

}  // namespace
}  // namespace hpo
