#include "cli/render/table.h"

#include <gtest/gtest.h>

#include "cli/client/terminal.h"

namespace hpo::cli {
namespace {

TEST(Table, PadsColumnsToTheirWidestCell) {
  Table table({{"NAME"}, {"N", Align::kRight}, {"NOTE"}});
  table.AddRow({"größe", "7", "x"});
  table.AddRow({"b", "1200", ""});
  EXPECT_EQ(table.Render(0),
            "NAME      N  NOTE\n"
            "größe     7  x\n"
            "b      1200\n");
}

TEST(Table, CutsTheWidestTextToFit) {
  Table table({{"STATE"}, {"VALUE", Align::kRight}, {"PARAMETERS"}});
  table.AddRow({"COMPLETED", "0.7131", "model.name=bert-base-uncased train.lr=3e-05"});
  const std::string text = table.Render(40);
  EXPECT_EQ(text,
            "STATE       VALUE  PARAMETERS\n"
            "COMPLETED  0.7131  model.name=bert-base…\n");
}

TEST(Table, NumbersAreNeverCut) {
  Table table({{"VALUE", Align::kRight}, {"NOTE"}});
  table.AddRow({"123456789012345", "a long note that is cut"});
  EXPECT_EQ(table.Render(10), "          VALUE  NOTE\n123456789012345  a long …\n");
}

TEST(Table, WhatDoesNotFitStandsInBlocksBelow) {
  Table table(
      {{"TRIAL", Align::kRight}, {"VALUE", Align::kRight}, {"NOTE"}, {"BYTES", Align::kRight}});
  table.AddRow({"1", "0.123456", "a note of some length", "1048576"});
  table.AddRow({"20", "0.5", "short", "7"});
  EXPECT_FALSE(table.Fits(30));
  EXPECT_EQ(table.Render(30),
            "TRIAL     VALUE\n"
            "    1  0.123456\n"
            "   20       0.5\n"
            "\n"
            "TRIAL  NOTE\n"
            "    1  a note of some length\n"
            "   20  short\n"
            "\n"
            "TRIAL    BYTES\n"
            "    1  1048576\n"
            "   20        7\n");
  EXPECT_EQ(table.Render(0), table.Render(200));
}

TEST(Table, AColumnMayWrap) {
  Table table({{.title = "NAME"}, {.title = "TEXT", .wraps = true}});
  table.AddRow({"a", "one two three four"});
  table.AddRow({"b", "unbreakable-text"});
  EXPECT_EQ(table.Render(15),
            "NAME  TEXT\n"
            "a     one two\n"
            "      three\n"
            "      four\n"
            "b     unbreakab\n"
            "      le-text\n");
}

TEST(Table, ColoursTakeNoRoom) {
  const auto red = [](absl::string_view cell) {
    return cell == "bad" ? Color::kRed : Color::kPlain;
  };
  Table table({{.title = "S", .color_of = red}, {.title = "N", .align = Align::kRight}});
  table.AddRow({"bad", "1"});
  table.AddRow({"good", "10"});
  EXPECT_EQ(table.Render(0, /*colors=*/true),
            "\x1b[1mS\x1b[0m      \x1b[1mN\x1b[0m\n"
            "\x1b[31mbad\x1b[0m    1\n"
            "good  10\n");
}

TEST(Table, CellsAreMadePrintable) {
  Table table({{"NAME"}});
  table.AddRow({"two\nlines"});
  EXPECT_EQ(table.Render(0), "NAME\ntwo?lines\n");
}

TEST(Table, WithoutRowsThereAreTitles) { EXPECT_EQ(Table({{"A"}, {"B"}}).Render(80), "A  B\n"); }

}  // namespace
}  // namespace hpo::cli
