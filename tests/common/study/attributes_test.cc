#include "common/study/attributes.h"

#include <gmock/gmock.h>

#include "common/base/limits.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Attributes, ANoteIsSetReplacedAndTakenAway) {
  Attributes attributes = *Changed({}, {.note = "first \"try\""});
  EXPECT_EQ(NoteOf(attributes), "first \"try\"");
  attributes = *Changed(attributes, {.note = "second"});
  EXPECT_EQ(NoteOf(attributes), "second");
  EXPECT_THAT(*Changed(attributes, {.note = ""}), IsEmpty());
}

TEST(Attributes, TagsAreASet) {
  Attributes attributes = *Changed({}, {.note = {}, .add_tags = {"b", "a", "b"}});
  EXPECT_THAT(TagsOf(attributes), ElementsAre("a", "b"));
  EXPECT_TRUE(HasTag(attributes, "b"));
  attributes = *Changed(attributes, {.note = {}, .add_tags = {"c"}, .remove_tags = {"a", "x"}});
  EXPECT_THAT(TagsOf(attributes), ElementsAre("b", "c"));
  EXPECT_FALSE(HasTag(attributes, "a"));
  EXPECT_THAT(*Changed(attributes, {.note = {}, .add_tags = {}, .remove_tags = {"b", "c"}}),
              IsEmpty());
}

TEST(Attributes, ValuesAreJsonInOneSpelling) {
  const Attributes attributes =
      *Changed({}, {.note = {}, .set = {{"rows", " 12 "}, {"host", "{ \"b\":1, \"a\": [] }"}}});
  EXPECT_EQ(attributes, (Attributes{{"host", "{\"a\":[],\"b\":1}"}, {"rows", "12"}}));
  EXPECT_EQ(*Changed(attributes, {.note = {}, .set = {{"host", ""}}}),
            (Attributes{{"rows", "12"}}));
}

TEST(Attributes, WhatIsOursIsNoUsers) {
  const Attributes attributes = *Changed({}, {.note = "n", .add_tags = {"t"}, .set = {{"k", "1"}}});
  EXPECT_EQ(UsersOwn(attributes), (Attributes{{"k", "1"}}));
}

TEST(Attributes, RefusesWhatCannotBeKept) {
  const std::string long_text(static_cast<size_t>(kTextLimit.most), 'x');
  const std::pair<AttributeChange, const char*> cases[] = {
      {{.note = {}, .set = {{"hpo.tags", "[]"}}}, "expected a key that does not begin with hpo."},
      {{.note = {}, .set = {{"", "1"}}}, "attribute: expected a key, got nothing"},
      {{.note = {}, .set = {{"k", "{"}}}, "attribute k: expected JSON, got '{'"},
      {{.note = {}, .set = {{"k", "NaN"}}}, "attribute k: expected JSON, got 'NaN'"},
      {{.note = {}, .set = {{"k", '"' + long_text + '"'}}}, "attribute k: expected at most 4096"},
      {{.note = long_text + "x"}, "note: expected at most 4096 bytes, got 4097"},
      {{.note = {}, .add_tags = {"a,b"}}, "tag: expected a word or words without a comma"},
      {{.note = {}, .add_tags = {""}}, "tag: expected a word or words without a comma, got ''"},
      {{.note = {}, .add_tags = {std::string(201, 'x')}}, "tag: expected at most 200 bytes"},
  };
  for (const auto& [change, why] : cases) {
    const absl::StatusOr<Attributes> changed = Changed({}, change);
    EXPECT_TRUE(absl::IsInvalidArgument(changed.status())) << why;
    EXPECT_THAT(changed.status().message(), HasSubstr(why));
  }
}

TEST(Attributes, ThereIsRoomForSoMany) {
  Attributes told;
  for (int64_t i = 0; i < kAttributeLimit.most; ++i) told["k" + std::to_string(i)] = "1";
  ASSERT_TRUE(CheckedAttributes(told).ok());
  const absl::StatusOr<Attributes> more = Changed(told, {.note = "one more"});
  EXPECT_THAT(more.status().message(), HasSubstr("attributes: expected at most 100, got 101"));
  const Attributes fitted = WithWhatFits(told, {{"another", "1"}, {"k7", "2"}});
  EXPECT_EQ(fitted.size(), told.size());
  EXPECT_EQ(fitted.at("k7"), "2");
}

TEST(Attributes, JsonHoldsValuesNotTheirTexts) {
  const Attributes attributes = {{"a", "{\"b\":[1,2.5,null]}"}, {"s", "\"text\""}};
  const nlohmann::json json = AttributesToJson(attributes);
  EXPECT_EQ(json, nlohmann::json::parse(R"({"a":{"b":[1,2.5,null]},"s":"text"})"));
  EXPECT_EQ(*AttributesFromJson(json), attributes);
  EXPECT_THAT(AttributesFromJson(nlohmann::json::array()).status().message(),
              HasSubstr("expected an object"));
}

}  // namespace
}  // namespace hpo
