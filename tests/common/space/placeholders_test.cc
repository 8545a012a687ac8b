#include "common/space/placeholders.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kNames = {"lr", "amp", "train.batch_size"};

std::string Error(const std::string& text) {
  return std::string(CheckPlaceholders(text, kNames).message());
}

TEST(CheckPlaceholders, TakesWhatTrialsHave) {
  for (const char* text :
       {"", "run", "run {lr} --b={train.batch_size}", "run {flag:amp} {args}", "run {overrides}",
        "run {trial} {output_dir} {config} {config:json} {config:yaml}", "echo ${HOME} {{home}}",
        "awk '{ print $1 }'", "f() { x; }; a{1,2} {a,b} {lr:.4f}", "echo '{\"a\": 1}' {}"}) {
    EXPECT_TRUE(CheckPlaceholders(text, kNames).ok()) << text << ": " << Error(text);
  }
}

TEST(CheckPlaceholders, NamesThePlaceholderTheParametersAndTheNearest) {
  const std::string error = Error("run {train.lr}");
  EXPECT_THAT(error, HasSubstr("parameters of the study, which are lr, amp, train.batch_size, or"));
  EXPECT_THAT(error, HasSubstr("got {train.lr}; did you mean {lr}?; write {{train.lr}} to pass"));
  EXPECT_THAT(Error("run {flag:ammp}"), HasSubstr("got {flag:ammp}; did you mean {flag:amp}?"));
  EXPECT_THAT(Error("run {batch_size}"), HasSubstr("did you mean {train.batch_size}?"));
  EXPECT_THAT(Error("run {seeds}"), HasSubstr("did you mean {seed}?"));
  EXPECT_THAT(Error("run {Args}"), HasSubstr("did you mean {args}?"));
  EXPECT_THAT(Error("run {flag:trial}"), HasSubstr("got {flag:trial}"));
  EXPECT_THAT(Error("run {whatever}"), testing::Not(HasSubstr("did you mean")));
}

TEST(CheckPlaceholders, NamesAPrefixThatThereIsNot) {
  EXPECT_THAT(Error("run {flags:amp}"), HasSubstr("such as {flag:amp}, got {flags:amp}"));
  EXPECT_THAT(Error("run {config:yml}"), HasSubstr("{config:json}, got {config:yml}"));
}

TEST(CutAtPlaceholders, AndBack) {
  const std::vector<CommandPiece> pieces = CutAtPlaceholders("a {x} ${y} {{z}}");
  EXPECT_EQ(pieces, (std::vector<CommandPiece>{{"a "}, {"x", true}, {" ${y} {z}"}}));
  EXPECT_EQ(CutAtPlaceholders(WithoutPlaceholders(pieces[2].text)),
            std::vector<CommandPiece>{pieces[2]});
}

}  // namespace
}  // namespace hpo
