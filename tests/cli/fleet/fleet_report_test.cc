#include "cli/fleet/fleet_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using enum FleetWorkerState;

std::vector<NamedWorker> Workers() {
  return {{.fleet = "toy",
           .worker = {.id = "6_0",
                      .state = kRunning,
                      .node = "n1",
                      .running_for = absl::Seconds(70),
                      .name = "slurm-6_0"}},
          {.fleet = "toy", .worker = {.id = "6_1", .state = kWaiting, .reason = "Resources"}},
          {.fleet = "big", .worker = {.id = "7_0", .state = kEnding, .node = "n2", .restarts = 2}}};
}

TEST(FleetText, ListsEachFleetWithItsCounts) {
  EXPECT_EQ(FleetText("slurm", Workers(), /*names_workers=*/false, 80),
            "fleet big on slurm: 1 ending\nfleet toy on slurm: 1 running, 1 waiting\n");
}

TEST(FleetText, NamesEachWorker) {
  const std::string text = FleetText("slurm", Workers(), /*names_workers=*/true, 80);
  EXPECT_THAT(text, testing::HasSubstr("slurm-6_0  running  n1      1m10s         -"));
  EXPECT_THAT(text, testing::ContainsRegex("6_1 +waiting +- +- +- +Resources"));
}

TEST(FleetJson, HasNullForWhatIsNotKnown) {
  const nlohmann::ordered_json json = FleetJson("slurm", Workers());
  EXPECT_EQ(json["engine"], "slurm");
  ASSERT_EQ(json["fleets"].size(), 2);
  const auto& toy = json["fleets"][1];
  EXPECT_EQ(toy["label"], "hpo-toy");
  EXPECT_EQ(toy["counts"]["running"], 1);
  EXPECT_EQ(toy["counts"]["ended"], 0);
  EXPECT_EQ(toy["workers"][0]["running_for_s"], 70);
  EXPECT_EQ(toy["workers"][0]["id"], "6_0");
  EXPECT_EQ(toy["workers"][0]["worker"], "slurm-6_0");
  EXPECT_TRUE(toy["workers"][1]["worker"].is_null());
  EXPECT_TRUE(toy["workers"][0]["reason"].is_null());
  EXPECT_EQ(toy["workers"][1]["state"], "waiting");
  EXPECT_TRUE(toy["workers"][1]["node"].is_null());
  EXPECT_EQ(json["fleets"][0]["workers"][0]["restarts"], 2);
}

}  // namespace
}  // namespace hpo::cli
