#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/memory/memory_status.h"
#include "nlohmann/json.hpp"
#include "tests/cli/run_program.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class MemoryCommands : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("hpo-memory-" + std::to_string(getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

constexpr char kTinyConfig[] = R"({"model_type": "bert", "vocab_size": 1000, "hidden_size": 64,
  "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256,
  "max_position_embeddings": 128, "type_vocab_size": 2})";

// ---- fit ----

TEST_F(MemoryCommands, FitShowsTheMatrix) {
  const nlohmann::json json = RunOfflineJson({"memory", "fit", "--model", "bert-base-uncased",
                                              "--card", "8GiB,24GiB", "--lengths", "128,512"});
  ASSERT_EQ(json["cells"].size(), 4u);
  EXPECT_THAT(json["basis"]["base_source"].get<std::string>(), HasSubstr("nvidia-smi"));
  const auto rows = [&json](size_t cell) { return json["cells"][cell]["micro_batch"].get<int>(); };
  EXPECT_EQ(json["cells"][1]["length"], 128);
  EXPECT_EQ(json["cells"][1]["card_bytes"], int64_t{24} << 30);
  EXPECT_LT(rows(0), rows(1));  // a larger card
  EXPECT_GT(rows(0), rows(2));  // longer texts
  for (const nlohmann::json& cell : json["cells"]) {
    EXPECT_LE(cell["required_bytes"], cell["usable_bytes"]);
  }
  const ProgramResult text = RunOffline({"memory", "fit", "--model", "bert-base-uncased", "--card",
                                         "8GiB", "--card", "24GiB", "--lengths", "128"});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("LENGTH  8.00 GiB  24.00 GiB"));
}

TEST_F(MemoryCommands, FitIsThreeWhereNothingFits) {
  const nlohmann::json json = RunOfflineJson(
      {"memory", "fit", "--model", "bert-large-uncased", "--card", "1GiB"}, /*status=*/3);
  EXPECT_TRUE(json["cells"][0]["micro_batch"].is_null());
  EXPECT_THAT(RunOffline({"memory", "fit", "--model", "bert-large-uncased", "--card", "1GiB"}).out,
              HasSubstr("none"));
}

TEST_F(MemoryCommands, FitTakesAConfigFileOrItsFolder) {
  const std::string config = Write("config.json", kTinyConfig);
  const std::vector<std::string> rest = {"--card", "64MiB", "--device", "cpu", "--lengths", "128"};
  std::vector<std::string> file = {"memory", "fit", "--model", config};
  file.insert(file.end(), rest.begin(), rest.end());
  std::vector<std::string> folder = {"memory", "fit", "--model", folder_};
  folder.insert(folder.end(), rest.begin(), rest.end());
  const nlohmann::json json = RunOfflineJson(file);
  EXPECT_GT(json["cells"][0]["micro_batch"], 0);
  EXPECT_EQ(RunOfflineJson(folder)["cells"], json["cells"]);
  EXPECT_EQ(json["basis"]["base_bytes"], 0);
}

TEST_F(MemoryCommands, TheBeginningOfAModelsNameIsTakenForItAndSaidSo) {
  const auto answers = [](const std::string& name) {
    const nlohmann::json fit =
        RunOfflineJson({"memory", "fit", "--model", name, "--card", "24GiB"});
    const nlohmann::json plan = RunOfflineJson(
        {"memory", "plan", "model.name=" + name, "train.batch_size=48", "--card", "24GiB"});
    const nlohmann::json budget = RunOfflineJson(
        {"memory", "budget", "model.name=" + name, "train.batch_size=4", "--card", "24GiB"});
    return nlohmann::json{fit["cells"], plan["strict"], budget["before"]["bytes_by_class"]};
  };
  testing::internal::CaptureStderr();
  const nlohmann::json begun = answers("bert-large");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("model bert-large: taken as bert-large-uncased\n"));
  EXPECT_EQ(begun, answers("bert-large-uncased"));
}

