#include "cli/client/last_run.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/command_line/temporary_folder.h"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

TEST(LastRun, IsTheOneThatWasRememberedWhileItsDatabaseIsThere) {
  const auto root = TemporaryFolder::Create("hpo-last-run-");
  ASSERT_TRUE(root.ok());
  const char* const before = std::getenv("XDG_STATE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_STATE_HOME", ((*root)->path() + "/state").c_str(), 1);
  EXPECT_FALSE(FindLastRun().has_value());
  const std::string folder = (*root)->path() + "/run";
  fs::create_directories(folder);
  RememberRun({.folder = folder, .study = "größe"});
  EXPECT_FALSE(FindLastRun().has_value()) << "it has no database";
  std::ofstream(folder + "/hpo.db") << "database";
  const std::optional<LastRun> found = FindLastRun();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->folder, folder);
  EXPECT_EQ(found->study, "größe");
  std::ofstream((*root)->path() + "/state/hpo/last_run.json") << "[\"no object\"]";
  EXPECT_FALSE(FindLastRun().has_value());
  if (before == nullptr) {
    unsetenv("XDG_STATE_HOME");
  } else {
    setenv("XDG_STATE_HOME", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace hpo::cli
