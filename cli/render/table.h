// Tables for people: columns padded to their widest cell, cut to the terminal's width.
#pragma once

#include <string>
#include <vector>

namespace hpo {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // One cell a column. Cells are made printable (terminal.h).
  void AddRow(std::vector<std::string> cells);

  // Lines with a newline each, two blanks between columns, none at a line's end. Where they would
  // be longer than `width` (0: unlimited), the widest left-aligned columns are cut, down to 8 each.
  std::string Render(int width) const;

  // Whether lines of `width` hold it, cut as Render does.
  bool Fits(int width) const;

 private:
  std::vector<int> Widths(int width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hpo
