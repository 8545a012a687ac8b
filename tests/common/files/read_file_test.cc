#include "common/files/read_file.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace hpo {
namespace {

class ReadFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/read_file_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(ReadFileTest, GivesTheBytesUnchanged) {
  const std::string contents[] = {"", std::string("a\0b\r\n\xff", 6), std::string(200'000, 'x')};
  for (const std::string& content : contents) {
    SCOPED_TRACE(content.size());
    const std::string path = folder_ / "file";
    std::ofstream(path, std::ios::binary) << content;
    const auto read = ReadFile(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, content);
  }
}

TEST_F(ReadFileTest, NamesWhatCannotBeRead) {
  const std::string missing = folder_ / "missing";
  EXPECT_EQ(ReadFile(missing).status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(ReadFile(missing).status().message().find(missing), absl::string_view::npos);
  EXPECT_EQ(ReadFile(folder_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReadFileTest, ALogsTailIsTheEndOfOneAttemptsPart) {
  const std::string log = folder_ / "log";
  std::ofstream(log) << "earlier attempt\n"
                     << "one\ntwo\nthree\n";
  EXPECT_EQ(LogTail(log, 0, 2), "two\nthree");
  EXPECT_EQ(LogTail(log, 16, 10), "one\ntwo\nthree");
  EXPECT_EQ(LogTail(log, 1000, 10), "");
  EXPECT_EQ(LogTail(log + ".missing", 0, 10), "");
}

TEST_F(ReadFileTest, ALogsTailIsUtf8EvenWhereItIsCut) {
  const std::string log = folder_ / "log";
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "\xc3\xa4";
  std::ofstream(log) << "x" << text << "\xff";
  const std::string tail = LogTail(log, 0, 10);
  EXPECT_LE(tail.size(), 4096u + 8);
  EXPECT_EQ(tail.substr(0, 3), "\xef\xbf\xbd");  // half a letter
  EXPECT_EQ(tail.substr(tail.size() - 3), "\xef\xbf\xbd");
}

TEST(FileError, TellsMissingFromForbiddenFromBroken) {
  EXPECT_EQ(FileError(ENOTDIR, "a").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FileError(EACCES, "a").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(FileError(EIO, "a").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hpo
