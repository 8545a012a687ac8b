// The commands of `hpo memory` that ask a server, against a real one in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/program/program.h"
#include "common/study/model_catalog.h"
#include "nlohmann/json.hpp"
#include "proto/convert/worker_proto.h"
#include "tests/cli/run_program.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;

constexpr char kStudy[] = R"(name: sized
objective: {metric: score, direction: maximize}
trainer: {train: train.jsonl, validation: valid.jsonl, labels: ["no", "yes"]}
budget: {trials: 4}
memory: {policy: strict}
sampler: {type: random, seed: 1}
pruner: {type: none}
parameters:
  model.name: {choices: [all-minilm-l6-v2]}
  tok.max_length: {choices: [64, 128]}
  train.batch_size: {choices: [8, 16, 64]}
)";

class MemoryServer : public server::CoordinatorFixture {
 protected:
  ProgramResult Run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--server", coordinator_->address()});
    return RunProgram(std::move(words));
  }

  nlohmann::json RunJson(std::vector<std::string> words, int status) const {
    words.insert(words.end(), {"--output", "json"});
    return ParsedOutput(Run(std::move(words)), status);
  }

  // A worker of 2 GiB on a CPU whose trainer plans, or does not, with the study's model and data.
  std::string RegisterPlanner(bool plans = true) {
    WorkerFacts facts;
    facts.worker = "host:cpu";
    facts.instance_key = "one";
    facts.trainer = "hpo-trainer";
    facts.plans = plans;
    facts.device = {.kind = "cpu", .name = "CPU", .uuid = "host", .total = GiB(2)};
    facts.capacity = GiB(2);
    facts.models = {{.name = "all-minilm-l6-v2",
                     .shape = *KnownModelShape("all-minilm-l6-v2"),
                     .digest = "m",
                     .tokenizer_digest = "t",
                     .has_weights = true}};
    for (const char* const name : {"train.jsonl", "valid.jsonl"}) {
      facts.data_sets.push_back({.name = name,
                                 .digest = name,
                                 .rows = 1000,
                                 .labels = {"no", "yes"},
                                 .lengths = {{"t", {{128, 1000}}}}});
    }
    server::Call call;
    v1::RegisterWorkerResponse response;
    const grpc::Status status = workers_->RegisterWorker(&call, ToProto(facts), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.session();
  }
};

TEST_F(MemoryServer, TwoConfigurationsAreCompared) {
  ASSERT_TRUE(Create(kStudy).ok());
  RegisterPlanner();
  const std::vector<std::string> words = {"memory",
                                          "estimate",
                                          "model.name=all-minilm-l6-v2",
                                          "tok.max_length=128",
                                          "train.batch_size=64",
                                          "--limit",
                                          "1GiB",
                                          "--compare",
                                          "train.batch_size=8"};
  const nlohmann::json json = RunJson(words, /*status=*/0);
  EXPECT_EQ(json["before"]["fits"], false);
  EXPECT_EQ(json["after"]["fits"], true);
  EXPECT_EQ(json["before"]["plan"]["micro_batch"], 64);
  EXPECT_EQ(json["after"]["plan"]["micro_batch"], 8);
  EXPECT_EQ(json["before"]["weights_bytes"], json["after"]["weights_bytes"]);
  EXPECT_GT(json["before"]["activations_bytes"], json["after"]["activations_bytes"]);
  const ProgramResult text = Run(words);
  EXPECT_THAT(text.out, HasSubstr("before: does not fit"));
  EXPECT_THAT(text.out, HasSubstr("after: fits"));

  std::vector<std::string> worse = words;
  worse.back() = "tok.max_length=64";
  EXPECT_EQ(Run(worse).status, RunJson(worse, Run(worse).status)["after"]["fits"] == true ? 0 : 3);
  worse.back() = "tok.max_lenght=64";
  EXPECT_EQ(Run(worse).status, 2);
  EXPECT_THAT(Run(worse).err, HasSubstr("did you mean 'tok.max_length'?"));
}

