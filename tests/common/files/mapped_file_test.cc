#include "common/files/mapped_file.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/files/write_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  ~MappedFileTest() override { std::filesystem::remove(path_); }

  std::string Text(const MappedFile& file) const {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/mapped_", RandomId());
};

TEST_F(MappedFileTest, ShowsWhatIsInIt) {
  const std::string content(10'000, 'x');
  ASSERT_TRUE(WriteFileAtomically(path_, content + "end").ok());
  const auto file = MappedFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Text(*file), content + "end");
}

TEST_F(MappedFileTest, StaysWhenAnotherFileTakesTheName) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").ok());
  auto file = MappedFile::Open(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(WriteFileAtomically(path_, "new").ok());
  MappedFile moved = *std::move(file);
  EXPECT_EQ(Text(moved), "old");
  auto other = MappedFile::Open(path_);
  ASSERT_TRUE(other.ok());
  moved = *std::move(other);
  EXPECT_EQ(Text(moved), "new");
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  const auto file = MappedFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, SaysWhatCannotBeMapped) {
  const absl::Status missing = MappedFile::Open(path_).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), testing::HasSubstr(path_));
  const absl::Status folder = MappedFile::Open(testing::TempDir()).status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo
