#include "worker/text/data/readers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"
#include "worker/text/data/json_lines.h"

namespace hpo::text {
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
          {"", "data/file:1: expected rows, got none"},
          {"\n \n", "data/file:1: expected rows"},
          {good + "{\"text\":",
           "data/file:2:9: expected a JSON object, got broken JSON: the text ends inside the "
           "object; write the whole object in one line (after: {\"text\":)"},
          {good + "[1]", "data/file:2: expected a JSON object, got an array; write each row as"},
          {good + "{'text':'a'}",
           "data/file:2:2: expected a JSON object, got broken JSON: a single"},
          {good + "{\"text\":\"a\",\"label\":NaN}",
           "data/file:2:21: expected a JSON object, got broken JSON: NaN, which JSON does not "
           "have"},
          {good + "{\"text\":\"a\",\"label\":\"x\",}",
           "data/file:2:25: expected a JSON object, got broken JSON: a comma before the end"},
          {good + "{\"text\":\"a\tb\"}",
           "data/file:2:11: expected a JSON object, got broken JSON: "
           "a control character"},
          {good + "{\"text\":\"é\"} {\"text\":\"b\"}",
           "data/file:2:14: expected a JSON object, got broken JSON: a second object"},
          {good + "{\"a\":1e999}",
           "data/file:2: expected a JSON object, got a number out of range"},
          {good + "{\"label\":\"x\"}",
           "data/file:2: expected a field 'text' (or 'sentence' or 'review'), got 'label'; name "
           "the "
           "field"},
          {good + "{\"text\":\"a\"}",
           "data/file:2: expected a field 'label' or 'labels', got 'text'; give the row a label"},
          {good + "{\"text\":\"a\",\"label\":\"x\",\"labels\":[]}",
           "data/file:2: expected one of 'label' and 'labels', got both"},
          {good + "{\"text\":7,\"label\":\"x\"}",
           "data/file:2: text: expected a string, got the integer 7; write the text in quotes"},
          {good + "{\"text\":\"a\",\"pair\":[],\"label\":\"x\"}",
           "data/file:2: pair: expected a string, got an array"},
          {good + "{\"text\":\"a\",\"label\":1.5}",
           "data/file:2: label: expected a string, an integer, true or false, got the number 1.5; "
           "write "
           "a class as an integer or in quotes"},
          {good + "{\"text\":\"a\",\"label\":\"\"}",
           "data/file:2: label: expected a label, got an empty string"},
          {"{\"text\":\"a\",\"labels\":\"x\"}",
           "data/file:1: labels: expected an array of labels, got the string \"x\""},
          {"{\"text\":\"a\",\"labels\":[\"x\",null]}",
           "data/file:1: labels: expected a string, an integer, true or false, got null"},
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
          {good + "{\"text\":\"" + std::string(kMaxRecordBytes, 'a') + "\",\"label\":\"x\"}",
           "data/file:2: expected at most 16777216 bytes in a row, got 16777"},
      });
}

TEST(JsonRows, MayBeAnArrayOrGoOverSeveralLines) {
  const std::string rows[] = {"{\n  \"text\": \"a, {b\\\"\",\n  \"label\": \"x\"\n}",
                              "{\"text\":\"c\",\"label\":\"y\"}"};
  for (const std::string& content :
       {absl::StrCat("[", rows[0], ",", rows[1], "]"),
        absl::StrCat("\n[\n", rows[0], ",\n", rows[1], "\n]\n"),
        absl::StrCat(rows[0], "\n", rows[1]), absl::StrCat(rows[0], rows[1], "\n")}) {
    SCOPED_TRACE(content);
    const auto file = ParseJsonLines(content, "f");
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->rows.size(), 2u);
    EXPECT_EQ(file->rows[0].text, "a, {b\"");
    EXPECT_EQ(file->rows[1].text, "c");
    const auto begin = content.find("{\"text\":\"c\"");
    EXPECT_EQ(file->rows[1].line, 1 + std::count(content.begin(), content.begin() + begin, '\n'));
  }
}