TEST_F(MemoryServer, TheSpaceOfAStudyOfTheServer) {
  ASSERT_TRUE(Create(kStudy).ok());
  const nlohmann::json json = RunJson(
      {"memory", "space", "--study", "sized", "--card", "4GiB", "--device", "cpu"}, /*status=*/0);
  EXPECT_EQ(json["study"], "sized");
  EXPECT_EQ(json["configurations"], 6);
  EXPECT_EQ(json["cards"][0]["strict"]["fits"], 6);
  EXPECT_EQ(
      Run({"memory", "space", "--study", "sized", "--card", "600MiB", "--device", "cpu"}).status,
      3);
}

// What a placement would go by: first nothing, then what trials used.
TEST_F(MemoryServer, AUsersOwnTrainerIsEstimatedByWhatItUsed) {
  ASSERT_TRUE(Create(kStudy).ok());
  const std::string session = RegisterPlanner(/*plans=*/false);
  const std::vector<std::string> words = {"memory", "estimate", "model.name=all-minilm-l6-v2",
                                          "tok.max_length=128", "train.batch_size=64"};
  const nlohmann::json before = RunJson(words, /*status=*/0);
  EXPECT_THAT(before["explanation"].get<std::string>(), HasSubstr("would be tried"));
  for (const char* const request : {"a1", "a2", "a3", "a4"}) {
    const v1::AcquireTrialResponse acquired = Acquire(session, request);
    ASSERT_TRUE(acquired.has_assignment());
    v1::Outcome outcome;
    (*outcome.mutable_completed()->mutable_metrics())["score"] = 0.5;
    v1::FinishTrialRequest finish = Finishing(acquired.assignment(), outcome);
    finish.mutable_memory()->set_live_peak_bytes(int64_t{500} << 20);
    server::Call call;
    v1::FinishTrialResponse response;
    ASSERT_TRUE(workers_->FinishTrial(&call, finish, &response).ok());
  }
  const nlohmann::json after = RunJson(words, /*status=*/0);
  EXPECT_GE(after["needed_limit_bytes"], int64_t{500} << 20);
  EXPECT_THAT(after["explanation"].get<std::string>(), HasSubstr("by what other trials used"));
  std::vector<std::string> tight = words;
  tight.insert(tight.end(), {"--limit", "400MiB"});
  EXPECT_EQ(RunJson(tight, /*status=*/3)["fits"], false);
  EXPECT_THAT(Run(tight).out, HasSubstr("does not fit: needs "));
  tight.back() = "400";
  EXPECT_THAT(Run(tight).err, HasSubstr("--limit: expected a size with its unit"));
}

TEST_F(MemoryServer, ATrialIsExplained) {
  ASSERT_TRUE(Create(kStudy).ok());
  const std::string session = RegisterPlanner();
  const v1::AcquireTrialResponse acquired = Acquire(session, "a1");
  ASSERT_TRUE(acquired.has_assignment());
  const v1::Assignment& assignment = acquired.assignment();
  EXPECT_THAT(Run({"memory", "explain", "0"}).out, HasSubstr("it has not ended yet"));

  v1::Outcome outcome;
  (*outcome.mutable_completed()->mutable_metrics())["score"] = 0.5;
  v1::FinishTrialRequest request = Finishing(assignment, outcome);
  request.mutable_memory()->set_live_peak_bytes(assignment.predicted_bytes() * 9 / 10);
  request.mutable_memory()->set_limit_bytes(int64_t{2} << 30);
  request.mutable_memory()->set_peak_phase("backward");
  server::Call call;
  v1::FinishTrialResponse response;
  ASSERT_TRUE(workers_->FinishTrial(&call, request, &response).ok());

  const nlohmann::json json = RunJson({"memory", "explain", "0"}, /*status=*/0);
  EXPECT_EQ(json["attempts"].size(), 1u);
  EXPECT_EQ(json["attempts"][0]["predicted_bytes"], assignment.predicted_bytes());
  EXPECT_NEAR(json["attempts"][0]["error"].get<double>(), -0.1, 1e-6);
  EXPECT_THAT(json["attempts"][0]["lesson"].get<std::string>(),
              HasSubstr("the estimate was 10.0 % too high"));
  EXPECT_THAT(Run({"memory", "explain", "0"}).out, HasSubstr("it fit: "));
  EXPECT_EQ(Run({"memory", "explain", "99"}).status, 3);
}

}  // namespace
}  // namespace hpo::cli