TEST_F(MemoryCommands, FitRefusesInOneLine) {
  const std::string bad = Write("config.json", "{\"model_type\": \"bert\"}");
  ExpectRefused({"memory", "fit", "--model", "bert-bse", "--card", "8GiB"}, 3, "bert-bse");
  ExpectRefused({"memory", "fit", "--model", bad, "--card", "8GiB"}, 2, "config.json");
  ExpectRefused({"memory", "fit", "--model", "bert-base-uncased", "--card", "8Gigs"}, 2,
                "--card: expected a size such as 2GiB");
  ExpectRefused({"memory", "fit", "--model", "bert-base-uncased", "--card", "0"}, 2, "--card");
  ExpectRefused({"memory", "fit", "--model", "bert-base-uncased", "--card", "24"}, 2,
                "--card: expected a size with its unit, such as 24GiB, got '24'");
  ExpectRefused(
      {"memory", "fit", "--model", "bert-base-uncased", "--card", "24GiB", "--headroom", "1"}, 2,
      "--headroom: expected a size with its unit, such as 1GiB, got '1'");
  ExpectRefused({"memory", "fit", "--model", "bert-base-uncased", "--card", "24GiB", "--device",
                 "cpu", "--base", "1GiB"},
                2, "--base: expected none with --device cpu, got 1GiB");
  ExpectRefused({"memory", "fit", "--model", "bert-base-uncased", "--card", "24GiB", "lora.rnk=8"},
                2, "memory depends on no parameter 'lora.rnk'; did you mean 'lora.rank'?");
  ExpectRefused(
      {"memory", "fit", "--model", "bert-base-uncased", "--card", "24GiB", "tok.max_length=64"}, 2,
      "tok.max_length: expected none, as --lengths says it");
  ExpectRefused({"memory", "fit", "--model", "bert-base-uncased", "--card", "24GiB", "--task",
                 "language-modeling"},
                2, "--task: expected text-classification with bert, got language-modeling");
  ExpectRefused(
      {"memory", "fit", "--model", "bert-base-uncased", "--card", "8GiB", "--lengths", "128,1024"},
      2, "bert-base-uncased takes at most 512 tokens, got 1024");
  ExpectRefused({"memory", "fit", "--model", "bert-base-uncased"}, 2, "--card");
  ExpectRefused(
      {"memory", "fit", "--model", "bert-base-uncased", "--card", "8GiB", "--lengths", "0"}, 2,
      "--lengths");
}

TEST_F(MemoryCommands, FitTakesAdaptersTheirBaseAndRecomputation) {
  const auto rows = [](std::vector<std::string> more) {
    std::vector<std::string> words = {
        "memory",    "fit",  "--model",     "Qwen/Qwen2.5-7B-Instruct", "--card", "24GiB",
        "--lengths", "1024", "lora.rank=16"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = RunOffline(words);
    words.insert(words.end(), {"--output", "json"});
    const nlohmann::json json = ParsedOutput(RunOffline(words), result.status);
    const nlohmann::json& cell = json["cells"][0]["micro_batch"];
    return cell.is_null() ? int64_t{0} : cell.get<int64_t>();
  };
  EXPECT_EQ(rows({"train.precision=bf16"}), 0);
  const int64_t quantised = rows({"train.precision=bf16", "lora.base=nf4"});
  EXPECT_GT(quantised, 0);
  EXPECT_GT(rows({"train.precision=bf16", "lora.base=nf4", "memory.checkpoint_every=1"}),
            quantised);
}

TEST_F(MemoryCommands, FitTakesTheBaseThatAWorkerHasMeasured) {
  const std::vector<std::string> words = {"memory", "fit",   "--model", "bert-base-uncased",
                                          "--card", "24GiB", "--base",  "512MiB"};
  const nlohmann::json given = RunOfflineJson(words)["basis"];
  EXPECT_EQ(given["base_bytes"], int64_t{512} << 20);
  EXPECT_EQ(given["base_source"], "as given");
  EXPECT_THAT(RunOffline({"memory", "fit", "--model", "bert-base-uncased", "--card", "24GiB"}).out,
              HasSubstr("base 1.40 GiB (of an A100 under torch 2.5, by nvidia-smi; --base"));
}

TEST_F(MemoryCommands, FitSaysWhatMeasuresAModelThatTheTrainerDoesNotRun) {
  const std::string config = Write("config.json", R"({"model_type": "t5"})");
  ExpectRefused({"memory", "fit", "--model", config, "--card", "8GiB"}, 1,
                "for another model use hpo memory dry-run -- python3 train.py");
}

// ---- plan ----

TEST_F(MemoryCommands, PlanMakesTheFailedConfigurationOfTheSourcesFit) {
  const std::vector<std::string> words = {"memory",
                                          "plan",
                                          "model.name=bert-large-uncased",
                                          "train.batch_size=48",
                                          "train.grad_accum=4",
                                          "tok.max_length=480",
                                          "--card",
                                          "23.56GiB"};
  const nlohmann::json json = RunOfflineJson(words);
  EXPECT_EQ(json["strict"]["fits"], false);
  EXPECT_EQ(json["fits"], true);
  ASSERT_EQ(json["changes"].size(), 1u);
  const nlohmann::json& verdict = json["changes"][0]["verdict"];
  EXPECT_EQ(verdict["plan"]["effective_batch"], 192);
  EXPECT_LE(verdict["required_bytes"], verdict["usable_bytes"]);
  EXPECT_LT(verdict["required_bytes"], json["strict"]["required_bytes"]);
  const ProgramResult text = RunOffline(words);
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("as it is"));
  EXPECT_THAT(text.out, HasSubstr("fits 23.56 GiB with these changes"));
}

