#include "common/models/workload.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

TEST(LongestPadded, CutsAtMaxLengthAndRoundsUpToThePadding) {
  const struct {
    LengthHistogram lengths;
    int64_t max_length;
    int64_t expected;
  } cases[] = {
      {{}, 128, 128},
      {{}, 100, 112},  // nothing known: every row is as long as may be
      {{{10, 5}, {90, 1}}, 128, 96},
      {{{10, 5}, {300, 1}}, 128, 128},
      {{{10, 5}, {300, 1}}, 100, 112},
      {{{10, 5}, {300, 0}}, 128, 16},  // no row of that length
      {{{1, 1}}, 1, 16},
  };
  for (const auto& [lengths, max_length, expected] : cases) {
    SCOPED_TRACE(max_length);
    EXPECT_EQ(LongestPadded(lengths, max_length), expected);
  }
}

TEST(DataSetFactsJson, AddsUpRowsOfOneLength) {
  const auto facts = DataSetFactsFromJson(nlohmann::json::parse(
      R"({"name": "a", "digest": "b", "rows": 3, "labels": [], "lengths": {"v": [[8, 1], [8, 2]]}})"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->lengths.at("v"), (LengthHistogram{{8, 3}}));
  EXPECT_EQ(DataSetFactsFromJson(nlohmann::json::parse(R"({"name": "a"})")).status().message(),
            "digest: missing");
}

}  // namespace
}  // namespace hpo
