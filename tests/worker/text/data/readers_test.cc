#include "worker/text/data/readers.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"
#include "worker/text/data/json_lines.h"

namespace hpo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct BadFile {
  std::string content;
  const char* expected;
};

template <typename Parse>
void ExpectRefused(const Parse& parse, const std::vector<BadFile>& cases,
                   const RowTargets& targets = {}) {
  for (const auto& [content, expected] : cases) {
    SCOPED_TRACE(content.substr(0, 200));
    const auto file = parse(content, "data/file", targets);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(expected));
  }
}

TEST(JsonLines, ReadsSingleLabels) {
  const auto file = ParseJsonLines(
      "{\"text\":\"a\",\"label\":\"yes\"}\n\n  \n{\"label\":-3,\"id\":[1],\"text\":\"\\u00e9\"}",
      "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->path, "f");
  EXPECT_FALSE(file->multi_label);
  EXPECT_FALSE(file->pairs);
  EXPECT_THAT(file->rows, ElementsAre(DataFileRow{"a", std::nullopt, {"yes"}, 1},
                                      DataFileRow{"é", std::nullopt, {"-3"}, 4}));
}

TEST(JsonLines, ReadsPairsAndSeveralLabels) {
  const auto file = ParseJsonLines(
      "{\"text\":\"a\",\"pair\":\"b\",\"labels\":[\"x\",7]}\n"
      "{\"text\":\"\",\"pair\":\"\",\"labels\":[]}\n",
      "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->multi_label);
  EXPECT_TRUE(file->pairs);
  EXPECT_THAT(file->rows[0].labels, ElementsAre("x", "7"));
  EXPECT_THAT(file->rows[1].labels, IsEmpty());
}

TEST(JsonLines, ByteOrderMarkAndWindowsLineEndsAreNoContent) {
  const auto file = ParseJsonLines(
      "\xEF\xBB\xBF{\"text\":\"a\",\"label\":\"x\"}\r\n{\"text\":\"b\",\"label\":\"y\"}\r\n", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->rows.size(), 2);
  EXPECT_EQ(file->rows[1].text, "b");
  EXPECT_EQ(file->rows[1].line, 2);
}

TEST(JsonLines, NullCountsAsAbsent) {
  const auto file = ParseJsonLines(R"({"text":"a","pair":null,"labels":null,"label":"x"})", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->pairs);
}

TEST(JsonLines, ErrorsNameFileLineAndField) {
  const std::string good = "{\"text\":\"a\",\"label\":\"x\"}\n";
  ExpectRefused(
      ParseJsonLines,
      {
          {"", "data/file:1: expected rows, got an empty file"},
          {"\n \n", "data/file:1: expected rows"},
          {good + "{\"text\":", "data/file:2: expected a JSON object, got broken JSON at byte 9"},
          {good + "[1]", "data/file:2: expected a JSON object, got [1]"},
          {good + "{\"a\":1e999}",
           "data/file:2: expected a JSON object, got a number out of range"},
          {good + "{\"label\":\"x\"}", "data/file:2: expected a field 'text'"},
          {good + "{\"text\":\"a\"}", "data/file:2: expected a field 'label' or 'labels'"},
          {good + "{\"text\":\"a\",\"label\":\"x\",\"labels\":[]}",
           "data/file:2: expected one of 'label' and 'labels', got both"},
          {good + "{\"text\":7,\"label\":\"x\"}", "data/file:2: text: expected a string, got 7"},
          {good + "{\"text\":\"a\",\"pair\":[],\"label\":\"x\"}",
           "data/file:2: pair: expected a string, got []"},
          {good + "{\"text\":\"a\",\"label\":1.5}",
           "data/file:2: label: expected a string or an integer, got 1.5"},
          {good + "{\"text\":\"a\",\"label\":true}", "data/file:2: label: expected a string or"},
          {good + "{\"text\":\"a\",\"label\":\"\"}",
           "data/file:2: label: expected a label, got an empty string"},
          {"{\"text\":\"a\",\"labels\":\"x\"}",
           "data/file:1: labels: expected an array of labels, got \"x\""},
          {"{\"text\":\"a\",\"labels\":[\"x\",null]}",
           "data/file:1: labels: expected a string or an integer, got null"},
          {"{\"text\":\"a\",\"labels\":[\"x\",\"y\",\"x\"]}",
           "data/file:1: labels: expected each label once, got 'x' twice"},
          {"{\"text\":\"a\",\"labels\":[\"\"]}", "data/file:1: labels: expected a label"},
          {"{\"text\":\"a\",\"label\":\"x\",\"text\":\"b\"}",
           "data/file:1: text: expected each field once"},
          {good + "{\"text\":\"a\",\"labels\":[\"x\"]}",
           "data/file:2: expected 'label' as in line 1, got 'labels'"},
          {good + "{\"text\":\"a\",\"pair\":\"b\",\"label\":\"x\"}",
           "data/file:2: pair: expected a pair in every row or in none, got one here unlike in "
           "line 1"},
          {good + "{\"text\":\"\xC3\x28\",\"label\":\"x\"}",
           "data/file:2: expected UTF-8, got byte 0xc3 at byte 10 of the row"},
          {good + "{\"text\":\"\\ud800\",\"label\":\"x\"}", "data/file:2: expected a JSON object"},
          {good + std::string("{\"text\":\"a\0\",\"label\":\"x\"}", 25),
           "data/file:2: expected text, got a NUL at byte 11"},
          {good + "{\"text\":\"a\\u0000\",\"label\":\"x\"}",
           "data/file:2: text: expected text, got a NUL"},
          {good + "{\"text\":\"" + std::string(kMaxRecordBytes, 'a') + "\",\"label\":\"x\"}",
           "data/file:2: expected at most 16777216 bytes in a row, got 16777"},
      });
}

TEST(JsonLines, DeepNestingIsNoProblem) {
  const std::string deep(200'000, '[');
  ExpectRefused(ParseJsonLines, {{"{\"x\":" + deep, "data/file:1: expected a JSON object"}});
}

TEST(Csv, ReadsColumnsInAnyOrder) {
  const auto file = ParseCsv("label,id,text\nyes,1,a b\n3,2,\"c\"\n", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->multi_label);
  EXPECT_THAT(file->rows, ElementsAre(DataFileRow{"a b", std::nullopt, {"yes"}, 2},
                                      DataFileRow{"c", std::nullopt, {"3"}, 3}));
}

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLines) {
  const auto file = ParseCsv(
      "\xEF\xBB\xBFtext,label\r\n\"a, \"\"b\"\"\r\nc\",x\r\n\r\n\"\",\"y\"\r\nlast,z", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->rows, ElementsAre(DataFileRow{"a, \"b\"\r\nc", std::nullopt, {"x"}, 2},
                                      DataFileRow{"", std::nullopt, {"y"}, 5},
                                      DataFileRow{"last", std::nullopt, {"z"}, 6}));
}

TEST(Csv, SeveralLabelsAreSeparatedByBars) {
  const auto file = ParseCsv("text,pair,labels\na,b,x|y\nc,,\n", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->multi_label);
  EXPECT_TRUE(file->pairs);
  EXPECT_THAT(file->rows[0].labels, ElementsAre("x", "y"));
  EXPECT_THAT(file->rows[1].labels, IsEmpty());
  EXPECT_EQ(file->rows[1].pair, "");
}

TEST(Csv, ErrorsNameFileLineAndField) {
  const std::string header = "text,label\n";
  ExpectRefused(
      ParseCsv,
      {
          {"", "data/file:1: expected rows, got an empty file"},
          {header, "data/file:1: expected rows, got an empty file"},
          {"a,b\n1,2\n", "data/file:1: expected a header row with the columns 'text'"},
          {"text,label,labels\n", "data/file:1: expected a header row"},
          {"text,label,text\n", "data/file:1: text: expected each column once"},
          {header + "a\n", "data/file:2: expected 2 fields as in the header row, got 1"},
          {header + "a,b,c\n", "data/file:2: expected 2 fields as in the header row, got 3"},
          {header + "a,x\nb,\n", "data/file:3: label: expected a label, got an empty string"},
          {header + "a\"b,x\n", "data/file:2: field 1: expected quotes around the whole field"},
          {header + "\"a\"b,x\n", "data/file:2: field 1: expected a comma or the end of the line"},
          {header + "a,x\n\"b\n\n,x\n", "data/file:3: field 1: expected a closing quote"},
          {header + "a\rb,x\n", "data/file:2: field 1: expected a comma or the end"},
          {header + "\"a\n\n\"b,x\n", "data/file:4: field 1: expected a comma or the end"},
          {header + "a,\xFF\n", "data/file:2: expected UTF-8, got byte 0xff at byte 1"},
          {header + std::string("a\0,x\n", 5), "data/file:2: expected text, got a NUL at byte 2"},
          {header + std::string(kMaxRecordBytes + 1, 'a') + ",x\n",
           "data/file:2: expected at most 16777216 bytes"},
          {"text,labels\na,x|x\n", "data/file:2: labels: expected each label once"},
          {"text,labels\na,x||y\n", "data/file:2: labels: expected a label, got an empty string"},
      });
}

const RowTargets kTwoNumbers{.kind = RowTargets::Kind::kNumbers, .numbers = {"valence", "b"}};

TEST(Numbers, AreFieldsOfTheirOwn) {
  const auto lines = ParseJsonLines(
      "{\"text\":\"a\",\"valence\":-1.5,\"b\":3}\n{\"b\":1e2,\"valence\":0,\"text\":\"c\","
      "\"label\":[]}",
      "f", kTwoNumbers);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_FALSE(lines->multi_label);
  EXPECT_THAT(lines->rows[0].numbers, ElementsAre(-1.5, 3.0));
  EXPECT_THAT(lines->rows[1].numbers, ElementsAre(0.0, 100.0));
  EXPECT_THAT(lines->rows[1].labels, IsEmpty());
  const auto csv = ParseCsv("b,text,valence\n3,a,-1.5\n+1e2,c,0\n", "f", kTwoNumbers);
  ASSERT_TRUE(csv.ok()) << csv.status();
  EXPECT_EQ(csv->rows[0].numbers, lines->rows[0].numbers);
  EXPECT_EQ(csv->rows[1].numbers, lines->rows[1].numbers);
}

TEST(Numbers, WhatIsNoneIsNamedWithItsLine) {
  ExpectRefused(ParseJsonLines,
                {
                    {"{\"text\":\"a\",\"valence\":1,\"b\":2}\n{\"text\":\"a\",\"b\":2}",
                     "data/file:2: expected a field 'valence', got none"},
                    {"{\"text\":\"a\",\"valence\":1,\"b\":null}", "expected a field 'b', got none"},
                    {"{\"text\":\"a\",\"valence\":\"1\",\"b\":2}",
                     "data/file:1: valence: expected a number, got \"1\""},
                    {"{\"text\":\"a\",\"valence\":true,\"b\":2}", "expected a number, got true"},
                    {"{\"text\":\"a\",\"valence\":1e999,\"b\":2}", "out of range"},
                    {"{\"valence\":1,\"b\":2}", "expected a field 'text', got none"},
                },
                kTwoNumbers);
  ExpectRefused(
      ParseCsv,
      {
          {"text,valence\na,1\n",
           "data/file:1: expected a header row with the columns "
           "'text', 'valence' and 'b'"},
          {"text,valence,b\na,1,2\nb,,2\n", "data/file:3: valence: expected a number, got ''"},
          {"text,valence,b\na,nan,2\n", "valence: expected a number, got 'nan'"},
          {"text,valence,b\na,1,2,3\n", "expected 3 fields"},
      },
      kTwoNumbers);
}

TEST(NothingButText, OtherFieldsAreIgnored) {
  const RowTargets nothing{.kind = RowTargets::Kind::kNothing, .numbers = {}};
  const auto lines =
      ParseJsonLines("{\"text\":\"a\"}\n{\"text\":\"b\",\"label\":2.5}", "f", nothing);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_EQ(lines->rows.size(), 2u);
  const auto csv = ParseCsv("text\na\nb\n", "f", nothing);
  ASSERT_TRUE(csv.ok()) << csv.status();
  EXPECT_EQ(csv->rows[1].text, "b");
  ExpectRefused(ParseJsonLines, {{"", "data/file:1: expected rows, got an empty file"}}, nothing);
}

TEST(ReadDataFile, ExtensionDecides) {
  const TemporaryFolder folder;
  const std::string json = "{\"text\":\"a\",\"label\":\"x\"}\n";
  const std::string csv = "text,label\na,x\n";
  for (const auto& [name, content] : {std::pair{"a.jsonl", json},
                                      {"b.JSON", json},
                                      {"c.ndjson", json},
                                      {"d.csv", csv},
                                      {"e.v2.CSV", csv}}) {
    SCOPED_TRACE(name);
    const auto file = ReadDataFile(folder.Write(name, content));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->rows.front().text, "a");
    EXPECT_EQ(file->path, folder.path() + "/" + name);
  }
}

TEST(ReadDataFile, SaysWhatItCannotRead) {
  const TemporaryFolder folder;
  const auto missing = ReadDataFile(folder.path() + "/missing.jsonl");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/missing.jsonl"));
  for (const char* name : {"data.tsv", "data", "folder.csv/data"}) {
    SCOPED_TRACE(name);
    const auto unknown = ReadDataFile(folder.path() + "/" + name);
    EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(unknown.status().message()), HasSubstr(".jsonl, .ndjson"));
  }
}

}  // namespace
}  // namespace hpo
