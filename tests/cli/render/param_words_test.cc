#include "cli/render/param_words.h"

#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

SearchSpace Space() {
  return SearchSpace{
      .parameters = {
          {.name = "model.name",
           .domain = CategoricalDomain{.choices = {std::string("bert"), std::string("roberta")}}},
          {.name = "train.batch_size",
           .domain = CategoricalDomain{.choices = {int64_t{8}, int64_t{16}}}},
          {.name = "train.lr", .domain = FloatDomain{.low = 1e-6, .high = 1e-4, .log = true}},
          {.name = "tok.max_length", .domain = IntDomain{.low = 128, .high = 512, .step = 32}}}};
}

TEST(ParamWords, ValuesTakeTheirParametersType) {
  const absl::StatusOr<ParamMap> params = ParseParamWords(
      {"model.name=bert", "train.batch_size=16", "train.lr=3e-5", "tok.max_length=256"}, Space());
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_EQ(*params, (ParamMap{{"model.name", std::string("bert")},
                               {"train.batch_size", int64_t{16}},
                               {"train.lr", 3e-5},
                               {"tok.max_length", int64_t{256}}}));
  EXPECT_EQ(*ParseParamWords({"train.lr=1"}, Space()), (ParamMap{{"train.lr", 1.0}}));
  EXPECT_TRUE(ParseParamWords({}, Space())->empty());
}

TEST(ParamWords, AChoiceMayBeWrittenInAnotherWay) {
  const SearchSpace space{
      .parameters = {
          {.name = "dropout", .domain = CategoricalDomain{.choices = {0.0, 0.1}}},
          {.name = "batch", .domain = CategoricalDomain{.choices = {int64_t{8}, int64_t{16}}}},
          {.name = "frozen", .domain = CategoricalDomain{.choices = {false, true}}},
          {.name = "text", .domain = CategoricalDomain{.choices = {1.0, std::string("1")}}}}};
  EXPECT_EQ(*ParseParamWords({"dropout=0.0", "batch=8.0", "frozen=True", "text=1.0"}, space),
            (ParamMap{{"dropout", 0.0}, {"batch", int64_t{8}}, {"frozen", true}, {"text", 1.0}}));
  EXPECT_EQ(*ParseParamWords({"dropout=1e-1"}, space), (ParamMap{{"dropout", 0.1}}));
  EXPECT_FALSE(ParseParamWords({"batch=8.5"}, space).ok());
  EXPECT_FALSE(ParseParamWords({"batch=true"}, space).ok());
}

TEST(ParamWords, NullIsAValueAndInQuotesAText) {
  const SearchSpace space{
      .parameters = {
          {.name = "depth", .domain = CategoricalDomain{.choices = {Null(), int64_t{5}}}},
          {.name = "both", .domain = CategoricalDomain{.choices = {std::string("null"), Null()}}},
          {.name = "words",
           .domain = CategoricalDomain{.choices = {std::string("null"), std::string("1")}}},
          {.name = "one",
           .domain = CategoricalDomain{.choices = {true, int64_t{1}, std::string("1")}}}}};
  const auto value = [&space](const std::string& name, const std::string& text) {
    const absl::StatusOr<ParamMap> params = ParseParamWords({name + "=" + text}, space);
    return params.ok() ? params->at(name) : ParamValue(std::string(params.status().message()));
  };
  for (const char* text : {"null", "None", "~", "NULL"})
    EXPECT_EQ(value("depth", text), ParamValue(Null()));
  EXPECT_EQ(value("both", "null"), ParamValue(Null()));
  EXPECT_EQ(value("both", "\"null\""), ParamValue(std::string("null")));
  EXPECT_EQ(value("words", "null"), ParamValue(std::string("null")));
  EXPECT_EQ(value("words", "1"), ParamValue(std::string("1")));
  EXPECT_EQ(value("one", "1"), ParamValue(int64_t{1}));
  EXPECT_EQ(value("one", "\"1\""), ParamValue(std::string("1")));
  EXPECT_EQ(value("one", "true"), ParamValue(true));
  EXPECT_EQ(value("depth", "none"),
            ParamValue(std::string("parameter depth: expected {null, 5}, got 'none'")));
}

TEST(ParamWords, MistakesAreNamed) {
  const struct {
    std::vector<std::string> words;
    const char* message;
  } cases[] = {
      {{"train.lr"}, "expected name=value, got 'train.lr'"},
      {{"train.l=1"}, "the study has no parameter 'train.l'; did you mean 'train.lr'?"},
      {{"model.name=robert"},
       "parameter model.name: expected {bert, roberta}, got 'robert'; did you mean 'roberta'?"},
      {{"train.batch_size=9"}, "parameter train.batch_size: expected {8, 16}, got '9'"},
      {{"tok.max_length=1.5"}, "parameter tok.max_length: expected [128, 512] step 32, got '1.5'"},
      {{"train.lr="}, "parameter train.lr: expected [1e-06, 0.0001] log, got ''"},
      {{"train.lr=1", "train.lr=2"}, "parameter train.lr is given twice"},
  };
  for (const auto& test : cases) {
    const absl::Status status = ParseParamWords(test.words, Space()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), test.message);
  }
}

}  // namespace
}  // namespace hpo::cli
