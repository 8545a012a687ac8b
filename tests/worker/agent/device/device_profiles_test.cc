#include "worker/agent/device/device_profiles.h"

#include <filesystem>
#include <fstream>

#include "common/files/read_file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace hpo::agent {
namespace {

constexpr char kBuild[] = "2.11.0+cu130";

DeviceProfile Card() {
  return {.kind = "cuda",
          .name = "NVIDIA H200",
          .uuid = "GPU-a",
          .driver = "580.1",
          .total = GiB(100),
          .base = MiB(640),
          .workspace = MiB(96)};
}

DeviceProfile MeasuredCard() {
  DeviceProfile profile = Card();
  profile.total = GiB(140);
  profile.base = MiB(517);
  profile.workspace = MiB(64);
  profile.source = "measured";
  profile.torch_build = kBuild;
  profile.capability = "9.0";
  profile.attention = "efficient";
  return profile;
}

class DeviceProfilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A trainer that notes that it ran, logs a line, and then does what `script` says.
  DeviceProfiles Profiles(const std::string& script,
                          absl::Duration timeout = absl::Seconds(20)) const {
    return DeviceProfiles({.argv = {"/bin/sh", "-c",
                                    "echo ran >> " + (folder_ / "runs").string() +
                                        "; echo a line of the log >&2; " + script},
                           .environment = {},
                           .log_path = (folder_ / "log").string()},
                          (folder_ / "profile.json").string(), timeout);
  }
  DeviceProfiles Answering(const DeviceProfile& profile) const {
    return Profiles("echo '" + DeviceProfileToJson(profile).dump() + "'");
  }

  size_t NumRuns() const {
    const auto runs = ReadFile((folder_ / "runs").string());
    return runs.ok() ? runs->size() / 4 : 0;
  }

  std::filesystem::path folder_;
};

TEST_F(DeviceProfilesTest, WhatWasMeasuredReplacesTheDefaults) {
  DeviceProfiles profiles = Answering(MeasuredCard());
  DeviceProfile expected = MeasuredCard();
  expected.total = Card().total;  // the worker's own limit
  EXPECT_EQ(profiles.Complete(Card(), kBuild), expected);
  EXPECT_EQ(profiles.Complete(Card(), kBuild), expected);
  EXPECT_EQ(NumRuns(), 1u);
}

TEST_F(DeviceProfilesTest, TheTotalIsWhatTheProcessSawWhereThatIsLess) {
  DeviceProfile measured = MeasuredCard();
  measured.total = Card().total - MiB(3);
  EXPECT_EQ(Answering(measured).Complete(Card(), kBuild).total, measured.total);
}

TEST_F(DeviceProfilesTest, ARestartMeasuresOnlyWhatHasChanged) {
  EXPECT_EQ(Answering(MeasuredCard()).Complete(Card(), kBuild).base, MiB(517));
  EXPECT_EQ(Profiles("exit 1").Complete(Card(), kBuild).base, MiB(517));
  EXPECT_EQ(NumRuns(), 1u);
  DeviceProfile newer_driver = MeasuredCard();
  newer_driver.driver = "590.2";
  newer_driver.base = MiB(530);
  DeviceProfile card = Card();
  card.driver = "590.2";
  EXPECT_EQ(Answering(newer_driver).Complete(card, kBuild).base, MiB(530));
  EXPECT_EQ(NumRuns(), 2u);
  EXPECT_EQ(Answering(newer_driver).Complete(card, "2.12.0+cu130").source, "default");
  EXPECT_EQ(NumRuns(), 3u);
}

TEST_F(DeviceProfilesTest, DefaultsStandWhereNothingCanBeMeasured) {
  const char* const scripts[] = {"exit 24", "echo no json", "echo '{\"kind\":3}'", "echo '{'"};
  for (const char* script : scripts) {
    SCOPED_TRACE(script);
    DeviceProfiles profiles = Profiles(script);
    EXPECT_EQ(profiles.Complete(Card(), kBuild), Card());
    const size_t runs = NumRuns();
    EXPECT_EQ(profiles.Complete(Card(), kBuild), Card());
    EXPECT_EQ(NumRuns(), runs) << "tried once";
  }
  DeviceProfile another = MeasuredCard();
  another.uuid = "GPU-b";
  EXPECT_EQ(Answering(another).Complete(Card(), kBuild), Card());
}

TEST_F(DeviceProfilesTest, ATrainerThatHangsIsKilled) {
  EXPECT_EQ(
      Profiles("exec cat /dev/zero > /dev/null", absl::Milliseconds(50)).Complete(Card(), kBuild),
      Card());
}

TEST_F(DeviceProfilesTest, ABrokenFileIsMeasuredAnew) {
  std::ofstream(folder_ / "profile.json") << "{broken";
  EXPECT_EQ(Answering(MeasuredCard()).Complete(Card(), kBuild).base, MiB(517));
}

}  // namespace
}  // namespace hpo::agent
