#include "worker/text/batching/token_cache.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::text {
namespace {

namespace fs = std::filesystem;

// A token for each character; counts how often it is asked.
class CountingTokenizer final : public Tokenizer {
 public:
  explicit CountingTokenizer(std::string digest = "letters") : digest_(std::move(digest)) {}

  Encoding Encode(absl::string_view text, std::optional<absl::string_view> pair,
                  int64_t max_length) const override {
    ++calls;
    Encoding encoding;
    const auto add = [&](absl::string_view part, int32_t type) {
      for (const char c : part) {
        if (static_cast<int64_t>(encoding.ids.size()) == max_length) return;
        encoding.ids.push_back(c);
        encoding.type_ids.push_back(type);
      }
    };
    add(text, 0);
    if (pair.has_value()) add(*pair, 1);
    return encoding;
  }
  int64_t NumSpecialTokens(bool) const override { return 0; }
  int64_t vocab_size() const override { return 128; }
  int32_t pad_id() const override { return 7; }
  const std::string& digest() const override { return digest_; }

  mutable int calls = 0;

 private:
  std::string digest_;
};

Dataset Pairs() {
  return {.path = "f",
          .label_names = {"x", "y"},
          .pairs = true,
          .rows = {{"ab", "c", {1}}, {"", "", {0}}, {"abcdef", "ghijkl", {1}}}};
}

Dataset OneRow(const std::string& text, const std::optional<std::string>& pair = std::nullopt) {
  return {.path = "f", .pairs = pair.has_value(), .rows = {{text, pair, {}}}};
}

void ExpectEqual(const absl::StatusOr<EncodedDataset>& a, const absl::StatusOr<EncodedDataset>& b) {
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(a->ids, b->ids);
  EXPECT_EQ(a->type_ids, b->type_ids);
  EXPECT_EQ(a->token_offsets, b->token_offsets);
  EXPECT_EQ(a->labels, b->labels);
  EXPECT_EQ(a->label_offsets, b->label_offsets);
  EXPECT_EQ(a->numbers, b->numbers);
  EXPECT_EQ(a->num_labels, b->num_labels);
  EXPECT_EQ(a->multi_label, b->multi_label);
  EXPECT_EQ(a->pad_id, b->pad_id);
}

class TokenCacheTest : public testing::Test {
 protected:
  // Its files, by name.
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    if (!fs::exists(cache_folder_)) return files;
    for (const auto& entry : fs::directory_iterator(cache_folder_)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  // How often the tokenizer is asked for this data set's tokens.
  int Calls(const TokenCache& cache, const Dataset& dataset, int64_t max_length = 8) {
    const int before = tokenizer_.calls;
    EXPECT_TRUE(cache.Encode(dataset, tokenizer_, max_length).ok());
    return tokenizer_.calls - before;
  }

  void Age(const fs::path& file, int hours) const {
    fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(hours));
  }

