#include "memory/allocator/allocator_settings.h"

#include <string>

#include "common/base/bytes.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"

namespace hpo::memory {
namespace {

// The golden file is also what python/dryrun/hpo_dryrun/replay.py is held to.
TEST(AllocatorSettings, AreThoseOfTorch) {
  for (const nlohmann::json& row : ReadGolden("allocator_settings.json")) {
    const std::string text = row.at("settings");
    SCOPED_TRACE(text);
    const absl::StatusOr<AllocatorOptions> options = ParseAllocatorSettings(text);
    if (row.contains("complaint")) {
      EXPECT_EQ(options.status().message(), row.at("complaint").get<std::string>());
      continue;
    }
    ASSERT_TRUE(options.ok()) << options.status();
    const nlohmann::json& expected = row.at("options");
    const int64_t split = expected.at("max_split_bytes");
    EXPECT_EQ(*options,
              (AllocatorOptions{
                  .expandable_segments = expected.at("expandable_segments"),
                  .max_split_bytes = split > 0 ? split : AllocatorOptions::kUnlimited,
                  .garbage_collection_threshold = expected.at("garbage_collection_threshold"),
                  .roundup_power2_divisions = expected.at("roundup_power2_divisions")}));
    EXPECT_EQ(*ParseAllocatorSettings(FormatAllocatorSettings(*options)), *options);
  }
}

TEST(AllocatorSettings, OfNoneAreTheDefaults) {
  EXPECT_EQ(FormatAllocatorSettings({}), "expandable_segments:False");
}

}  // namespace
}  // namespace hpo::memory
