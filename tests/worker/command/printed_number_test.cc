#include "worker/command/printed_number.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::command {
namespace {

using testing::ElementsAre;

// Each as "TEXT=VALUE", those that are none as "TEXT!", those of a word as "~TEXT=VALUE".
std::vector<std::string> Found(absl::string_view line) {
  std::vector<std::string> found;
  for (const PrintedNumber& number : FindPrintedNumbers(line)) {
    std::string text = absl::StrCat(number.in_word ? "~" : "", number.text);
    absl::StrAppend(&text, number.value ? absl::StrCat("=", *number.value) : "!");
    found.push_back(text);
  }
  return found;
}

TEST(PrintedNumber, HasSignPointAndExponent) {
  EXPECT_THAT(Found("loss: 1.862e-05"), ElementsAre("1.862e-05=1.862e-05"));
  EXPECT_THAT(Found("-0.5 +3 .5 1.E+2 1.e-05 7e0"),
              ElementsAre("-0.5=-0.5", "+3=3", ".5=0.5", "1.E+2=100", "1.e-05=1e-05", "7e0=7"));
  EXPECT_THAT(Found("loss:\xe2\x88\x92"
                    "0.5"),
              ElementsAre("\xe2\x88\x92"
                          "0.5=-0.5"));
  EXPECT_THAT(Found("loss=-.5, acc=(-2)"), ElementsAre("-.5=-0.5", "-2=-2"));
  EXPECT_THAT(Found("At the end: 0.5. Next"), ElementsAre("0.5=0.5"));
}

TEST(PrintedNumber, ADashIsNoSign) {
  EXPECT_THAT(Found("epoch-5 2026-01-02 0.3-0.4 f(x)-1 a]-1"),
              ElementsAre("5=5", "2026=2026", "01=1", "02=2", "0.3=0.3", "0.4=0.4", "1=1", "1=1"));
}

TEST(PrintedNumber, SeparatesThousands) {
  EXPECT_THAT(Found("1,234.5 12,345 -1,234 1_234.5 1,234e-2"),
              ElementsAre("1,234.5=1234.5", "12,345=12345", "-1,234=-1234", "1_234.5=1234.5",
                          "1,234e-2=12.34"));
  EXPECT_THAT(Found("0.5,3 3,0.25 3,25,91 1234,567,890.5 loss_1_100"),
              ElementsAre("0.5=0.5", "3=3", "3=3", "0.25=0.25", "3=3", "25=25", "91=91",
                          "1234=1234", "567=567", "890.5=890.5", "~1=1", "~100=100"));
  EXPECT_THAT(Found("(0.1, 0.2), 3, 4"), ElementsAre("0.1=0.1", "0.2=0.2", "3=3", "4=4"));
}

TEST(PrintedNumber, OthersThatLookLikeOneAreNotRead) {
  EXPECT_THAT(
      Found("0,35 12,5 1.234,5 0,350 1.5.2 192.168.0.1 0x1f"),
      ElementsAre("0,35!", "12,5!", "1.234,5!", "0,350!", "1.5.2!", "192.168.0.1!", "0x1f!"));
}

TEST(PrintedNumber, IsAlsoInfinityAndNan) {
  EXPECT_THAT(
      Found("inf -Infinity +INF nan NaN,-nan"),
      ElementsAre("inf=inf", "-Infinity=-inf", "+INF=inf", "nan=nan", "NaN=nan", "-nan=nan"));
  EXPECT_THAT(Found("info nano banana inference an_inf"), ElementsAre());
}

TEST(PrintedNumber, AUnitFollowsItAndALetterMakesAWord) {
  EXPECT_THAT(
      Found("0.5s 90% 1.5k top5: 0.8 float32(0.3) 5epochs"),
      ElementsAre("0.5=0.5", "90=90", "1.5=1.5", "~5=5", "0.8=0.8", "~32=32", "0.3=0.3", "5=5"));
}

TEST(PrintedNumber, PlainOnesStandAlone) {
  for (const char* text : {"0.5", "-inf", "1.", ".5", "1e-05", "1.e-05", "+3"}) {
    EXPECT_TRUE(ParsePlainNumber(text)) << text;
  }
  for (const char* text : {"", " 0.5", "0.5 ", "1,234", "0.5s", "true", "0x1f", "-"}) {
    EXPECT_FALSE(ParsePlainNumber(text)) << text;
  }
}

}  // namespace
}  // namespace hpo::command
