#include "common/protocol/trainer_protocol.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/full_values.h"
#include "tests/test_paths.h"

namespace hpo {
namespace {

TEST(TrainerProtocol, DownMessagesComeBackWhole) {
  const DownMessage messages[] = {
      FullTrainerJob(), StopRequest{.reason = "pruned", .checkpoint = true}, ShutdownRequest{}};
  for (const DownMessage& message : messages) {
    const std::string line = EncodeDown(message);
    SCOPED_TRACE(line);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto again = DecodeDown(line);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, message);
  }
}

TEST(TrainerProtocol, UpMessagesComeBackWhole) {
  const MemoryPlan plan = {.effective_batch = 32, .micro_batch = 4};
  const UpMessage messages[] = {
      Hello{.version = 1,
            .program = "hpo-trainer 0.1.0",
            .capabilities = {"plan", "stop"},
            .torch_build = "2.11.0"},
      MeasurementMessage{{.step = 10, .epoch = 0.5, .metrics = {{"macro_f1", 0.75}}}},
      MemoryMessage{.stage = "replan",
                    .allocated = MiB(1),
                    .reserved = MiB(2),
                    .free = MiB(3),
                    .total = MiB(4),
                    .peak = MiB(5),
                    .plan = plan,
                    .step = 7},
      MemoryMessage{.stage = "Trial Start"},
      MemoryMessage{.stage = "OOM Error", .predicted = MiB(6), .needed = MiB(7), .step = 2},
      MemoryMessage{
          .stage = "Growth", .resident = MiB(8), .growth = MiB(9), .growth_stage = "evaluation"},
      CheckpointMessage{.kind = "best", .path = "/out/best", .step = 3},
      ProgressMessage{.step = 5, .total_steps = 10, .loss = 0.25},
      ProgressMessage{.step = 6, .stop_time = absl::Milliseconds(2500)},
      LogMessage{.level = "warning", .text = "slow\nwith \"quotes\""},
      AttributesMessage{.attributes = {{"data", "{\"rows\":[1,2.5]}"}, {"who", "\"me\""}}},
      OutcomeMessage{.outcome = Completed{.metrics = {{"loss", 0.5}}},
                     .memory = {.live_peak = MiB(9)},
                     .final_plan = plan,
                     .clean = false},
      OutcomeMessage{},
  };
  for (const UpMessage& message : messages) {
    const std::string line = EncodeUp(message);
    SCOPED_TRACE(line);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto again = DecodeUp(line);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, message);
  }
}

// What docs/TRAINER_PROTOCOL.md calls the least a trainer has to send.
TEST(TrainerProtocol, ShortMessagesAreEnough) {
  const char* lines[] = {
      R"({"type":"hello","version":1})",
      R"({"type":"measurement","step":3,"metrics":{"macro_f1":0.5}})",
      R"({"type":"memory","stage":"Trial Start"})",
      R"({"type":"checkpoint","kind":"best","path":"/out/model.bin"})",
      R"({"type":"progress","step":3})",
      R"({"type":"log","text":"hello"})",
      R"({"type":"outcome","outcome":{"kind":"completed","metrics":{"macro_f1":0.5}}})",
      R"({"type":"outcome","outcome":null})",
  };
  for (const char* line : lines) {
    EXPECT_TRUE(DecodeUp(line).ok()) << line << ": " << DecodeUp(line).status();
  }
}

TEST(TrainerProtocol, IgnoresFieldsOfNewerVersions) {
  const auto message = DecodeUp(R"({"type":"log","text":"hello","colour":"red"})");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(std::get<LogMessage>(*message).text, "hello");
  EXPECT_EQ(std::get<LogMessage>(*message).level, "info");
}

TEST(TrainerProtocol, NumbersThatAreNotFiniteTravelAsNullOrByTheirNames) {
  const std::string line = EncodeUp(
      MeasurementMessage{{.step = 1,
                          .metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()},
                                      {"worst", -std::numeric_limits<double>::infinity()}}}});
  EXPECT_NE(line.find(R"("loss":null,"worst":"-Infinity")"), std::string::npos) << line;
  const auto message = DecodeUp(line);
  ASSERT_TRUE(message.ok()) << message.status();
  const Metrics metrics = std::get<MeasurementMessage>(*message).measurement.metrics;
  EXPECT_TRUE(std::isnan(metrics.at("loss")));
  EXPECT_EQ(metrics.at("worst"), -std::numeric_limits<double>::infinity());

  ProgressMessage progress;
  progress.loss = std::numeric_limits<double>::quiet_NaN();
  const auto again = DecodeUp(EncodeUp(progress));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(std::isnan(std::get<ProgressMessage>(*again).loss));
}

TEST(TrainerProtocol, BytesThatAreNotTextDoNotBreakALine) {
  const std::string line = EncodeUp(LogMessage{.level = "info", .text = "bad \xff byte"});
  const auto message = DecodeUp(line);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(std::get<LogMessage>(*message).text, "bad \xEF\xBF\xBD byte");
}

