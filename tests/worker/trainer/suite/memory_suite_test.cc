#include "worker/trainer/suite/memory_suite.h"

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/files/read_file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/suite/suite_plan.h"

namespace hpo::trainer {
namespace {

TEST(SuitePoints, CoverTheSizesThatMemoryDependsOn) {
  for (const std::string device : {"cpu", "cuda"}) {
    SCOPED_TRACE(device);
    const std::vector<SuitePoint> points = SuitePoints(device);
    EXPECT_GE(points.size(), 60u);
    std::set<std::string> names;
    std::map<bool, int> several_parts;
    std::map<bool, int> dropout;
    for (const SuitePoint& point : points) {
      names.insert(point.name);
      ++several_parts[point.plan.NumParts() > 1];
      ++dropout[point.model.hidden_dropout > 0.0];
      const auto estimate =
          memory::EstimateMemory(SuiteInput(point, 2, {.kind = device}), point.plan);
      EXPECT_TRUE(estimate.ok()) << estimate.status();
    }
    EXPECT_EQ(names.size(), points.size());
    EXPECT_GT(several_parts[true], 20);
    EXPECT_GT(several_parts[false], 20);
    EXPECT_GT(dropout[true], 20);
    EXPECT_GT(dropout[false], 20);
  }
}

class MemorySuiteTest : public testing::Test {
 protected:
  void SetUp() override {
    TestDevice();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::vector<nlohmann::json> Run(const MemorySuiteOptions& options) {
    std::vector<nlohmann::json> lines;
    const absl::Status run =
        RunMemorySuite(options, [&lines](const nlohmann::json& line) { lines.push_back(line); });
    EXPECT_TRUE(run.ok()) << run;
    return lines;
  }

  static std::vector<nlohmann::json> OfType(const std::vector<nlohmann::json>& lines,
                                            const std::string& type) {
    std::vector<nlohmann::json> found;
    for (const nlohmann::json& line : lines) {
      if (line["type"] == type) found.push_back(line);
    }
    return found;
  }

  std::string folder_ = testing::TempDir() + "/memory_suite";
};

TEST_F(MemorySuiteTest, OnACpuEveryPredictionIsRight) {
  const auto lines = Run({.trace_folder = folder_, .num_ladders = 2, .storm_cycles = 5});
  EXPECT_EQ(lines.front()["type"], "profile");
  EXPECT_EQ(lines.back()["type"], "done");
  const auto configurations = OfType(lines, "configuration");
  EXPECT_GE(configurations.size(), 60u);
  for (const nlohmann::json& line : configurations) {
    SCOPED_TRACE(line.dump());
    EXPECT_TRUE(line["completed"]);
    const auto predicted = line["predicted_live_bytes"].get<double>();
    const auto measured = line["measured_live_bytes"].get<double>();
    EXPECT_NEAR(predicted, measured, 0.005 * measured);
  }
  // What was to run, ran; below the need nothing did.
  const auto ladders = OfType(lines, "ladder");
  EXPECT_EQ(ladders.size(), 18u);
  for (const nlohmann::json& line : ladders) {
    SCOPED_TRACE(line.dump());
    EXPECT_EQ(line["expected"], line["ran"]);
  }
  const auto storms = OfType(lines, "storm");
  ASSERT_EQ(storms.size(), 1u);
  EXPECT_EQ(storms[0]["met"], 5);
  EXPECT_EQ(storms[0]["at_baseline"], 5);
  EXPECT_EQ(storms[0]["live_drift_bytes"], 0);
}

TEST_F(MemorySuiteTest, KeepsTracesThatReplay) {
  const auto lines = Run({.trace_folder = folder_,
                          .budget = absl::ZeroDuration(),  // traces and storm alone
                          .storm_cycles = 1});
  EXPECT_TRUE(OfType(lines, "configuration").empty());
  EXPECT_GE(OfType(lines, "skipped").size(), 60u);
  const auto traces = OfType(lines, "trace");
  ASSERT_EQ(traces.size(), 4u);
  for (const nlohmann::json& line : traces) {
    const auto text = ReadFile(folder_ + "/" + line["file"].get<std::string>());
    ASSERT_TRUE(text.ok()) << text.status();
    // Every block that was made is freed: the trial is over.
    std::istringstream trace(*text);
    std::set<std::string> live;
    size_t num_events = 0;
    for (std::string event; std::getline(trace, event);) {
      const std::vector<std::string> words = absl::StrSplit(event, ' ');
      if (words[0] == "+") {
        EXPECT_TRUE(live.insert(words[1]).second) << event;
      } else if (words[0] == "-") {
        EXPECT_EQ(live.erase(words[1]), 1u) << event;
      } else {
        EXPECT_TRUE(words[0] == "#" || num_events == 0) << event;
        continue;
      }
      ++num_events;
    }
    EXPECT_EQ(num_events, line["events"].get<size_t>());
    EXPECT_TRUE(live.empty());
  }
}

TEST_F(MemorySuiteTest, SaysWhatIsMissing) {
  const auto ignore = [](const nlohmann::json&) {};
  EXPECT_FALSE(RunMemorySuite({.device = "cuda:977", .trace_folder = folder_}, ignore).ok());
  EXPECT_FALSE(RunMemorySuite({.trace_folder = folder_ + "/none"}, ignore).ok());
}

}  // namespace
}  // namespace hpo::trainer
