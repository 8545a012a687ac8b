#include "server/trials/typed_params.h"

#include "gtest/gtest.h"

namespace hpo::server {
namespace {

TEST(TypedParams, NumbersTakeTheTypeOfTheirDomain) {
  SearchSpace space;
  space.parameters = {{.name = "whole", .domain = IntDomain{.low = 0, .high = 9}},
                      {.name = "real", .domain = FloatDomain{}},
                      {.name = "sizes", .domain = CategoricalDomain{{int64_t{8}, int64_t{16}}}},
                      {.name = "rates", .domain = CategoricalDomain{{0.5, 1.0}}},
                      {.name = "mixed", .domain = CategoricalDomain{{Null(), int64_t{5}, 0.5}}},
                      {.name = "flag", .domain = CategoricalDomain{{true, false}}}};
  const struct {
    const char* name;
    ParamValue given;
    ParamValue expected;
  } cases[] = {
      {"whole", int64_t{3}, int64_t{3}},
      {"whole", 3.0, int64_t{3}},
      {"whole", 3.5, 3.5},
      {"whole", 1e300, 1e300},
      {"real", int64_t{1}, 1.0},
      {"real", 0.5, 0.5},
      {"sizes", 8.0, int64_t{8}},
      {"rates", int64_t{1}, 1.0},
      {"mixed", 5.0, int64_t{5}},
      {"mixed", Null(), Null()},
      {"flag", true, true},
      {"flag", int64_t{1}, int64_t{1}},
      {"real", std::string("x"), std::string("x")},
  };
  for (const auto& [name, given, expected] : cases) {
    SCOPED_TRACE(std::string(name) + "=" + FormatParam(given));
    const auto typed = TypedParams(space, {{name, given}});
    ASSERT_TRUE(typed.ok()) << typed.status();
    EXPECT_EQ(*typed, (ParamMap{{name, expected}}));
  }
  const auto unknown = TypedParams(space, {{"colour", true}});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(unknown.status().message(), "parameter colour: expected one of the study's parameters");
}

}  // namespace
}  // namespace hpo::server