TEST(JsonRows, OfABrokenArrayTheRowIsNamed) {
  const std::string row = "{\"text\":\"a\",\"label\":\"x\"}";
  ExpectRefused(
      ParseJsonLines,
      {
          {"[]", "data/file:1: expected rows, got none"},
          {"[" + row,
           "data/file:1:26: expected ',' or ']' after a row of the array, got "
           "the end of the file"},
          {"[\n" + row + "\n" + row + "]", "data/file:3:1: expected ',' or ']'"},
          {"[" + row + ",\n]", "data/file:2:1: expected a row of the array after ','"},
          {"[" + row + "] 7", "data/file:1:28: expected the end of the file"},
          {"[" + row + ",\n{\"text\": \"a]",
           "data/file:2:1: expected a JSON object, got one "
           "that has no end"},
          {"[" + row + ",\n {\"text\": 'a'}]",
           "data/file:2:11: expected a JSON object, got "
           "broken JSON: a single quote"},
          {"[" + row + ", 3]", "expected a JSON object, got the integer 3"},
          {"{\n\"data\": [\n" + row + "]}",
           "data/file:1: expected a field 'text' (or 'sentence' or 'review'), got 'data'"},
          {"{\"text\":\n\"a\"", "data/file:1:1: expected a JSON object, got one that has no end"},
      });
}

TEST(Fields, AreTakenInAnyCase) {
  for (const char* const content : {"{\"Text\":\"a\",\"LABEL\":\"x\",\"Pair\":\"b\"}",
                                    "{\"text\":\"a\",\"TEXT\":7,\"Label\":\"x\",\"PAIR\":\"b\"}"}) {
    const auto lines = ParseJsonLines(content, "f");
    ASSERT_TRUE(lines.ok()) << lines.status();
    EXPECT_THAT(lines->rows, ElementsAre(DataFileRow{"a", "b", {"x"}, 1}));
  }
  for (const char* const content : {"Text,LABEL,Pair\na,x,b\n", " text , label, pair\na,x,b\n",
                                    "TEXT,text,Label,PAIR\n7,a,x,b\n"}) {
    const auto csv = ParseCsv(content, "f");
    ASSERT_TRUE(csv.ok()) << csv.status();
    EXPECT_THAT(csv->rows, ElementsAre(DataFileRow{"a", "b", {"x"}, 2}));
  }
}

TEST(Text, MayBeASentenceOrAReview) {
  for (const char* const name : {"text", "sentence", "Review", "SENTENCE"}) {
    SCOPED_TRACE(name);
    const auto lines = ParseJsonLines(absl::StrCat("{\"", name, "\":\"a\",\"label\":\"x\"}"), "f");
    ASSERT_TRUE(lines.ok()) << lines.status();
    EXPECT_EQ(lines->rows[0].text, "a");
    for (const char separator : {',', ';', '\t'}) {
      const std::string end(1, separator);
      const auto csv = ParseCsv(absl::StrCat(name, end, "label\na", end, "x\n"), "f");
      ASSERT_TRUE(csv.ok()) << csv.status();
      EXPECT_EQ(csv->rows[0].text, "a");
    }
  }
  const auto both = ParseCsv("review,sentence,text,label\na,b,c,x\n", "f");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->rows[0].text, "c");
}

TEST(Text, OfAnotherTypeIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"text\":null,\"label\":\"x\"}",
       "data/file:1: text: expected a string, got null; give the row a text, or remove it"},
      {"{\"Sentence\":3.5,\"label\":\"x\"}",
       "data/file:1: sentence: expected a string, got the number 3.5"},
      {"{\"review\":true,\"label\":\"x\"}",
       "data/file:1: review: expected a string, got the boolean true"},
      {"{\"text\":[\"a\",\"b\"],\"label\":\"x\"}",
       "data/file:1: text: expected a string, got an array; write one object for each row"},
      {"{\"text\":{\"0\":\"a\"},\"label\":{\"0\":\"x\"}}",
       "data/file:1: text: expected a string, got an object; write one object for each row"},
  };
  for (const auto& [row, expected] : cases) ExpectRefused(ParseJsonLines, {{row, expected}});
}

