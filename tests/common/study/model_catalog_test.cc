#include "common/study/model_catalog.h"

#include <set>

#include "common/models/model_config.h"
#include "common/models/model_fields.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"

namespace hpo {
namespace {

// The configurations in the golden file are the published ones; Hugging Face counted their models.
TEST(ModelCatalog, IsWhatThePublishedConfigurationsSay) {
  const nlohmann::json golden = ReadGolden("model_catalog.json");
  std::set<std::string> golden_names;
  for (const auto& [name, entry] : golden["catalog"].items()) {
    SCOPED_TRACE(name);
    golden_names.insert(name);
    const auto shape = ParseModelConfig(entry["config"].dump(), name);
    ASSERT_TRUE(shape.ok()) << shape.status();
    const std::optional<ModelShape> known = KnownModelShape(name);
    ASSERT_TRUE(known.has_value());
    EXPECT_EQ(ToJson(*known), ToJson(*shape));
    EXPECT_EQ(*known, *shape);
  }
  const std::vector<std::string> names = KnownModelNames();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), golden_names);
  EXPECT_EQ(names.size(), golden_names.size());
}

TEST(ModelCatalog, KnowsWhereTheHubHasMovedAModel) {
  const std::pair<const char*, const char*> cases[] = {
      {"google-bert/bert-base-uncased", "bert-base-uncased"},
      {"FacebookAI/xlm-roberta-large", "xlm-roberta-large"},
      {"openai-community/gpt2", "gpt2"},
      {"distilbert/distilbert-base-uncased", "distilbert-base-uncased"},
      {"meta-llama/Llama-3.2-1B-Instruct", "meta-llama/Llama-3.2-1B"},
  };
  for (const auto& [name, same_as] : cases) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(KnownModelShape(name).has_value());
    EXPECT_EQ(*KnownModelShape(name), *KnownModelShape(same_as));
  }
  // Where tuning did change the shape, the table has both.
  EXPECT_NE(*KnownModelShape("Qwen/Qwen2.5-7B-Instruct"), *KnownModelShape("Qwen/Qwen2.5-7B"));
  for (const char* name : {"", "bert", "google-bert/", "-Instruct", "someone/gpt2"}) {
    EXPECT_EQ(KnownModelShape(name), std::nullopt) << name;
  }
}

TEST(ModelCatalog, AShortNameStandsForTheModelThatItBegins) {
  const std::pair<const char*, const char*> cases[] = {
      {"bert-large", "bert-large-uncased"},
      {"camembert", "camembert-base"},
      {"roberta", "roberta"},  // base or large
      {"roberta-base", "roberta-base"},
      {"gpt2", "gpt2"},  // one itself
      {"google-bert/bert-base-uncased", "google-bert/bert-base-uncased"},
      {"my-model", "my-model"},
      {"", ""},
  };
  for (const auto& [name, full] : cases) EXPECT_EQ(FullModelName(name), full) << name;
}

TEST(ModelFacts, ClassComesFromSizeOrFromTheList) {
  SearchSpace space;
  const ModelShape base = *KnownModelShape("bert-base-uncased");
  AddModelFacts(space, "a", base, /*listed_heavy=*/false);
  AddModelFacts(space, "b", base, /*listed_heavy=*/true);
  AddModelFacts(space, "c", *KnownModelShape("roberta-large"), /*listed_heavy=*/false);
  AddModelFacts(space, "d", /*listed_heavy=*/true);
  AddModelFacts(space, "e", /*listed_heavy=*/false);
  EXPECT_EQ(FormatParams(space.model_facts.at("a")), "model.class=base model.family=bert");
  EXPECT_EQ(FormatParams(space.model_facts.at("b")), "model.class=heavy model.family=bert");
  EXPECT_EQ(FormatParams(space.model_facts.at("c")), "model.class=heavy model.family=roberta");
  EXPECT_EQ(FormatParams(space.model_facts.at("d")), "model.class=heavy");
  EXPECT_EQ(space.model_facts.count("e"), 0u);
  // What a worker registers beats what was there.
  AddModelFacts(space, "c", base, /*listed_heavy=*/false);
  EXPECT_EQ(FormatParams(space.model_facts.at("c")), "model.class=base model.family=bert");
}

}  // namespace
}  // namespace hpo
