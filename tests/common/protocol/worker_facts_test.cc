#include "common/protocol/worker_facts_fields.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/full_values.h"

namespace hpo {
namespace {

TEST(WorkerFactsJson, KeepsEveryField) {
  const WorkerFacts facts = FullWorkerFacts();
  const auto again = FromJson<WorkerFacts>(nlohmann::json::parse(ToJson(facts).dump()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, facts);
}

TEST(WorkerFactsJson, NoStudyIsNotEveryStudy) {
  WorkerFacts facts = FullWorkerFacts();
  for (const std::vector<std::string>& names : {std::vector<std::string>{}, {"a", "b"}}) {
    facts.serves = names;
    const auto again = FromJson<WorkerFacts>(ToJson(facts));
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
    nlohmann::json json = ToJson(FullWorkerFacts());
    change(json);
    const auto facts = FromJson<WorkerFacts>(json);
    ASSERT_FALSE(facts.ok());
    EXPECT_NE(facts.status().message().find(expected), absl::string_view::npos) << facts.status();
  }
}

}  // namespace
}  // namespace hpo