  const TemporaryFolder folder_;
  const std::string cache_folder_ = folder_.path() + "/cache/tokens";
  const TokenCache cache_{cache_folder_, MiB(1)};
  const CountingTokenizer tokenizer_;
};

TEST_F(TokenCacheTest, GivesWhatTokenizingGives) {
  const auto plain = EncodeDataset(Pairs(), tokenizer_, 8);
  ExpectEqual(cache_.Encode(Pairs(), tokenizer_, 8), plain);
  const int calls = tokenizer_.calls;
  ExpectEqual(cache_.Encode(Pairs(), tokenizer_, 8), plain);
  ExpectEqual(TokenCache(cache_folder_, MiB(1)).Encode(Pairs(), tokenizer_, 8), plain);
  EXPECT_EQ(tokenizer_.calls, calls);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(TokenCacheTest, LabelsAreTheDataSetsOwn) {
  EXPECT_EQ(Calls(cache_, Pairs()), 3);
  Dataset other = Pairs();
  other.label_names = {"v", "a"};
  for (DatasetRow& row : other.rows) {
    row.labels.clear();
    row.numbers = {0.5f, -2.0f};
  }
  ExpectEqual(cache_.Encode(other, tokenizer_, 8), EncodeDataset(other, tokenizer_, 8));
  EXPECT_EQ(Calls(cache_, other), 0);
}

TEST_F(TokenCacheTest, KeepsApartWhatGivesOtherTokens) {
  EXPECT_EQ(Calls(cache_, OneRow("ab", "c")), 1);
  EXPECT_EQ(Calls(cache_, OneRow("ab", "c"), 9), 1);
  EXPECT_EQ(Calls(cache_, OneRow("a", "bc")), 1);
  EXPECT_EQ(Calls(cache_, OneRow("abc")), 1);
  EXPECT_EQ(Calls(cache_, OneRow("abc", "")), 1);
  const CountingTokenizer other("capitals");
  EXPECT_TRUE(cache_.Encode(OneRow("abc"), other, 8).ok());
  EXPECT_EQ(other.calls, 1);
  EXPECT_EQ(Files().size(), 6u);
}

TEST_F(TokenCacheTest, WhatIsTornOrForeignIsPassedOverAndWrittenAnew) {
  const Dataset dataset = Pairs();
  const auto plain = EncodeDataset(dataset, tokenizer_, 8);
  ASSERT_EQ(Calls(cache_, dataset), 3);
  const std::string path = Files().front();
  const std::string whole = *ReadFile(path);
  ASSERT_EQ(Calls(cache_, OneRow("q")), 1);
  const std::string others = *ReadFile(Files().front() == path ? Files().back() : Files().front());
  std::string turned = whole;
  turned.back() ^= 1;
  for (const std::string& bad : {std::string(), whole.substr(0, whole.size() / 2), turned, others,
                                 std::string("no tokens at all"), whole + "x"}) {
    SCOPED_TRACE(bad.size());
    std::ofstream(path, std::ios::binary) << bad;
    const int calls = tokenizer_.calls;
    ExpectEqual(cache_.Encode(dataset, tokenizer_, 8), plain);
    EXPECT_EQ(tokenizer_.calls - calls, 3);
    EXPECT_EQ(*ReadFile(path), whole);
  }
}

TEST_F(TokenCacheTest, WhatWasNotUsedForTheLongestTimeGoesFirst) {
  ASSERT_EQ(Calls(cache_, OneRow("aa")), 1);
  const fs::path first = Files().front();
  const auto size = static_cast<int64_t>(fs::file_size(first));
  Age(first, 3);
  ASSERT_EQ(Calls(cache_, OneRow("bb")), 1);
  const fs::path second = Files().front() == first ? Files().back() : Files().front();
  Age(second, 2);
  const TokenCache two(cache_folder_, Bytes{2 * size + 8});
  EXPECT_EQ(Calls(two, OneRow("aa")), 0);  // used now
  EXPECT_EQ(Calls(two, OneRow("cc")), 1);
  EXPECT_TRUE(fs::exists(first));
  EXPECT_FALSE(fs::exists(second));
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(TokenCacheTest, AFileThatWasNeverFinishedGoesToo) {
  fs::create_directories(cache_folder_);
  const std::string left = cache_folder_ + "/abc.tokens.1234.tmp";
  std::ofstream(left) << std::string(1000, 'x');
  Age(left, 1);
  std::ofstream(cache_folder_ + "/readme.txt") << std::string(1000, 'x');
  const TokenCache small(cache_folder_, Bytes{1100});
  EXPECT_EQ(Calls(small, OneRow("aa")), 1);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_EQ(Files().size(), 2u);  // what is not the cache's own stays
}

TEST_F(TokenCacheTest, WhatCannotBeKeptIsTokenizedEveryTime) {
  const TokenCache off;
  const TokenCache small(cache_folder_, Bytes{10});
  const TokenCache nowhere(folder_.Write("file", "x") + "/tokens", MiB(1));
  for (const TokenCache* cache : {&off, &small, &nowhere}) {
    EXPECT_EQ(Calls(*cache, Pairs()), 3);
    EXPECT_EQ(Calls(*cache, Pairs()), 3);
  }
  EXPECT_TRUE(Files().empty());
}

TEST_F(TokenCacheTest, ManyMayUseOneFolder) {
  const auto plain = EncodeDataset(Pairs(), tokenizer_, 8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const CountingTokenizer own;
      for (int round = 0; round < 20; ++round) {
        const int64_t length = 8 + round % 3;
        ExpectEqual(cache_.Encode(Pairs(), own, length), EncodeDataset(Pairs(), own, length));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Files().size(), 3u);
}

TEST_F(TokenCacheTest, RefusesWhatTokenizingRefuses) {
  EXPECT_EQ(cache_.Encode(Pairs(), tokenizer_, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Files().empty());
}

}  // namespace
}  // namespace hpo::text
