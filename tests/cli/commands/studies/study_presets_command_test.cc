#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/run_program.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(StudyPresets, AreListedWithWhatTheyAreFor) {
  const ProgramResult list = RunOffline({"study", "presets"});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("fast-prototype    A quick look: a tenth of the data"));
  const nlohmann::json json = RunOfflineJson({"study", "presets"});
  ASSERT_EQ(json.size(), 5u);
  EXPECT_EQ(json[0]["name"], "criteria");
}

TEST(StudyPresets, OneIsPrintedAsItsFile) {
  const ProgramResult file = RunOffline({"study", "presets", "ultra-low-memory"});
  EXPECT_EQ(file.status, 0) << file.err;
  EXPECT_THAT(file.out, StartsWith("# For the smallest cards"));
  EXPECT_THAT(file.out, HasSubstr("\nname: ultra-low-memory\n"));
  EXPECT_EQ(RunOfflineJson({"study", "presets", "ultra-low-memory"})["yaml"], file.out);
}

TEST(StudyPresets, ATypoIsAnsweredWithTheNames) {
  ExpectRefused({"study", "presets", "ultra-low-memry"}, 3,
                "preset 'ultra-low-memry': expected one of criteria, fast-prototype, "
                "maximum-quality, memory-safe, ultra-low-memory; did you mean 'ultra-low-memory'?");
}

}  // namespace
}  // namespace hpo::cli
