#include "cli/render/table.h"

#include <gtest/gtest.h>

#include "cli/render/terminal.h"

namespace hpo {
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

TEST(Table, CellsAreMadePrintable) {
  Table table({{"NAME"}});
  table.AddRow({"two\nlines"});
  EXPECT_EQ(table.Render(0), "NAME\ntwo?lines\n");
}

TEST(Table, WithoutRowsThereAreTitles) { EXPECT_EQ(Table({{"A"}, {"B"}}).Render(80), "A  B\n"); }

}  // namespace
}  // namespace hpo