TEST_F(MemoryCommands, PlanIsThreeWhereNothingHelps) {
  const ProgramResult text = RunOffline(
      {"memory", "plan", "model.name=bert-large-uncased", "train.batch_size=4", "--card", "2GiB"});
  EXPECT_EQ(text.status, 3);
  EXPECT_THAT(text.out, HasSubstr("does not fit 2.00 GiB: take a smaller model"));
}

// 7 billion parameters on 24 GiB: not with the model in 32 bits, but with it in 4.
TEST_F(MemoryCommands, PlanKnowsAdaptersAndWhatTheyAreOn) {
  const auto judge = [](const char* base, int status) {
    return RunOfflineJson(
        {"memory", "plan", "model.name=Qwen/Qwen2.5-7B-Instruct", "train.batch_size=1",
         "train.grad_accum=16", "tok.max_length=1536", "lora.rank=128", "lora.targets=all-linear",
         std::string("lora.base=") + base, "train.precision=bf16", "memory.checkpoint_every=1",
         "--card", "24GiB"},
        status);
  };
  const nlohmann::json packed = judge("nf4", 0);
  EXPECT_EQ(packed["basis"]["precision"], "bfloat16");
  EXPECT_TRUE(packed["strict"]["fits"]);
  const nlohmann::json plain = judge("fp32", 0);
  EXPECT_FALSE(plain["strict"]["fits"]);
  EXPECT_EQ(plain["changes"].back()["change"], "frozen weights in NF4");
  ExpectRefused({"memory", "plan", "model.name=Qwen/Qwen2.5-7B-Instruct", "lora.rank=8",
                 "lora.targets=query", "--card", "24GiB"},
                2, "lora.targets: expected ends of names of linear layers of qwen2");
}

TEST_F(MemoryCommands, PlanSaysWhatItDoesNotUnderstand) {
  ExpectRefused({"memory", "plan", "train.batch_size=4", "--card", "2GiB"}, 2,
                "expected model.name=NAME");
  ExpectRefused({"memory", "plan", "model.name=gpt2", "--card", "2GiB", "--card", "4GiB"}, 2,
                "--card");
  ExpectRefused({"memory", "plan", "model.name=robertina", "--card", "2GiB"}, 3, "robertina");
  ExpectRefused(
      {"memory", "plan", "model.name=bert-base-uncased", "train.batch=4", "--card", "2GiB"}, 2,
      "train.batch");
  ExpectRefused(
      {"memory", "plan", "model.name=bert-base-uncased", "train.batch_size=0", "--card", "2GiB"}, 2,
      "train.batch_size: expected [1, ");
  ExpectRefused(
      {"memory", "plan", "model.name=bert-base-uncased", "train.batch_size=x", "--card", "2GiB"}, 2,
      "train.batch_size");
}

// ---- table ----

TEST_F(MemoryCommands, TableAnswersForEveryRowOfAFile) {
  const std::string file =
      Write("rows.csv",
            "model.name,train.batch_size,train.grad_accum,tok.max_length,note\n"
            "bert-base-uncased,8,2,128,\"small, safe\"\n"
            "bert-large-uncased,48,4,480,~30 GB\n");
  const std::vector<std::string> words = {"memory", "table", file, "--card", "23.56GiB"};
  const nlohmann::json json = RunOfflineJson(words, /*status=*/3);
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["fits"], true);
  EXPECT_EQ(json["rows"][1]["fits"], false);
  EXPECT_EQ(json["rows"][1]["fits_with_changes"], true);
  EXPECT_EQ(json["rows"][1]["params"]["train.batch_size"], 48);
  const std::string text = RunOffline(words).out;
  EXPECT_THAT(text, HasSubstr("small, safe"));
  EXPECT_THAT(text, HasSubstr("as it is"));
  EXPECT_THAT(text, HasSubstr("micro-batch "));
  EXPECT_THAT(text, HasSubstr("on 23.56 GiB, of which 23.09 GiB may be used"));
}