TEST(JsonLines, WhatIsNoJsonIsNamed) {
  const std::string good = "{\"text\":\"a\",\"label\":\"x\"}\n";
  ExpectRefused(
      ParseJsonLines,
      {
          {"text,label\na,x\n",
           "data/file:1:1: expected a JSON object, got broken JSON: 'text,label', which looks like "
           "the header row of CSV; rename the file so that it ends in .csv"},
          {"\"text\";\"label\"\n\"a\";\"x\"\n", "which looks like the header row of CSV"},
          {"the film was good\n",
           "data/file:1:1: expected a JSON object, got broken JSON: 'the film was good'; write "
           "each "
           "row as {\"text\": ..., \"label\": ...}"},
          {"// rows\n" + good, "data/file:1:1: expected a JSON object, got broken JSON: a comment"},
          {good + "# rows\n", "data/file:2:1: expected a JSON object, got broken JSON: a comment"},
          {good + "{\"text\":\"a\", // b\n",
           "data/file:2:14: expected a JSON object, got broken "
           "JSON: a comment, which JSON does not have; remove it"},
          {"{\"text\":\"a\",\"label\":\"x\"},\n",
           "data/file:1:25: expected a JSON object, got broken "
           "JSON: a comma after the object; remove it"},
          {good + "{\"text\":\"a\",\"label\":-Infinity}",
           "data/file:2:21: expected a JSON object, got "
           "broken JSON: -Infinity, which JSON"},
          {good + "{text:\"a\"}",
           "data/file:2:2: expected a JSON object, got broken JSON: a name "
           "without quotes"},
          {good + "{\u201ctext\u201d:\"a\"}",
           "data/file:2:2: expected a JSON object, got broken JSON: "
           "a typographic quote"},
          {good + "{\"text\":\"C:\\Users\"}",
           "data/file:2:13: expected a JSON object, got broken "
           "JSON: the escape \\U, which JSON does not have"},
          {good + "{\"text\":\"a \"b\" c\"}",
           "data/file:2:13: expected a JSON object, got broken "
           "JSON: text after a closing quote"},
          {good + "{\"text\":\"a\" \"label\":\"x\"}",
           "data/file:2:13: expected a JSON object, got broken "
           "JSON: a quote where ',' or ':' is missing"},
      });
}

TEST(JsonLines, MayHaveMarksBetweenThem) {
  const std::string rows[] = {"{\"text\":\"a\",\"label\":\"x\"}\n",
                              "{\"text\":\"b\",\"label\":\"y\"}\n"};
  for (const std::string& between :
       {std::string("\uFEFF"), std::string("\x1E"), std::string("\n \uFEFF\n")}) {
    const auto file = ParseJsonLines(between + rows[0] + between + rows[1], "f");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->rows.size(), 2u);
  }
}

TEST(JsonLines, MayEndInCarriageReturns) {
  const auto file =
      ParseJsonLines("{\"text\":\"a\",\"label\":\"x\"}\r{\"text\":\"b\",\"label\":\"y\"}\r", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->rows.size(), 2u);
  EXPECT_EQ(file->rows[1].line, 2);
}

