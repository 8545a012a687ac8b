#include "common/files/sha256.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "gtest/gtest.h"

namespace hpo {
namespace {

// FIPS 180-4 example values.
TEST(Sha256, AgreesWithThePublishedDigests) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text.substr(0, 60));
    EXPECT_EQ(Sha256Hex(text), expected);
  }
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  Sha256 first;
  first.Update("a");
  Sha256 digest = std::move(first);
  digest.Update("");
  digest.Update("bc");
  EXPECT_EQ(digest.HexDigest(), Sha256Hex("abc"));
}

class Sha256FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/sha256_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(Sha256FileTest, ReadsFilesLongerThanOnePiece) {
  const std::string content(3'000'001, 'x');
  const std::string path = folder_ / "long";
  std::ofstream(path, std::ios::binary) << content;
  const auto digest = Sha256File(path);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*digest, Sha256Hex(content));
}

TEST_F(Sha256FileTest, AFileThatNeverEndsIsGivenUpWhenTold) {
  int pieces = 0;
  const auto digest = Sha256File("/dev/zero", [&pieces] { return ++pieces == 3; });
  EXPECT_TRUE(absl::IsCancelled(digest.status())) << digest.status();
  EXPECT_EQ(pieces, 3);
}

TEST_F(Sha256FileTest, SaysWhichFileCannotBeRead) {
  const std::string missing = folder_ / "missing";
  EXPECT_EQ(Sha256File(missing).status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(Sha256File(missing).status().message().find(missing), absl::string_view::npos);
  EXPECT_EQ(Sha256File(folder_).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo
