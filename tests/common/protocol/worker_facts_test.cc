#include "common/protocol/worker_facts.h"

#include "common/study/model_catalog.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

WorkerFacts FullFacts() {
  WorkerFacts facts;
  facts.worker = "host:gpu0";
  facts.instance_key = "0123";
  facts.version = "0.1.0";
  facts.torch_build = "2.11.0+cu130";
  facts.trainer = "hpo-trainer";
  facts.plans = false;
  facts.device = {.kind = "cuda",
                  .name = "NVIDIA H200",
                  .uuid = "GPU-1",
                  .driver = "580",
                  .total = GiB(140),
                  .base = MiB(500),
                  .workspace = MiB(32),
                  .source = "measured",
                  .torch_build = "2.11.0+cu130",
                  .capability = "9.0",
                  .attention = "efficient",
                  .allocator = "expandable_segments:True",
                  .threads = 3};
  facts.capacity = GiB(139);
  facts.models = {{.name = "bert-base-uncased",
                   .shape = *KnownModelShape("bert-base-uncased"),
                   .digest = "aa",
                   .tokenizer_digest = "bb",
                   .has_weights = true}};
  facts.data_sets = {{.name = "train.jsonl",
                      .digest = "cc",
                      .rows = 3,
                      .labels = {"no", "yes"},
                      .multi_label = true,
                      .pairs = true,
                      .lengths = {{"bb", {{12, 2}, {90, 1}}}}}};
  return facts;
}

TEST(WorkerFactsJson, KeepsEveryField) {
  const WorkerFacts facts = FullFacts();
  const auto again = WorkerFactsFromJson(nlohmann::json::parse(WorkerFactsToJson(facts).dump()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, facts);
}

TEST(WorkerFactsJson, NoStudyIsNotEveryStudy) {
  WorkerFacts facts = FullFacts();
  for (const std::vector<std::string>& names : {std::vector<std::string>{}, {"a", "b"}}) {
    facts.serves = names;
    const auto again = WorkerFactsFromJson(WorkerFactsToJson(facts));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, facts);
  }
}

TEST(WorkerFactsJson, ErrorsNameTheMember) {
  using Change = void (*)(nlohmann::json&);
  const std::pair<Change, const char*> cases[] = {
      {[](nlohmann::json& json) { json.erase("worker"); }, "worker: missing"},
      {[](nlohmann::json& json) { json["device"].erase("kind"); }, "device: kind: missing"},
      {[](nlohmann::json& json) { json["models"][0].erase("shape"); },
       "models: [0]: shape: missing"},
      {[](nlohmann::json& json) { json["models"][0]["shape"]["num_heads"] = 0; },
       "models: [0]: shape: num_heads: expected an integer in [1, 4096], got 0"},
      {[](nlohmann::json& json) { json["data_sets"][0]["rows"] = "3"; },
       "data_sets: [0]: rows: expected an integer, got the string \"3\""},
      {[](nlohmann::json& json) {
         json["data_sets"][0]["lengths"]["bb"] = {{12, -2}};
       },
       "data_sets: [0]: lengths: bb: expected pairs [length, rows]"},
      {[](nlohmann::json& json) { json["data_sets"][0]["lengths"]["bb"] = 3; },
       "data_sets: [0]: lengths: bb: expected pairs [length, rows], got the integer 3"},
      {[](nlohmann::json& json) { json["data_sets"][0]["lengths"] = "none"; },
       "data_sets: [0]: lengths: expected an object"},
      {[](nlohmann::json& json) { json["models"] = "none"; }, "models: expected an array"},
  };
  for (const auto& [change, expected] : cases) {
    SCOPED_TRACE(expected);
    nlohmann::json json = WorkerFactsToJson(FullFacts());
    change(json);
    const auto facts = WorkerFactsFromJson(json);
    ASSERT_FALSE(facts.ok());
    EXPECT_NE(facts.status().message().find(expected), absl::string_view::npos) << facts.status();
  }
}

}  // namespace
}  // namespace hpo