TEST(Csv, WhatIsNoneIsNamed) {
  ExpectRefused(
      ParseCsv,
      {
          {"{\"text\": \"a\", \"label\": \"x\"}\n",
           "data/file:1:1: expected CSV with a header row, got JSON; rename the file so that it "
           "ends "
           "in .jsonl"},
          {"\n[\n {\"text\": \"a\"}]", "data/file:2:1: expected CSV with a header row, got JSON"},
          {"# made by a script\ntext,label\na,x\n",
           "it is a comment, which CSV does not have: remove it"},
          {"text,label\n// a\nb,x\n",
           "data/file:2: expected 2 fields as in the header row ('text', 'label'), got 1; it is a "
           "comment, which CSV does not have: remove it"},
          {"text  label\na  x\n", "got 'text  label' (not separated by ',', ';', tab or '|')"},
          {"text,label\n", "expected rows, got none; the file has a header row alone"},
          {"", "expected rows, got none; the file has no bytes"},
          {"\n\n", "expected rows, got none; the file has no text but empty lines"},
      });
}

TEST(Csv, HeadersMayHaveMarksAndSpaces) {
  const auto file = ParseCsv("\uFEFF\uFEFF\u200Btext\u00A0,\"label \u3000\"\na,x\n\x1A", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->rows, ElementsAre(DataFileRow{"a", std::nullopt, {"x"}, 2}));
}

TEST(Csv, WhatIsNoRowIsNamed) {
  ExpectRefused(ParseCsv,
                {
                    {"text,label\na,x\ntext,label\nb,y\n",
                     "data/file:3: expected a row, got the header row of line 1 again"},
                    {"text,label\na,x\n\uFEFFtext,label\nb,y\n",
                     "data/file:3: expected a row, got the header row of line 1 again"},
                    {"| text | label |\n|---|:--|\n| a | x |\n",
                     "data/file:2: expected a row, got the line below"},
                    {"text,labels\na,\"['x', 'y']\"\n",
                     "data/file:2: labels: expected labels with '|' between them, such as a|b, got "
                     "'['x', 'y']'"},
                    {"text,label\na, \n", "data/file:2: label: expected a label, got spaces alone"},
                });
}

TEST(Messages, AreShort) {
  std::string header = "a";
  std::string object = "{\"a\":1";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&header, ",column", i);
    absl::StrAppend(&object, ",\"field", i, "\":\"", std::string(500, 'a'), "\"");
  }
  const std::string wide(5000, 'w');
  for (const auto& file :
       {ParseCsv(header + "\n1\n", "f"), ParseCsv(wide + "," + wide + "\n1\n", "f"),
        ParseCsv("text,label," + header + "\n1\n", "f"), ParseJsonLines(object + "}", "f"),
        ParseJsonLines("{\"" + wide + "\":1}", "f"), ParseJsonLines(wide, "f"),
        ParseJsonLines("{\"text\":\"a\",\"label\":1,\"" + wide + "\":1,\"" + wide + "\":1}", "f"),
        ParseCsv("text,label\n" + wide + "\n", "f"),
        ParseJsonLines("{\"text\":\"a\",\"labels\":[\"" + wide + "\",\"" + wide + "\"]}", "f"),
        ParseCsv("text;" + wide + "\n1;x\n", "f",
                 {.kind = RowTargets::Kind::kNumbers, .numbers = {wide}})}) {
    ASSERT_FALSE(file.ok());
    EXPECT_LT(file.status().message().size(), 500u) << file.status();
  }
}

TEST(Labels, MayBeTrueAndFalse) {
  const auto lines =
      ParseJsonLines("{\"text\":\"a\",\"label\":true}\n{\"text\":\"b\",\"label\":false}", "f");
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(lines->rows[0].labels, ElementsAre("true"));
  EXPECT_THAT(lines->rows[1].labels, ElementsAre("false"));
}

TEST(Separators, AreThoseOfTheHeader) {
  for (const char* const content : {"text;label\na, b;x\n", "text\tlabel\na, b\tx\n",
                                    "text|label\na, b|x\n", "sep=;\r\ntext;label\r\na, b;x\r\n",
                                    "text,label\r\"a, b\",x\r", "text,label\n\"a, b\",x\n  \n"}) {
    SCOPED_TRACE(content);
    const auto file = ParseCsv(content, "f");
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->rows.size(), 1u);
    EXPECT_EQ(file->rows[0].text, "a, b");
    EXPECT_THAT(file->rows[0].labels, ElementsAre("x"));
  }
}

