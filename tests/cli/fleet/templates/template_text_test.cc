#include "cli/fleet/templates/template_text.h"

#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

TEST(FillTemplate, ReplacesPlaceholdersWhereverTheyStand) {
  EXPECT_EQ(FillTemplate("a @X@ b @Y_2@, @X@\nend\n", {{"X", "1"}, {"Y_2", "two"}}),
            "a 1 b two, 1\nend\n");
  EXPECT_EQ(FillTemplate("USR1@@S@", {{"S", "180"}}), "USR1@180");
}

TEST(FillTemplate, LeavesOtherSignsAlone) {
  const char* const text = "me@host, @lower@, \"${worker[@]}\", @, @@";
  EXPECT_EQ(FillTemplate(text, {}), text);
}

TEST(FillTemplate, IndentsEachLineOfAValueThatBeginsALine) {
  EXPECT_EQ(FillTemplate("  - @X@\n    @X@\n", {{"X", "a\nb"}}), "  - a\nb\n    a\n    b\n");
}

TEST(FillTemplate, LeavesOutALineOfNothingButAnEmptyValue) {
  EXPECT_EQ(FillTemplate("a\n  @X@\nb @X@\n", {{"X", ""}}), "a\nb \n");
}

}  // namespace
}  // namespace hpo::cli