TEST_F(MemoryCommands, TableSaysWhichLineIsWrong) {
  const auto refuses = [this](const std::string& text, const std::string& message) {
    ExpectRefused({"memory", "table", Write("rows.csv", text), "--card", "24GiB"}, 2, message);
  };
  refuses("", "rows.csv: expected a header of parameters");
  refuses("model.name\n", "got the header alone");
  refuses("model.name,train.batch\nbert-base-uncased,8\n",
          "rows.csv: line 2: memory depends on no parameter 'train.batch'");
  refuses("model.name,train.batch_size\nbert-base-uncased\n",
          "line 2: expected 2 fields (model.name, train.batch_size), got 1");
  refuses("train.batch_size\n8\n", "line 2: model.name: expected a name, got none");
  refuses("model.name,train.batch_size\nbert-base-uncased,8\nbert-base-uncased,eight\n",
          "line 3: parameter train.batch_size");
  ExpectRefused({"memory", "table", "/nowhere.csv", "--card", "24GiB"}, 3, "/nowhere.csv");
}

// ---- budget ----

TEST_F(MemoryCommands, BudgetAddsUpBeforeAndAfter) {
  const std::vector<std::string> words = {"memory",
                                          "budget",
                                          "model.name=Qwen/Qwen2.5-0.5B",
                                          "lora.rank=16",
                                          "lora.base=bf16",
                                          "train.precision=bf16",
                                          "train.batch_size=4",
                                          "tok.max_length=512",
                                          "--card",
                                          "24GiB",
                                          "--compare",
                                          "train.batch_size=1",
                                          "lora.base=nf4"};
  const nlohmann::json json = RunOfflineJson(words);
  for (const char* const when : {"before", "after"}) {
    int64_t sum = 0;
    for (const auto& [name, bytes] : json[when]["bytes_by_class"].items()) {
      EXPECT_GE(bytes.get<int64_t>(), 0) << name;
      sum += bytes.get<int64_t>();
    }
    EXPECT_EQ(sum, json[when]["needed_limit_bytes"]) << when;
    // Adapters on queries and values of 24 layers: 16 x (896 + 896 + 896 + 128) floats each.
    EXPECT_EQ(json[when]["bytes_by_class"]["adapters"], 24 * 4 * 16 * (896 + 896 + 896 + 128));
  }
  const nlohmann::json& before = json["before"]["bytes_by_class"];
  const nlohmann::json& after = json["after"]["bytes_by_class"];
  EXPECT_LT(after["activations"], before["activations"]);
  EXPECT_LT(after["weights"], before["weights"]);
  EXPECT_EQ(after["optimizer"], before["optimizer"]);
  const std::string text = RunOffline(words).out;
  EXPECT_THAT(text, HasSubstr("CLASS"));
  EXPECT_THAT(text, HasSubstr("adapters of rank 16 on nf4"));
  ExpectRefused({"memory", "budget", "lora.rank=16", "--card", "24GiB"}, 2,
                "expected model.name=NAME, got none");
  ExpectRefused({"memory", "budget", "model.name=bert-base-uncased", "--card", "24GiB", "--compare",
                 "train.batch=1"},
                2, "train.batch");
}

// ---- space ----

TEST_F(MemoryCommands, SpaceOfAPresetNeedsNoServer) {
  const nlohmann::json json =
      RunOfflineJson({"memory", "space", "criteria", "--card", "8GiB,24GiB"}, /*status=*/3);
  EXPECT_EQ(json["configurations"], 2616);
  EXPECT_EQ(json["sampled"], false);
  ASSERT_EQ(json["cards"].size(), 2u);
  EXPECT_LT(json["cards"][0]["strict"]["fits"], json["cards"][1]["strict"]["fits"]);
  EXPECT_LE(json["cards"][0]["strict"]["fits"], json["cards"][0]["plan"]["fits"]);
  EXPECT_FALSE(json["cards"][0]["strict"]["cut"].is_null());
  EXPECT_EQ(json["unknown"], 0);
  for (const nlohmann::json& model : json["models"]) {
    const std::string name = model["name"];
    EXPECT_LE(model["smallest_plan_bytes"], model["smallest_strict_bytes"]) << name;
  }
}

