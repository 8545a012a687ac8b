#include "proto/convert/message_json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hpo/v1/study.pb.h"

namespace hpo {
namespace {

TEST(MessageJson, HasTheNamesOfTheProtocolAndLeavesDefaultsOut) {
  v1::Study study;
  study.set_name("</script>\xE2\x80\xA8");
  study.set_best_trial(7);
  study.mutable_time_by_use()->mutable_useful()->set_seconds(3);
  const auto json = MessageToJson(study);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_THAT(*json, testing::HasSubstr(R"("best_trial":"7")"));
  EXPECT_THAT(*json, testing::HasSubstr(R"("time_by_use":{"useful":"3s"})"));
  EXPECT_THAT(*json, testing::Not(testing::HasSubstr("waiting_for")));
  // Within an HTML element no text ends it.
  EXPECT_THAT(*json, testing::Not(testing::HasSubstr("<")));
}

TEST(MessageJson, ATimeThatIsNoneIsAnError) {
  v1::Study study;
  study.mutable_created()->set_nanos(-1);
  EXPECT_EQ(MessageToJson(study).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace hpo