TEST(BadCharacters, CostAWarning) {
  const std::string good = "{\"text\":\"a\",\"label\":\"x\"}\n";
  const std::pair<std::string, const char*> cases[] = {
      {good + "{\"text\":\"\xC3(\",\"label\":\"x\"}",
       "f:2:10: byte 0xc3, which is no text in UTF-8, was replaced by U+FFFD"},
      {good + "{\"text\":\"\\ud83d(\",\"label\":\"x\"}",
       "f:2:10: the escape \\ud83d, half of a character, was replaced by U+FFFD"},
      {good + "{\"text\":\"\\udc00(\",\"label\":\"\\ud83d\\n\"}",
       "f:2:10: the escape \\udc00, half of a "
       "character, was replaced by U+FFFD, as were 1 more of this file"},
      {good + std::string("{\"text\":\"\0(\",\"label\":\"x\"}", 25), "f:2:10: a NUL, which is no"},
      {good + "{\"text\":\"\\u0000(\",\"label\":\"x\"}", "f:2:10: the escape \\u0000, a NUL, was"},
  };
  for (const auto& [content, warning] : cases) {
    SCOPED_TRACE(content);
    const auto file = ParseJsonLines(content, "f");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->rows[1].text, "\uFFFD(");
    ASSERT_EQ(file->warnings.size(), 1u);
    EXPECT_THAT(file->warnings[0], HasSubstr(warning));
  }
  const auto whole = ParseJsonLines("{\"text\":\"\\ud83d\\ude00 \\\\ud83d\",\"label\":\"x\"}", "f");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->rows[0].text, "😀 \\ud83d");
  EXPECT_THAT(whole->warnings, IsEmpty());
  const auto csv = ParseCsv("text,label\na\xFF,x\n", "f");
  ASSERT_TRUE(csv.ok()) << csv.status();
  EXPECT_EQ(csv->rows[0].text, "a\uFFFD");
  EXPECT_THAT(csv->warnings, ElementsAre(HasSubstr("f:2:2: byte 0xff")));
}

