#include "common/space/params.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

TEST(Params, JsonKeepsEveryType) {
  const ParamMap params = {{"flag", true},
                           {"length", int64_t{128}},
                           {"lr", 3.0},
                           {"model.name", std::string("bert-base-uncased")},
                           {"none", Null()}};
  const auto again = ParamsFromJson(nlohmann::json::parse(ParamsToJson(params).dump()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, params);
}

TEST(Params, RefusesWhatIsNotAParameter) {
  const auto nested = ParamsFromJson(nlohmann::json::parse(R"({"lr": [1, 2]})"));
  ASSERT_FALSE(nested.ok());
  EXPECT_NE(nested.status().message().find("lr"), absl::string_view::npos);
  EXPECT_FALSE(ParamsFromJson(nlohmann::json::parse("[1]")).ok());
}

TEST(Params, ATextThatReadsAsAnotherValueIsShownInQuotes) {
  const std::pair<ParamValue, const char*> cases[] = {
      {Null(), "null"}, {std::string("null"), "\"null\""}, {std::string("None"), "None"},
      {true, "true"},   {std::string("true"), "\"true\""}, {std::string("1e-3"), "\"1e-3\""},
      {1.0, "1"},       {std::string("sqrt"), "sqrt"},     {std::string(), "\"\""},
  };
  for (const auto& [value, shown] : cases) EXPECT_EQ(ShowParam(value), shown);
  EXPECT_EQ(FormatParam(std::string("null")), "null");
}

TEST(Params, LooksUpByNameAndType) {
  const ParamMap params = {{"length", int64_t{128}}, {"lr", 3e-5}};
  EXPECT_EQ(FindInt(params, "length"), 128);
  EXPECT_EQ(FindDouble(params, "length"), 128.0);
  EXPECT_EQ(FindInt(params, "lr"), std::nullopt);
  EXPECT_EQ(FindString(params, "absent"), std::nullopt);
  EXPECT_EQ(FormatParams(params), "length=128 lr=3e-05");
}

}  // namespace
}  // namespace hpo
