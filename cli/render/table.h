// Tables for people: columns padded to their widest cell, laid out in the terminal's width.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/render/color.h"

namespace hpo::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  Color (*color_of)(absl::string_view cell) = nullptr;  // null: no colour
  bool wraps = false;  // a cell that is too long takes several lines in place of being cut
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // One cell a column. Cells are made printable (terminal.h).
  void AddRow(std::vector<std::string> cells);

  // Lines with a newline each, two blanks between columns, none at a line's end. Where they would
  // be longer than `width` (0: unlimited), the widest left-aligned columns are cut or wrapped,
  // down to 16 each. Where that does not help, the columns stand in several blocks below each
  // other, each of which begins with the first column. Numbers are never cut. `colors`: titles are
  // bold, and cells have the colour of their column.
  std::string Render(int width, bool colors = false) const;

  // Whether lines of `width` hold it in one block.
  bool Fits(int width) const;

 private:
  // Columns [begin, end) next to the first one.
  struct Block {
    size_t begin = 0;
    size_t end = 0;
  };

  std::vector<int> NaturalWidths() const;
  std::vector<int> WidthsOf(const std::vector<size_t>& shown, int width) const;
  std::vector<Block> Blocks(int width) const;
  void AppendRow(const std::vector<size_t>& shown, const std::vector<int>& widths,
                 const std::vector<std::string>& cells, const std::vector<Color>& colors,
                 std::string& text) const;
  void AppendBlock(const Block& block, int width, bool colors, std::string& text) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hpo::cli