TEST(JsonLines, DeepNestingIsNoProblem) {
  const std::string deep(200'000, '[');
  ExpectRefused(ParseJsonLines, {{"{\"x\":" + deep, "data/file:1:1: expected a JSON object"}});
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
  const auto file = ParseCsv("text,pair,labels\na,b, x | y\nc,,\n", "f");
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
          {"", "data/file:1: expected rows, got none"},
          {header, "data/file:1: expected rows, got none"},
          {"a,b\n1,2\n",
           "data/file:1: expected a header row with the columns 'text' (or 'sentence' or 'review') "
           "and "
           "one of 'label' and 'labels', got 'a', 'b' (separated by ','); write these names"},
          {"a;b;c\n1;2;3\n", "got 'a', 'b', 'c' (separated by ';')"},
          {"a\tb\n1\t2\n", "got 'a', 'b' (separated by tab)"},
          {"Text,TEXT,label\n",
           "data/file:1: text: expected each column once in the header row, got "
           "'Text', 'TEXT', 'label'"},
          {"text,label,labels\n", "data/file:1: expected a header row"},
          {"text,label,text\n", "data/file:1: text: expected each column once"},
          {header + "a\n",
           "data/file:2: expected 2 fields as in the header row ('text', 'label'), got 1"},
          {header + "a,b,c\n",
           "data/file:2: expected 2 fields as in the header row ('text', 'label'), got 3; a text "
           "that "
           "contains ',' must be in quotes"},
          {header + "a,x\nb,\n", "data/file:3: label: expected a label, got an empty string"},
          {header + "a\"b,x\n", "data/file:2:2: field 1: expected quotes around the whole field"},
          {header + "\"a\"b,x\n", "data/file:2:4: field 1: expected ',' or the end of the line"},
          {header + "a,x\n\"b\n\n,x\n", "data/file:3:1: field 1: expected a closing quote"},
          {header + "a\rb,x\n", "data/file:2: expected 2 fields as in the header row"},
          {header + "\"a\n\n\"b,x\n",
           "data/file:4:2: field 1: expected ',' or the end of the line after the closing quote of "
           "the field that begins in line 2, got 'b'"},
          {header + std::string(kMaxRecordBytes + 1, 'a') + ",x\n",
           "data/file:2: expected at most 16777216 bytes"},
          {header + "a," + std::string(5000, 'x') + "\n",
           "data/file:2: label: expected at most 4096 bytes"},
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
  ExpectRefused(
      ParseJsonLines,
      {
          {"{\"text\":\"a\",\"valence\":1,\"b\":2}\n{\"text\":\"a\",\"b\":2}",
           "data/file:2: expected a field 'valence' of a number, got 'b', 'text'"},
          {"{\"text\":\"a\",\"valence\":1,\"b\":null}",
           "expected a field 'b' of a number, got 'b' (null), 'text'"},
          {"{\"text\":\"a\",\"valence\":\"1\",\"b\":2}",
           "data/file:1: valence: expected a number, got the string \"1\"; write it without "
           "quotes"},
          {"{\"text\":\"a\",\"valence\":true,\"b\":2}", "expected a number, got the boolean true"},
          {"{\"text\":\"a\",\"valence\":1e999,\"b\":2}", "out of range"},
          {"{\"valence\":1,\"b\":2}",
           "expected a field 'text' (or 'sentence' or 'review'), got 'b', 'valence'"},
      },
      kTwoNumbers);
  ExpectRefused(
      ParseCsv,
      {
          {"text,valence\na,1\n",
           "data/file:1: expected a header row with the columns "
           "'text' (or 'sentence' or 'review'), 'valence' and 'b'"},
          {"text,valence,b\na,1,2\nb,,2\n", "data/file:3: valence: expected a number, got ''"},
          {"text,valence,b\na,nan,2\n", "valence: expected a number, got 'nan'"},
          {"text,valence,b\na,1,2,3\n", "expected 3 fields"},
          {"text;valence;b\na;0,5;2\n",
           "valence: expected a number, got '0,5'; write a decimal point"},
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
  EXPECT_EQ(ParseCsv("text\ntext\n---\n", "f", nothing)->rows.size(), 2u);
  ExpectRefused(ParseJsonLines, {{"", "data/file:1: expected rows, got none"}}, nothing);
}

TEST(ReadDataFile, ExtensionDecides) {
  const TemporaryFolder folder;
  const std::string json = "{\"text\":\"a\",\"label\":\"x\"}\n";
  const std::string csv = "text,label\na,x\n";
  for (const auto& [name, content] : {std::pair{"a.jsonl", json},
                                      {"b.JSON", json},
                                      {"c.ndjson", json},
                                      {"d.csv", csv},
                                      {"e.v2.CSV", csv},
                                      {"f.tsv", "text\tlabel\na\tx\n"}}) {
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
  for (const auto& [name, what] : {std::pair{"rows.jsonl.gz", "\x1F\x8B\x08"},
                                   {"rows.parquet", "PAR1"},
                                   {"rows.xlsx", "PK\x03\x04"}}) {
    const auto packed = ReadDataFile(folder.Write(name, what));
    EXPECT_THAT(std::string(packed.status().message()), HasSubstr("expected rows of text, got "));
  }
  for (const char* name : {"data.xlsx", "data", "folder.csv/data"}) {
    SCOPED_TRACE(name);
    const auto unknown = ReadDataFile(folder.path() + "/" + name);
    EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(unknown.status().message()), HasSubstr(".jsonl, .ndjson"));
  }
}

}  // namespace
}  // namespace hpo::text
