#include "cli/memory/dataset_profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace hpo::cli {
namespace {

class DatasetProfileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("hpo-profile-" + std::to_string(getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<DatasetProfile> Profile(const std::string& content,
                                         const std::string& name = "data.jsonl",
                                         const ProfileOptions& options = {}) const {
    std::ofstream(folder_ / name) << content;
    return ProfileDataset(folder_ / name, options);
  }

  void ExpectInvalid(const std::string& content, const std::string& message,
                     const ProfileOptions& options = {}) const {
    const auto profile = Profile(content, "data.jsonl", options);
    EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument) << content;
    EXPECT_NE(profile.status().message().find(message), absl::string_view::npos)
        << profile.status();
  }

  std::filesystem::path folder_;
};

// Counts letters, so that the profile's own counting is told apart.
class LetterTokenizer final : public text::Tokenizer {
 public:
  text::Encoding Encode(absl::string_view text, std::optional<absl::string_view> pair,
                        int64_t) const override {
    return {.ids = std::vector<int32_t>(text.size() + pair.value_or("").size() + 2)};
  }
  int64_t NumSpecialTokens(bool) const override { return 2; }
  int64_t vocab_size() const override { return 1; }
  int32_t pad_id() const override { return 0; }
  const std::string& digest() const override { return digest_; }

 private:
  std::string digest_ = "letters";
};

TEST_F(DatasetProfileTest, CountsTheItemsOfEachSample) {
  const auto profile = Profile(R"({"ID": "a", "Text": "one two", "Quadruplet": [{"Aspect": "x"}]}

{"ID": "b", "Text": "one", "Quadruplet": [{"Aspect": "x"}, {"Aspect": "y"}, {"Aspect": "z"}]}
{"ID": "c", "Text": "one two three", "Quadruplet": []}
{"ID": "d", "Text": "", "tags": ["x", "y"]}
)");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->samples, 4);
  EXPECT_EQ(profile->items_key, "Quadruplet");
  EXPECT_EQ(profile->items, (LengthHistogram{{0, 2}, {1, 1}, {3, 1}}));
  EXPECT_EQ(profile->tokens, (LengthHistogram{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_TRUE(profile->counted_words);
  ASSERT_EQ(profile->largest.size(), 4u);
  EXPECT_EQ(profile->largest[0], (LargestSample{.line = 3, .size = 3}));
  EXPECT_EQ(profile->largest[1], (LargestSample{.line = 1, .size = 1}));
}

TEST_F(DatasetProfileTest, ASampleWithoutItemsIsOneInput) {
  const auto profile = Profile(
      "{\"text\": \"a b\", \"label\": 1}\n{\"text\": \"a b c d\", \"pair\": \"e\", \"label\": "
      "0}\n");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->items_key, "");
  EXPECT_EQ(profile->items, (LengthHistogram{{1, 2}}));
  EXPECT_EQ(profile->tokens, (LengthHistogram{{2, 1}, {5, 1}}));
  EXPECT_EQ(profile->largest[0], (LargestSample{.line = 2, .size = 5}));
}

TEST_F(DatasetProfileTest, TakesTheNamedItemsAndTheTokenizer) {
  const LetterTokenizer letters;
  const auto profile = Profile(R"({"text": "abc", "a": [{}, {}], "b": [1, 2, 3]}
)",
                               "data.jsonl", {.items_key = "b", .tokenizer = &letters});
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->items, (LengthHistogram{{3, 1}}));
  EXPECT_EQ(profile->tokens, (LengthHistogram{{5, 1}}));
  EXPECT_FALSE(profile->counted_words);
}

TEST_F(DatasetProfileTest, ReadsCsv) {
  const auto profile = Profile("text,label\n\"a b\",x\nc,y\n", "data.csv");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->tokens, (LengthHistogram{{1, 1}, {2, 1}}));
}

TEST_F(DatasetProfileTest, TakesTheSameNamesInBothFormats) {
  for (const std::string name : {"text", "Sentence", "REVIEW"}) {
    const auto csv = Profile(name + ";label\na b;x\nc;y\n", "data.csv");
    ASSERT_TRUE(csv.ok()) << csv.status();
    const auto json = Profile("{\"" + name + "\": \"a b\"}\n{\"" + name + "\": \"c\"}\n");
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_EQ(csv->tokens, json->tokens);
  }
}

TEST_F(DatasetProfileTest, NamesWhatIsWrong) {
  ExpectInvalid("", "expected samples, got none");
  ExpectInvalid("{\"text\": \"a\"}\n{\"tex\": \"a\"}\n",
                "data.jsonl:2: expected a field 'text' (or 'sentence' or 'review'), got 'tex'");
  ExpectInvalid("{\"Review\": 3}\n", "data.jsonl:1: review: expected a string, got the integer 3");
  ExpectInvalid("{\"text\": null}\n", "data.jsonl:1: text: expected a string, got null");
  ExpectInvalid("[1]\n", "data.jsonl:1: expected a JSON object");
  ExpectInvalid("{\"text\": \"a\"\n", "data.jsonl:1");
  ExpectInvalid("{\"text\": \"a\"}\n", "expected a list 'Quadruplet'", {.items_key = "Quadruplet"});
  EXPECT_EQ(ProfileDataset(folder_ / "absent.jsonl", {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(LengthStatistics, OfASmallHistogram) {
  const LengthHistogram histogram = {{1, 7}, {2, 2}, {26, 1}};
  EXPECT_EQ(LargestOf(histogram), 26);
  EXPECT_DOUBLE_EQ(MeanOf(histogram), 3.7);
  EXPECT_EQ(PercentileOf(histogram, 50.0), 1);
  EXPECT_EQ(PercentileOf(histogram, 70.0), 1);
  EXPECT_EQ(PercentileOf(histogram, 71.0), 2);
  EXPECT_EQ(PercentileOf(histogram, 90.0), 2);
  EXPECT_EQ(PercentileOf(histogram, 90.1), 26);
  EXPECT_EQ(PercentileOf(histogram, 100.0), 26);
  EXPECT_EQ(SamplesUpTo(histogram, 0), 0);
  EXPECT_EQ(SamplesUpTo(histogram, 25), 9);
}

// By counting all pairs: of 45, 21 have the maximum 1, 15 the maximum 2 and 9 the maximum 26.
TEST(LengthStatistics, TheMeanMaximumOfABatchIsExact) {
  const LengthHistogram histogram = {{1, 7}, {2, 2}, {26, 1}};
  EXPECT_DOUBLE_EQ(MeanBatchMaximum(histogram, 1), 3.7);
  EXPECT_NEAR(MeanBatchMaximum(histogram, 2), (21 * 1 + 15 * 2 + 9 * 26) / 45.0, 1e-12);
  EXPECT_DOUBLE_EQ(MeanBatchMaximum(histogram, 10), 26.0);
  EXPECT_DOUBLE_EQ(MeanBatchMaximum(histogram, 1000), 26.0);
}

}  // namespace
}  // namespace hpo::cli
