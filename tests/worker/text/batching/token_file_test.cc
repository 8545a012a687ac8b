#include "worker/text/batching/token_file.h"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kKey(kTokenKeyBytes, 'k');
constexpr int64_t kVocabulary = 10;

struct Rows {
  std::vector<int64_t> offsets = {0, 2, 2, 5};
  std::vector<int32_t> ids = {1, 2, 3, 4, 9};
  std::vector<int32_t> type_ids = {0, 0, 0, 1, 1};
  operator TokenRows() const { return {offsets, ids, type_ids}; }
};

// The file's bytes, aligned as a mapping's are.
class File {
 public:
  explicit File(const TokenRows& rows, const std::string& key = kKey) {
    const TokenFileHeader header = DescribeTokens(rows, key);
    Append(&header, sizeof(header));
    Append(rows.offsets.data(), rows.offsets.size_bytes());
    Append(rows.ids.data(), rows.ids.size_bytes());
    Append(rows.type_ids.data(), rows.type_ids.size_bytes());
  }

  absl::StatusOr<TokenRows> Parse(const std::string& key = kKey) const {
    return ParsePart(size_, key);
  }
  absl::StatusOr<TokenRows> ParsePart(size_t size, const std::string& key = kKey) const {
    return ParseTokenFile(std::as_bytes(std::span(words_)).first(size), key, kVocabulary);
  }
  size_t size() const { return size_; }
  std::byte& at(size_t i) { return std::as_writable_bytes(std::span(words_))[i]; }

 private:
  void Append(const void* data, size_t size) {
    words_.resize((size_ + size + 7) / 8);
    std::memcpy(reinterpret_cast<char*>(words_.data()) + size_, data, size);
    size_ += size;
  }

  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

TEST(TokenFile, GivesBackTheRows) {
  const File file{Rows()};
  const auto rows = file.Parse();
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->offsets, ElementsAre(0, 2, 2, 5));
  EXPECT_THAT(rows->ids, ElementsAre(1, 2, 3, 4, 9));
  EXPECT_THAT(rows->type_ids, ElementsAre(0, 0, 0, 1, 1));
}

TEST(TokenFile, HoldsNoRowsToo) {
  const File file{Rows{.offsets = {0}, .ids = {}, .type_ids = {}}};
  const auto rows = file.Parse();
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->offsets, ElementsAre(0));
  EXPECT_THAT(rows->ids, IsEmpty());
}

TEST(TokenFile, IsRefusedWhereverItIsTorn) {
  const File file{Rows()};
  for (size_t size = 0; size < file.size(); ++size) {
    SCOPED_TRACE(size);
    EXPECT_EQ(file.ParsePart(size).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(TokenFile, IsRefusedWhicheverBitIsTurned) {
  File file{Rows()};
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    SCOPED_TRACE(bit);
    const auto mask = static_cast<std::byte>(1u << (bit % 8));
    file.at(bit / 8) ^= mask;
    EXPECT_EQ(file.Parse().status().code(), absl::StatusCode::kInvalidArgument);
    file.at(bit / 8) ^= mask;
  }
  EXPECT_TRUE(file.Parse().ok());
}

TEST(TokenFile, OfAnotherKeyIsRefused) {
  const File file{Rows()};
  const absl::Status refused = file.Parse(std::string(kTokenKeyBytes, 'j')).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("expected tokens of jjj"));
}

// Written by somebody who knows the checksum.
TEST(TokenFile, RowsThatCannotBeAreRefused) {
  const std::pair<const char*, Rows> cases[] = {
      {"first offset", {.offsets = {1, 2, 2, 5}}},
      {"last offset", {.offsets = {0, 2, 2, 4}}},
      {"falling offsets", {.offsets = {0, 3, 2, 5}}},
      {"offset above all", {.offsets = {0, 2, 9, 5}}},
      {"id above the vocabulary", {.ids = {1, 2, 3, 4, 10}}},
      {"negative id", {.ids = {-1, 2, 3, 4, 9}}},
      {"third type", {.type_ids = {0, 0, 0, 1, 2}}},
      {"negative type", {.type_ids = {0, -1, 0, 1, 1}}},
  };
  for (const auto& [what, rows] : cases) {
    SCOPED_TRACE(what);
    const absl::Status refused = File(rows).Parse().status();
    EXPECT_THAT(std::string(refused.message()), HasSubstr("expected rows of known tokens"));
  }
}

}  // namespace
}  // namespace hpo::text
