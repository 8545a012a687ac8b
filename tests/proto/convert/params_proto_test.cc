#include "proto/convert/params_proto.h"

#include <gtest/gtest.h>

#include <limits>

namespace hpo {
namespace {

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
  for (const auto& [name, value] : params) {
    EXPECT_EQ(FromProto(ToProto(value)).value(), value) << name;
  }
}

TEST(ParamsProto, AWholeNumberKeepsItsType) {
  EXPECT_EQ(ToProto(ParamValue(int64_t{3})).kind_case(), v1::Value::kIntValue);
  EXPECT_EQ(ToProto(ParamValue(3.0)).kind_case(), v1::Value::kDoubleValue);
}

TEST(ParamsProto, NullIsAValueAndNotAnAbsentOne) {
  EXPECT_EQ(ToProto(ParamValue(Null())).kind_case(), v1::Value::kNullValue);
  EXPECT_EQ(ToProto(ParamValue(std::string("null"))).kind_case(), v1::Value::kStringValue);
}

}  // namespace
}  // namespace hpo
