#include "memory/allocator/allocator_settings.h"

#include "common/base/bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

using ::testing::HasSubstr;

TEST(AllocatorSettings, AreThoseOfTorch) {
  const AllocatorOptions options = *ParseAllocatorSettings(
      "expandable_segments:True, max_split_size_mb:128,garbage_collection_threshold:0.8,"
      "roundup_power2_divisions:4");
  EXPECT_EQ(options, (AllocatorOptions{.expandable_segments = true,
                                       .max_split_bytes = MiB(128).count,
                                       .garbage_collection_threshold = 0.8,
                                       .roundup_power2_divisions = 4}));
  EXPECT_EQ(*ParseAllocatorSettings(FormatAllocatorSettings(options)), options);
}

TEST(AllocatorSettings, OfNoneAreTheDefaults) {
  EXPECT_EQ(*ParseAllocatorSettings(""), AllocatorOptions());
  EXPECT_EQ(FormatAllocatorSettings({}), "expandable_segments:False");
}

TEST(AllocatorSettings, SayWhatWasExpected) {
  const auto message = [](absl::string_view text) {
    const absl::StatusOr<AllocatorOptions> options = ParseAllocatorSettings(text);
    return options.ok() ? std::string("taken") : std::string(options.status().message());
  };
  EXPECT_EQ(message("expandable_segments:yes"),
            "expandable_segments: expected True or False, got 'yes'");
  EXPECT_EQ(message("max_split_size_mb:20"),
            "max_split_size_mb: expected a whole number of MiB above 20, got '20'");
  EXPECT_THAT(message("max_split_size_mb:9223372036854775807"), HasSubstr("above 20"));
  EXPECT_EQ(message("garbage_collection_threshold:1"),
            "garbage_collection_threshold: expected a number above 0 and below 1, got '1'");
  EXPECT_THAT(message("garbage_collection_threshold:nan"), HasSubstr("got 'nan'"));
  EXPECT_THAT(message("roundup_power2_divisions:3"), HasSubstr("power of two, got 3"));
  EXPECT_THAT(message("max_split_size:64"),
              HasSubstr("max_split_size_mb, garbage_collection_threshold"));
  EXPECT_EQ(message("expandable_segments"),
            "setting: expected OPTION:VALUE, got 'expandable_segments'");
  EXPECT_THAT(message("max_split_size_mb:64,"), HasSubstr("expected OPTION:VALUE, got ''"));
  EXPECT_THAT(message("max_split_size_mb:64,max_split_size_mb:32"), HasSubstr("expected it once"));
}

}  // namespace
}  // namespace hpo::memory