TEST(TrainerProtocol, UpErrorsNameTheFieldAtFault) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected JSON"},
      {"{\"type\":\"log\"", "expected JSON"},
      {"Traceback (most recent call last):", "expected JSON"},
      {R"({"type":"measurement","step":1,"metrics":{"loss":NaN}})", "expected JSON"},
      {R"({"type":"progress","step":1,"loss":1e999})", "expected JSON"},
      {R"({"type":"progress","step":1,"stop_seconds":"soon"})",
       "progress: stop_seconds: expected a number, got the string"},
      {"[1]", "expected an object, got an array"},
      {"{}", "type: missing"},
      {R"({"type":7})", "type: expected a string, got the integer 7"},
      {R"({"type":"job"})", "type: expected one of hello, measurement, memory, checkpoint"},
      {R"({"type":"hello"})", "hello: version: missing"},
      {R"({"type":"hello","version":"1"})", "hello: version: expected an integer"},
      {R"({"type":"hello","version":1,"capabilities":["plan",1]})",
       "hello: capabilities: expected an array of strings, got the integer 1"},
      {R"({"type":"hello","version":1,"capabilities":"plan"})",
       "hello: capabilities: expected an array of strings"},
      {R"({"type":"measurement","metrics":{}})", "measurement: step: missing"},
      {R"({"type":"measurement","step":1.0,"metrics":{}})",
       "measurement: step: expected an integer"},
      {R"({"type":"measurement","step":9223372036854775808,"metrics":{}})",
       "measurement: step: expected an integer, got the integer 9223372036854775808"},
      {R"({"type":"measurement","step":1})", "measurement: metrics: missing"},
      {R"({"type":"measurement","step":1,"metrics":[1]})",
       "measurement: metrics: expected an object, got an array"},
      {R"({"type":"measurement","step":1,"metrics":{"f1":true}})",
       "measurement: metrics.f1: expected a number, got the boolean true"},
      {R"({"type":"memory","stage":"OOM Error","peak_bytes":-5})",
       "memory: peak_bytes: expected a number of bytes"},
      {R"({"type":"memory","stage":"replan","plan":{"effective_batch":8}})",
       "memory: plan: micro_batch: missing"},
      {R"({"type":"checkpoint","kind":"best"})", "checkpoint: path: missing"},
      {R"({"type":"log","text":null})", "log: text: expected a string, got null"},
      {R"({"type":"outcome"})", "outcome: outcome: missing"},
      {R"({"type":"outcome","outcome":{"kind":"failed","class":"INTERNAL"}})",
       "outcome: outcome: failed: message: missing"},
      {R"({"type":"outcome","outcome":null,"clean":"yes"})",
       "outcome: clean: expected true or false, got the string \"yes\""},
  };
  for (const auto& [line, expected] : cases) {
    SCOPED_TRACE(line);
    const auto message = DecodeUp(line);
    ASSERT_FALSE(message.ok());
    EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(message.status().message().find(expected), absl::string_view::npos)
        << message.status();
  }
}

TEST(TrainerProtocol, EveryRequiredFieldOfAJobIsNamedWhenItIsMissing) {
  const char* required[] = {"study",           "trial",  "attempt",   "params", "train_path",
                            "validation_path", "epochs", "objective", "plan",   "seed",
                            "output_dir"};
  const nlohmann::json whole = nlohmann::json::parse(EncodeDown(FullTrainerJob()));
  for (const char* field : required) {
    SCOPED_TRACE(field);
    nlohmann::json job = whole;
    job.erase(field);
    EXPECT_EQ(DecodeDown(job.dump()).status().message(), absl::StrCat("job: ", field, ": missing"));
    job[field] = nullptr;
    EXPECT_FALSE(DecodeDown(job.dump()).ok());
  }
}

TEST(TrainerProtocol, DownErrorsNameTheFieldAtFault) {
  const nlohmann::json whole = nlohmann::json::parse(EncodeDown(FullTrainerJob()));
  const std::tuple<const char*, nlohmann::json, const char*> cases[] = {
      {"params",
       {{"lr", {1, 2}}},
       "job: params: lr: expected a boolean, a number, a string or null"},
      {"objective",
       {{"metric", "f1"}, {"direction", "up"}},
       "job: objective: direction: expected minimize or maximize, got the string \"up\""},
      {"policy", "loose", "job: policy: expected plan, strict or off, got the string \"loose\""},
      {"seed", -1, "job: seed: expected an integer >= 0, got the integer -1"},
      {"admission", 1, "job: admission: expected true or false, got the integer 1"},
      {"limit_bytes", 1.5, "job: limit_bytes: expected a number of bytes"},
  };
  for (const auto& [field, value, expected] : cases) {
    SCOPED_TRACE(field);
    nlohmann::json job = whole;
    job[field] = value;
    const auto message = DecodeDown(job.dump());
    ASSERT_FALSE(message.ok());
    EXPECT_NE(message.status().message().find(expected), absl::string_view::npos)
        << message.status();
  }
  EXPECT_EQ(DecodeDown(R"({"type":"stop"})").status().message(), "stop: reason: missing");
  EXPECT_FALSE(DecodeDown(R"({"type":"hello","version":1})").ok());
}

// Every example of the specification is a message that this code reads.
TEST(TrainerProtocol, ReadsTheExamplesOfItsSpecification) {
  std::ifstream file(SourcePath("docs/TRAINER_PROTOCOL.md"));
  ASSERT_TRUE(file.is_open());
  std::set<std::string> types;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("{\"type\":", 0) != 0) continue;
    SCOPED_TRACE(line);
    const bool down = DecodeDown(line).ok();
    EXPECT_TRUE(down || DecodeUp(line).ok()) << DecodeUp(line).status();
    types.insert(nlohmann::json::parse(line)["type"].get<std::string>());
  }
  EXPECT_EQ(types,
            (std::set<std::string>{"attributes", "checkpoint", "hello", "job", "log", "measurement",
                                   "memory", "outcome", "progress", "shutdown", "stop"}));
}

TEST(Hello, KnowsItsCapabilities) {
  const Hello hello = {.capabilities = {"plan", "memory"}};
  EXPECT_TRUE(hello.Has("plan"));
  EXPECT_FALSE(hello.Has("reuse"));
}

}  // namespace
}  // namespace hpo
