#include "worker/text/data/aspect_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AspectLines, AreTheTasksOwn) {
  const auto file = ParseAspectLines(
      R"({"ID":"1","Text":"the wine was good .","Quadruplet":[)"
      R"({"Aspect":"wine","Category":"DRINKS#QUALITY","Opinion":"good","VA":"7.05#5.56"},)"
      R"({"Aspect":"NULL","Category":"PLACE","Opinion":"NULL","VA":"-1#0"}]})"
      "\n\n"
      R"({"text":"b","aspects":[{"Aspect":"x","Category":"PLACE","VA":"1#2"}]})",
      "f");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->rows.size(), 2u);
  EXPECT_EQ(file->rows[0].text, "the wine was good .");
  EXPECT_THAT(file->rows[0].aspects,
              ElementsAre(Aspect{"wine", "good", "wine , good", "DRINKS#QUALITY", 7.05f, 5.56f},
                          Aspect{"", "", "NULL", "PLACE", -1.0f, 0.0f}));
  EXPECT_EQ(file->rows[1].line, 3);
  EXPECT_THAT(file->rows[1].aspects, ElementsAre(Aspect{"x", "", "x", "PLACE", 1.0f, 2.0f}));
  EXPECT_THAT(ClassesOf(*file), ElementsAre("DRINKS#QUALITY", "PLACE"));
}

TEST(AspectLines, WhatIsMalformedIsNamedWithItsLine) {
  const auto with = [](const std::string& aspect) {
    return "{\"Text\":\"a\",\"Quadruplet\":[" + aspect + "]}";
  };
  const std::string good = R"({"Aspect":"x","Category":"C","VA":"1#2"})";
  const std::pair<std::string, const char*> cases[] = {
      {"", "data/file:1: expected rows, got none"},
      {with(good) + "\n{", "data/file:2:2: expected a JSON object"},
      {"[]", "data/file:1: expected rows, got none"},
      {"[3]", "data/file:1: expected a JSON object, got the integer 3"},
      {"{\"Quadruplet\":[" + good + "]}", "data/file:1: expected a field 'text'"},
      {"{\"Text\":7}", "data/file:1: text: expected a string, got the integer 7"},
      {"{\"Text\":\"a\"}", "Quadruplet: expected a list of aspects, got 'Text'"},
      {"{\"Text\":\"a\",\"Quadruplet\":3}", "Quadruplet: expected an array"},
      {with(""), "Quadruplet: expected at least one aspect, got none"},
      {with("7"), "Quadruplet: [0]"},
      {with(good + R"(,{"Aspect":"x","VA":"1#2"})"), "Quadruplet: [1]: Category"},
      {with(R"({"Aspect":"x","Category":"","VA":"1#2"})"), "Category: expected a class"},
      {with(R"({"Aspect":"x","Category":"C"})"), "VA"},
      {with(R"({"Aspect":"x","Category":"C","VA":"1"})"),
       "VA: expected valence and arousal such as \"7.05#5.56\", got '1'"},
      {with(R"({"Aspect":"x","Category":"C","VA":"1#2#3"})"), "got '1#2#3'"},
      {with(R"({"Aspect":"x","Category":"C","VA":"nan#2"})"), "got 'nan#2'"},
      {with(R"({"Aspect":"x","Category":"C","VA":"1#high"})"), "got '1#high'"},
  };
  for (const auto& [content, expected] : cases) {
    SCOPED_TRACE(content);
    const auto file = ParseAspectLines(content, "data/file");
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(expected));
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("data/file:"));
  }
}

TEST(ReadAspectFile, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  const auto csv = ReadAspectFile(folder.Write("rows.csv", "text,label\na,x\n"));
  EXPECT_THAT(std::string(csv.status().message()), HasSubstr("write the rows as JSON lines"));
  EXPECT_EQ(ReadAspectFile(folder.path() + "/none.jsonl").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(AspectLines, AreWrittenAsTheTaskWantsThem) {
  AspectRow row{.text = "le \"café\"", .aspects = {}, .id = "\"rest_1\""};
  const Aspect found[] = {{"café", "", "café", "FOOD#QUALITY", 7.1f, 5.0f},
                          {"", "bon", "NULL , bon", "PLACE", 1.0f, 8.996f}};
  const std::string line = FormatAspectLine(row, found);
  EXPECT_EQ(line,
            R"({"ID":"rest_1","Text":"le \"café\"","Quadruplet":[)"
            R"({"Aspect":"café","Category":"FOOD#QUALITY","Opinion":"NULL","VA":"7.10#5.00"},)"
            R"({"Aspect":"NULL","Category":"PLACE","Opinion":"bon","VA":"1.00#9.00"}]})"
            "\n");
  const auto read = ParseAspectLines(line, "f");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rows[0].id, row.id);
  EXPECT_EQ(read->rows[0].text, row.text);
  EXPECT_EQ(read->rows[0].aspects[0], found[0]);
  row.id.clear();
  row.text = "a";
  EXPECT_EQ(FormatAspectLine(row, {}), "{\"Text\":\"a\",\"Quadruplet\":[]}\n");
}

// Names of other kinds than the task's are given back as they are.
TEST(AspectLines, KeepTheirNames) {
  const auto file = ParseAspectLines(
      R"({"ID":17,"Text":"a","Quadruplet":[{"Aspect":"a","Category":"C","VA":"1#2"}]})", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(FormatAspectLine(file->rows[0], {}), "{\"ID\":17,\"Text\":\"a\",\"Quadruplet\":[]}\n");
}

}  // namespace
}  // namespace hpo::text
