#include "worker/agent/attempt/state_folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "gtest/gtest.h"
#include "tests/fakes/few_descriptors.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

class StateFolderTest : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(root_); }
  std::string root_ = absl::StrCat(testing::TempDir(), "/state_folder_", RandomId());
};

TEST_F(StateFolderTest, HostsOfOneNameHaveWorkersOfDifferentNames) {
  EXPECT_EQ(*DefaultWorkerName("h", "GPU-8f0c2f5e-11aa-22bb-33cc-44dd55ee66ff", root_),
            "h:GPU-8f0c2f5e");
  EXPECT_EQ(*DefaultWorkerName("h", "card", root_), "h:card");
  const auto name = DefaultWorkerName("h", "", root_);
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->substr(0, 6), "h:cpu-");
  EXPECT_EQ(name->size(), 6u + 8u);
  EXPECT_EQ(*DefaultWorkerName("h", "", root_), *name) << "the folder keeps its id";
  EXPECT_NE(*DefaultWorkerName("h", "", root_ + "/other"), *name);
  EXPECT_TRUE(absl::IsFailedPrecondition(DefaultWorkerName("h", "", "/proc/none").status()));
}

TEST_F(StateFolderTest, OneProcessHasIt) {
  {
    const auto first = OpenStateFolder(root_, "host:cpu");
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(first->path, root_ + "/host-cpu");
    EXPECT_TRUE(fs::is_directory(first->path + "/runs"));
    EXPECT_TRUE(absl::IsAlreadyExists(OpenStateFolder(root_, "host:cpu").status()));
    EXPECT_TRUE(OpenStateFolder(root_, "host:gpu0").ok());
  }
  EXPECT_TRUE(OpenStateFolder(root_, "host:cpu").ok());
}

absl::StatusCode CodeWithoutDescriptors(const std::function<absl::Status()>& open) {
  const FewDescriptors none;
  return open().code();
}

// Another worker of the name is what an open that fails does not tell of.
TEST_F(StateFolderTest, WhatTheMachineLacksAtTheMomentMayPass) {
  const auto folder = [&] { return OpenStateFolder(root_, "w").status(); };
  const auto name = [&] { return DefaultWorkerName("h", "", root_).status(); };
  for (int times = 0; times < 2; ++times) {  // without the files, and with them
    EXPECT_EQ(CodeWithoutDescriptors(folder), absl::StatusCode::kUnavailable);
    EXPECT_EQ(CodeWithoutDescriptors(name), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(folder().ok());
    EXPECT_TRUE(name().ok());
  }
}

TEST_F(StateFolderTest, ALockThatCannotBeMadeIsNoOtherWorker) {
  fs::create_directories(root_ + "/w/lock");
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenStateFolder(root_, "w").status()));
}

TEST_F(StateFolderTest, NobodyElseMayReadIt) {
  fs::create_directories(root_ + "/w");
  fs::permissions(root_ + "/w", fs::perms::all);
  ASSERT_TRUE(OpenStateFolder(root_, "w").ok());
  EXPECT_EQ(fs::status(root_ + "/w").permissions(), fs::perms::owner_all);
}

}  // namespace
}  // namespace hpo::agent
