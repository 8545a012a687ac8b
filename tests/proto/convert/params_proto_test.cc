#include "proto/convert/params_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace hpo {
namespace {

using testing::HasSubstr;

TEST(ParamsProto, EveryTypeRoundTrips) {
  const ParamMap params = {{"flag", true},
                           {"off", false},
                           {"count", int64_t{3}},
                           {"large", std::numeric_limits<int64_t>::min()},
                           {"rate", 3e-5},
                           {"whole", 3.0},
                           {"name", std::string("bert-base-uncased")},
                           {"empty", std::string()},
                           {"none", Null()}};
  const absl::StatusOr<ParamMap> back = FromProto(ToProto(params));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, params);
}

TEST(ParamsProto, AWholeNumberKeepsItsType) {
  EXPECT_EQ(ToProto(ParamValue(int64_t{3})).kind_case(), v1::Value::kIntValue);
  EXPECT_EQ(ToProto(ParamValue(3.0)).kind_case(), v1::Value::kDoubleValue);
}

TEST(ParamsProto, NullIsAValueAndNotAnAbsentOne) {
  EXPECT_EQ(ToProto(ParamValue(Null())).kind_case(), v1::Value::kNullValue);
  EXPECT_EQ(ToProto(ParamValue(std::string("null"))).kind_case(), v1::Value::kStringValue);
}

TEST(ParamsProto, AnEmptyValueIsRefusedWithItsName) {
  google::protobuf::Map<std::string, v1::Value> proto;
  proto["train.lr"];
  const absl::StatusOr<ParamMap> params = FromProto(proto);
  EXPECT_EQ(params.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(params.status().message()), HasSubstr("parameter train.lr: expected"));
}

}  // namespace
}  // namespace hpo