TEST_F(MemoryCommands, SpaceIsZeroWhereAllOfItFitsByTheStudysPolicy) {
  const std::string study = R"(name: small
objective: {metric: f1, direction: maximize}
trainer: {train: t.jsonl, validation: v.jsonl}
budget: {trials: 1}
memory: {policy: POLICY}
parameters:
  model.name: {choices: [bert-base-uncased]}
  train.batch_size: {choices: [8, 512]}
)";
  const auto with = [&](const std::string& policy) {
    std::string text = study;
    text.replace(text.find("POLICY"), 6, policy);
    const ProgramResult result =
        RunOffline({"memory", "space", Write("small.yaml", text), "--card", "12GiB"});
    EXPECT_THAT(result.out,
                HasSubstr("study small: 2 configurations of model.name, train.batch_size"));
    return result.status;
  };
  EXPECT_EQ(with("plan"), 0);
  EXPECT_EQ(with("strict"), 3);
}

TEST_F(MemoryCommands, SpaceRefusesInOneLine) {
  ExpectRefused({"memory", "space", "criterion", "--card", "8GiB"}, 3, "criterion");
  ExpectRefused({"memory", "space", "--card", "8GiB"}, 5, "cannot reach hpo-server");
  ExpectRefused({"memory", "space", Write("bad.yaml", "name: ["), "--card", "8GiB"}, 2, "bad.yaml");
}

// ---- status ----

TEST_F(MemoryCommands, StatusAlwaysShowsTheHost) {
  const nlohmann::json json = RunOfflineJson({"memory", "status"});
  EXPECT_GT(json["host"]["total_bytes"], 0);
  EXPECT_LE(json["host"]["available_bytes"], json["host"]["total_bytes"]);
  EXPECT_TRUE(json["cards"].is_array());
  EXPECT_THAT(RunOffline({"memory", "status"}).out, HasSubstr("host "));
}

MemoryStatus OneCard() {
  MemoryStatus status;
  status.cards = {{.index = 0,
                   .uuid = "GPU-1",
                   .name = "NVIDIA H200",
                   .driver = "580.65",
                   .total = GiB(140),
                   .free = GiB(100),
                   .used = GiB(40),
                   .processes = {{.pid = 7, .used = GiB(39), .name = "python3"},
                                 {.pid = 8, .used = std::nullopt, .name = ""}}}};
  status.host = {.total = GiB(64), .available = GiB(32)};
  status.cgroup = CgroupMemory{.limit = GiB(16), .used = GiB(2), .oom_kills = 3};
  return status;
}

TEST(MemoryStatusText, ListsTheProcessesOfEachCard) {
  const std::string text = MemoryStatusText(OneCard(), 0);
  EXPECT_THAT(text, HasSubstr("NVIDIA H200  140.00 GiB  40.00 GiB  100.00 GiB  580.65"));
  EXPECT_THAT(text, HasSubstr("python3  39.00 GiB"));
  EXPECT_THAT(text, HasSubstr("not told"));
  EXPECT_THAT(text, HasSubstr("host     32.00 GiB of 64.00 GiB available"));
  EXPECT_THAT(text, HasSubstr("cgroup   2.00 GiB used of 16.00 GiB, 3 processes killed"));
}

TEST(MemoryStatusText, SaysWhyThereIsNoCard) {
  MemoryStatus status = OneCard();
  status.cards.clear();
  status.cards_note = "no NVIDIA driver";
  status.cgroup = CgroupMemory{.used = GiB(2)};
  const std::string text = MemoryStatusText(status, 0);
  EXPECT_THAT(text, HasSubstr("cards    none: no NVIDIA driver\n"));
  EXPECT_THAT(text, HasSubstr("2.00 GiB used of no limit\n"));
  EXPECT_THAT(text, Not(HasSubstr("PID")));
  status.cgroup = std::nullopt;
  EXPECT_THAT(MemoryStatusText(status, 0), HasSubstr("cgroup   none\n"));
}

TEST(MemoryStatusJson, WhatIsNotKnownIsNull) {
  const nlohmann::ordered_json json = MemoryStatusJson(OneCard());
  EXPECT_EQ(json["cards"][0]["processes"][0]["program"], "python3");
  EXPECT_EQ(json["cards"][0]["processes"][0]["used_bytes"], GiB(39).count);
  EXPECT_TRUE(json["cards"][0]["processes"][1]["used_bytes"].is_null());
  EXPECT_EQ(json["cgroup"]["limit_bytes"], GiB(16).count);
  MemoryStatus bare;
  EXPECT_TRUE(MemoryStatusJson(bare)["cgroup"].is_null());
}

}  // namespace
}  // namespace hpo::cli
