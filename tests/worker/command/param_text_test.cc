#include "worker/command/param_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::command {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(ParamText, ABooleanIsAFlagAndNullIsNothing) {
  EXPECT_EQ(OptionText("amp", true), "--amp");
  EXPECT_EQ(OptionText("amp", false), "");
  EXPECT_EQ(OptionText("depth", Null()), "");
  EXPECT_EQ(OptionText("amp", std::string("false")), "--amp=false");
  EXPECT_EQ(OptionText("train.lr", 3e-5), "--train.lr=3e-05");
}

TEST(ParamText, HydrasOverridesQuoteWhatItsGrammarWouldRead) {
  const std::pair<ParamValue, const char*> cases[] = {
      {3e-5, "x=3e-05"},
      {int64_t{3}, "x=3"},
      {true, "x=true"},
      {Null(), "x=null"},
      {std::string("bert-base/uncased_1.5"), "x=bert-base/uncased_1.5"},
      {std::string("True"), "x='True'"},
      {std::string("1_000"), "x='1_000'"},
      {std::string(), "x=''"},
      {std::string("a=b, c"), "x='a=b, c'"},
      {std::string("it's \\ \\'"), "x='it\\'s \\ \\\\\\''"},
  };
  for (const auto& [value, text] : cases) EXPECT_EQ(OverrideText("x", value), text);
}

TEST(ParamText, TheEnvironmentHasEachParameterAndAllOfThem) {
  const ParamMap params = {{"amp", true}, {"depth", Null()}, {"n", int64_t{3}}, {"train.lr", 3e-5}};
  EXPECT_THAT(ParamVariables(params),
              ElementsAre(Pair("HPO_PARAMS", R"({"amp":true,"depth":null,"n":3,"train.lr":3e-05})"),
                          Pair("HPO_PARAM_AMP", "true"), Pair("HPO_PARAM_N", "3"),
                          Pair("HPO_PARAM_TRAIN_LR", "3e-05")));
  // Two that would have one variable: which of them it is, nobody could say.
  EXPECT_FALSE(ParamVariables({{"train.lr", 0.5}, {"train_lr", 0.25}, {"train-lr", 1.0}})
                   .contains("HPO_PARAM_TRAIN_LR"));
  EXPECT_TRUE(ParamVariables({{"x", std::string(kMostVariableBytes, 'x')}}).empty());
}

TEST(ParamText, AConfigurationReadsAlikeAsJsonAndAsYaml) {
  const ParamMap params = {
      {"amp", true},      {"depth", Null()},       {"kind", std::string("\"a\"")},
      {"train.lr", 3e-5}, {"train.opt.eps", 1e-8}, {"whole", 2.0}};
  EXPECT_EQ(ConfigText(params), R"({
  "amp": true,
  "depth": null,
  "kind": "\"a\"",
  "whole": 2.0,
  "train": {
    "lr": 3.0e-05,
    "opt": {
      "eps": 1.0e-08
    }
  }
}
)");
  EXPECT_EQ(ConfigText({}), "{}\n");
}

TEST(ParamText, APointStaysWhereItsBeginningIsAParameterToo) {
  EXPECT_EQ(ConfigText({{"a", int64_t{1}}, {"a.b", int64_t{2}}, {".c", int64_t{3}}}),
            "{\n  \".c\": 3,\n  \"a\": 1,\n  \"a.b\": 2\n}\n");
}

}  // namespace
}  // namespace hpo::command
