#include "common/study_file/yaml_reader.h"

#include "gtest/gtest.h"

namespace hpo {
namespace {

YamlDocument Parse(absl::string_view text) {
  auto document = YamlDocument::Parse(text, "f");
  EXPECT_TRUE(document.ok()) << document.status();
  return *std::move(document);
}

TEST(ReadParam, TakesTheTypeFromHowAValueIsWritten) {
  const std::pair<const char*, ParamValue> cases[] = {
      {"true", true},
      {"FALSE", false},
      {"3", int64_t{3}},
      {"-3", int64_t{-3}},
      {"9223372036854775808", 9223372036854775808.0},  // more than an int64 holds
      {"3.0", 3.0},
      {"3e-05", 3e-5},
      {"1E3", 1000.0},
      {".5", 0.5},
      {"\"3\"", std::string("3")},
      {"'true'", std::string("true")},
      {"!!str 3", std::string("3")},
      {"yes", std::string("yes")},  // YAML 1.2: no boolean
      {".nan", std::string(".nan")},
      {"inf", std::string("inf")},
      {"1e999", std::string("1e999")},
      {"0x10", std::string("0x10")},
      {"1_000", std::string("1_000")},
      {"+-", std::string("+-")},
      {"bert-base-uncased", std::string("bert-base-uncased")},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    YamlDocument document = Parse(absl::StrCat("{v: ", text, "}"));
    YamlMap map(document.root());
    ParamValue value;
    map.Read("v", value, ReadParam);
    const absl::Status status = map.Finish();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(value, expected);
  }
}

TEST(YamlMap, CollectsItsErrors) {
  YamlDocument document = Parse("a: x\nb: y\n");
  YamlMap map(document.root());
  int64_t a = 1;
  int64_t b = 2;
  map.Read("a", a, ReadInt);
  map.Read("b", b, ReadInt);
  EXPECT_EQ(map.Finish().message(),
            "f:1:4: a: expected an integer, got 'x'\n"
            "f:2:4: b: expected an integer, got 'y'");
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);
}

TEST(YamlMap, KeepsTheValueWhereThereIsNoKey) {
  YamlDocument document = Parse("a: 1\n");
  YamlMap map(document.root());
  int64_t b = 2;
  map.Read("b", b, ReadInt);
  EXPECT_EQ(b, 2);
  EXPECT_EQ(map.Finish().message(), "f:1:1: a: unknown key 'a'; expected one of b");
}

TEST(YamlMap, RequiresKeys) {
  YamlDocument document = Parse("outer: {a: 1}\n");
  YamlMap outer(document.root());
  const auto value = outer.Require("outer");
  ASSERT_TRUE(value.has_value());
  YamlMap inner(*value);
  EXPECT_TRUE(inner.Require("a").has_value());
  EXPECT_FALSE(inner.Require("b").has_value());
  EXPECT_EQ(inner.Finish().message(), "f:1:8: outer: expected a key 'b', got none");
}

TEST(YamlMap, AliasesAreRead) {
  YamlDocument document = Parse("a: &list [x, y]\nb: *list\n");
  YamlMap map(document.root());
  std::vector<std::string> a;
  std::vector<std::string> b;
  map.Read("a", a, ReadStrings);
  map.Read("b", b, ReadStrings);
  ASSERT_TRUE(map.Finish().ok());
  EXPECT_EQ(a, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(b, a);
}

TEST(YamlDocument, PutsAStatusAtTheNearestPlace) {
  YamlDocument document = Parse("a:\n  b: 1\n");
  YamlMap map(document.root());
  YamlMap inner(*map.Take("a"));
  const std::pair<const char*, const char*> cases[] = {
      {"a.b: too small", "f:2:6: a.b: too small"},
      {"a.c: missing", "f:2:3: a.c: missing"},  // a stands where its first key does
      {"d: missing", "f:1:1: d: missing"},
  };
  for (const auto& [message, expected] : cases) {
    EXPECT_EQ(document.AtPath(absl::InvalidArgumentError(message)).message(), expected);
  }
  EXPECT_TRUE(document.AtPath(absl::OkStatus()).ok());
}

}  // namespace
}  // namespace hpo
