#include "worker/agent/attempt/checkpoint_folders.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

class CheckpointFoldersTest : public testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { fs::remove_all(root_); }

  static LeaseRef Trial(int64_t number, const std::string& database = "0123") {
    return {.trial = {.study = "team/criteria", .number = {number}},
            .attempt = {1},
            .token = "t",
            .database = database};
  }

  std::string root_ = absl::StrCat(testing::TempDir(), "/checkpoint_folders_", RandomId());
};

TEST_F(CheckpointFoldersTest, AllAttemptsOfATrialHaveOneFolder) {
  const CheckpointFolders folders(
      {.root = root_, .every = absl::Minutes(3), .every_steps = 50, .quota = GiB(2)});
  const CheckpointSpec spec = folders.SpecOf(Trial(12));
  EXPECT_EQ(spec.folder, root_ + "/0123/team_criteria/000012");
  EXPECT_TRUE(fs::is_directory(spec.folder));
  EXPECT_EQ(spec.every, absl::Minutes(3));
  EXPECT_EQ(spec.every_steps, 50);
  EXPECT_EQ(spec.quota, GiB(2));
  EXPECT_EQ(folders.SpecOf(Trial(12)), spec);
  EXPECT_EQ(folders.SpecOf(Trial(12, "")).folder, root_ + "/team_criteria/000012");
}

TEST_F(CheckpointFoldersTest, ATrialThatIsOverKeepsNothing) {
  const CheckpointFolders folders({.root = root_});
  const std::string over = folders.SpecOf(Trial(1)).folder;
  const std::string other = folders.SpecOf(Trial(2)).folder;
  std::ofstream(over + "/state") << "x";
  folders.Remove(Trial(1));
  folders.Remove(Trial(3));  // never had one
  EXPECT_FALSE(fs::exists(over));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(CheckpointFoldersTest, WithoutAPlaceThereAreNone) {
  EXPECT_EQ(CheckpointFolders({}).SpecOf(Trial(1)), CheckpointSpec{});
  CheckpointFolders({}).Remove(Trial(1));
  std::ofstream(root_ + "_file") << "x";
  EXPECT_EQ(CheckpointFolders({.root = root_ + "_file"}).SpecOf(Trial(1)), CheckpointSpec{});
  fs::remove(root_ + "_file");
}

}  // namespace
}  // namespace hpo::agent
