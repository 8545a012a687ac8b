#include "common/base/json_reader.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using ::testing::HasSubstr;

nlohmann::json Parse(const char* text) { return ParseJson(text).value(); }

TEST(ParseJson, NeverThrows) {
  EXPECT_TRUE(ParseJson(R"({"a": [1, 2.5, null]})").ok());
  for (const char* text : {"", "{", "{} x", "nan", "[1,]", "\"\xff\"", "1e999"}) {
    SCOPED_TRACE(text);
    const auto json = ParseJson(text);
    ASSERT_FALSE(json.ok());
    EXPECT_EQ(json.status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(ParseJson("[1,]").status().message(), "expected JSON, got something else at byte 4");
}

TEST(DescribeJson, SaysWhatCame) {
  const std::pair<nlohmann::json, const char*> cases[] = {
      {nullptr, "null"},
      {3, "the integer 3"},
      {2.5, "the number 2.5"},
      {true, "the boolean true"},
      {"text", "the string \"text\""},
      {nlohmann::json::array(), "an array"},
      {nlohmann::json::object(), "an object"},
  };
  for (const auto& [json, expected] : cases) EXPECT_EQ(DescribeJson(json), expected);
  EXPECT_LT(DescribeJson(std::string(1000, 'x')).size(), 100u);
}

TEST(JsonReader, ReadsEveryType) {
  const nlohmann::json json = nlohmann::json::parse(
      R"({"b": true, "i": -3, "u": 18446744073709551615, "d": 2, "nan": null, "s": "x",
          "bytes": 7, "list": ["p", "q"], "numbers": {"f1": 0.5, "loss": null}})");
  bool b = false;
  int64_t i = 0;
  uint64_t u = 0;
  double d = 0.0;
  double nan = 0.0;
  std::string s;
  Bytes bytes;
  std::vector<std::string> list;
  std::map<std::string, double> numbers;
  JsonReader reader(json, "");
  reader.Required("b", b);
  reader.Required("i", i);
  reader.Required("u", u);
  reader.Required("d", d);
  reader.Required("nan", nan);
  reader.Required("s", s);
  reader.Required("bytes", bytes);
  reader.Required("list", list);
  reader.Required("numbers", numbers);
  ASSERT_TRUE(reader.status().ok()) << reader.status();
  EXPECT_TRUE(b);
  EXPECT_EQ(i, -3);
  EXPECT_EQ(u, UINT64_MAX);
  EXPECT_EQ(d, 2.0);
  EXPECT_TRUE(std::isnan(nan));
  EXPECT_EQ(s, "x");
  EXPECT_EQ(bytes, Bytes{7});
  EXPECT_EQ(list, (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(numbers.at("f1"), 0.5);
  EXPECT_TRUE(std::isnan(numbers.at("loss")));
}

TEST(JsonReader, OptionalKeepsTheValueWhereThereIsNone) {
  const nlohmann::json json = {{"null", nullptr}};
  int64_t absent = 5;
  double null = 6.0;
  JsonReader reader(json, "");
  reader.Optional("absent", absent);
  reader.Optional("null", null);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_EQ(absent, 5);
  EXPECT_EQ(null, 6.0);
  EXPECT_TRUE(reader.Has("null"));
  EXPECT_FALSE(reader.Has("absent"));
}

TEST(JsonReader, KeepsTheFirstErrorWithItsPath) {
  const nlohmann::json json = {{"a", "x"}, {"b", 3}};
  int64_t a = 1;
  int64_t b = 2;
  JsonReader reader(json, "plan");
  reader.Required("a", a);
  reader.Required("b", b);
  reader.Required("c", b);
  EXPECT_EQ(reader.status().message(), "plan.a: expected an integer, got the string \"x\"");
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);  // nothing is read after an error
}

TEST(JsonReader, RefusesWhatIsNoObject) {
  const nlohmann::json json = {1, 2};
  int64_t value = 0;
  JsonReader reader(json, "plan");
  reader.Required("a", value);
  EXPECT_EQ(reader.status().message(), "plan: expected an object, got an array");
}

absl::StatusOr<int64_t> Doubled(const nlohmann::json& json) {
  int64_t value = 0;
  JsonReader reader(json, "");
  reader.Required("value", value);
  HPO_RETURN_IF_ERROR(reader.status());
  return 2 * value;
}

TEST(MapFromJson, ReadsMembersAndNamesTheOneAtFault) {
  const auto read = [](const char* text) { return MapFromJson(Parse(text), Doubled); };
  EXPECT_EQ(read(R"({"a": {"value": 1}, "b": {"value": 2}})").value(),
            (std::map<std::string, int64_t>{{"a", 2}, {"b", 4}}));
  EXPECT_EQ(read("{}")->size(), 0u);
  EXPECT_EQ(read("[1]").status().message(), "expected an object, got an array");
  EXPECT_THAT(read(R"({"a": {"value": 1}, "b": {"value": "x"}})").status().message(),
              HasSubstr("b: value: expected an integer"));
}

int64_t ReadWhole(JsonReader& reader) {
  int64_t value = 0;
  reader.Required("value", value);
  return value;
}
int64_t ReadNothing(JsonReader&) { return 7; }

TEST(FormFromJson, ReadsTheFormThatIsNamed) {
  constexpr NamedForm<int64_t> kForms[] = {{"whole", ReadWhole}, {"none", ReadNothing}};
  const auto read = [&](const char* text) { return FormFromJson(Parse(text), "kind", kForms); };
  EXPECT_EQ(read(R"({"kind": "whole", "value": 3})").value(), 3);
  EXPECT_EQ(read(R"({"kind": "none"})").value(), 7);
  const std::pair<const char*, const char*> errors[] = {
      {R"({"kind": "half"})", "kind: expected one of whole, none, got the string \"half\""},
      {R"({"value": 3})", "kind: missing"},
      {R"({"kind": 3})", "kind: expected"},
      {R"("whole")", "expected an object"},
      {R"({"kind": "whole"})", "whole: value: missing"}};
  for (const auto& [text, message] : errors) {
    EXPECT_THAT(read(text).status().message(), HasSubstr(message)) << text;
  }
}

TEST(DumpJson, ReplacesWhatJsonCannotHold) {
  EXPECT_EQ(DumpJson({{"s", "\xff"}}), "{\"s\":\"\xEF\xBF\xBD\"}");
  EXPECT_EQ(DumpJson({{"d", std::nan("")}}), "{\"d\":null}");
}

}  // namespace
}  // namespace hpo
