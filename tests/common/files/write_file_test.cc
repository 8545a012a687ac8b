#include "common/files/write_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "common/files/read_file.h"

namespace hpo {
namespace {

class WriteFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/write_file_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(WriteFileTest, WritesAndReplaces) {
  const std::string path = folder_ / "address";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  ASSERT_TRUE(WriteFileAtomically(path, std::string("new\0er", 6)).ok());
  EXPECT_EQ(ReadFile(path).value(), std::string("new\0er", 6));
}

TEST_F(WriteFileTest, LeavesNothingElseBehind) {
  ASSERT_TRUE(WriteFileAtomically(folder_ / "a", "x").ok());
  std::filesystem::create_directory(folder_ / "taken");
  std::filesystem::create_directory(folder_ / "taken" / "full");
  EXPECT_FALSE(WriteFileAtomically(folder_ / "taken", "x").ok());
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++entries;
  EXPECT_EQ(entries, 2);
}

TEST_F(WriteFileTest, AMissingFolderIsNotFound) {
  EXPECT_EQ(WriteFileAtomically(folder_ / "no" / "a", "x").code(), absl::StatusCode::kNotFound);
}

TEST_F(WriteFileTest, WritesDurablyAndReplaces) {
  const std::string path = folder_ / "state";
  ASSERT_TRUE(WriteFileDurably(path, "old").ok());
  ASSERT_TRUE(WriteFileDurably(path, "newer").ok());
  EXPECT_EQ(ReadFile(path).value(), "newer");
  EXPECT_EQ(WriteFileDurably(folder_ / "no" / "a", "x").code(), absl::StatusCode::kNotFound);
}

TEST_F(WriteFileTest, AFolderTakesTheNameOfAnother) {
  const auto make = [&](const char* name, const char* content) {
    std::filesystem::create_directory(folder_ / name);
    ASSERT_TRUE(WriteFileAtomically(folder_ / name / "state", content).ok());
  };
  for (const char* content : {"first", "second", "third"}) {
    make("made", content);
    ASSERT_TRUE(ReplaceFolder(folder_ / "made", folder_ / "last").ok());
    EXPECT_EQ(ReadFile(folder_ / "last" / "state").value(), content);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "made"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "last.old"));
  }
  EXPECT_EQ(ReplaceFolder(folder_ / "made", folder_ / "last").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(folder_ / "last" / "state").value(), "third");
}

TEST_F(WriteFileTest, AnUncommittedFileGoesAway) {
  const std::string path = folder_ / "state";
  ASSERT_TRUE(WriteFileDurably(path, "old").ok());
  {
    DurableFile file(path);
    ASSERT_TRUE(file.Create().ok());
    ASSERT_TRUE(file.Write("half", 4).ok());
  }
  EXPECT_EQ(ReadFile(path).value(), "old");
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++entries;
  EXPECT_EQ(entries, 1);
}

TEST_F(WriteFileTest, AFullDiskIsResourceExhausted) {
  EXPECT_EQ(FileError(ENOSPC, "a").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FileError(EDQUOT, "a").code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(WriteFileTest, AReadOnlyFileSystemIsAMatterOfRights) {
  EXPECT_EQ(FileError(EROFS, "a").code(), absl::StatusCode::kPermissionDenied);
}

TEST(MayPass, WhatFailsForWantOfSpaceOrDescriptorsDoesAndWhatFailsForRightsDoesNot) {
  for (const int error : {EAGAIN, EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT, EIO}) {
    EXPECT_TRUE(MayPass(error));
  }
  for (const int error : {0, EACCES, EPERM, EROFS, ENOENT}) EXPECT_FALSE(MayPass(error));
}

}  // namespace
}  // namespace hpo
