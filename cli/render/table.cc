#include "cli/render/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/client/terminal.h"
#include "common/base/status.h"
#include "common/command_line/wrapped_line.h"

namespace hpo::cli {
namespace {

constexpr int kGap = 2;
constexpr int kReadable = 16;  // columns of a text that is cut next to others
constexpr int kNarrowest = 8;  // of one that stands alone next to the first column

// `text` in lines of at most `width` columns, broken at blanks where there are any.
std::vector<std::string> Wrapped(absl::string_view text, int width) {
  std::vector<std::string> lines;
  while (DisplayWidth(text) > width) {
    // Of what is longer than that, FitTo leaves `width` columns and its ellipsis.
    const std::string fitted = FitTo(absl::StrCat(text, "  "), width + 1);
    size_t end = fitted.size() - std::string("…").size();
    const size_t blank = absl::string_view(text).substr(0, end + 1).rfind(' ');
    const bool breaks_at_blank = blank != absl::string_view::npos && blank > 0;
    if (breaks_at_blank) end = blank;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(breaks_at_blank ? end + 1 : end);
  }
  lines.emplace_back(text);
  return lines;
}

// What cannot be less of a column whose widest cell takes `natural`.
int LeastWidth(const Column& column, int natural, int floor) {
  return column.align == Align::kRight ? natural : std::min(natural, floor);
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<std::string> cells) {
  HPO_CHECK(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<int> Table::NaturalWidths() const {
  std::vector<int> widths;
  for (const Column& column : columns_) widths.push_back(DisplayWidth(column.title));
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  return widths;
}

std::vector<Table::Block> Table::Blocks(int width) const {
  if (width <= 0 || columns_.size() < 2) return {{.begin = 1, .end = columns_.size()}};
  const std::vector<int> natural = NaturalWidths();
  const int first = LeastWidth(columns_[0], natural[0], kReadable);
  std::vector<Block> blocks = {{.begin = 1, .end = 1}};
  int taken = first;
  for (size_t i = 1; i < columns_.size(); ++i) {
    const int wanted = kGap + LeastWidth(columns_[i], natural[i], kReadable);
    const bool is_empty = blocks.back().begin == blocks.back().end;
    if (taken + wanted > width && !is_empty) {
      blocks.push_back({.begin = i, .end = i});
      taken = first;
    }
    blocks.back().end = i + 1;
    taken += wanted;
  }
  return blocks;
}

std::vector<int> Table::WidthsOf(const std::vector<size_t>& shown, int width) const {
  const std::vector<int> natural = NaturalWidths();
  std::vector<int> widths;
  for (const size_t i : shown) widths.push_back(natural[i]);
  const int gaps = kGap * static_cast<int>(widths.size() - 1);
  const int floor = widths.size() > 2 ? kReadable : kNarrowest;
  while (width > 0 && std::accumulate(widths.begin(), widths.end(), gaps) > width) {
    int widest = -1;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (columns_[shown[i]].align == Align::kRight || widths[i] <= floor) continue;
      if (widest < 0 || widths[i] > widths[widest]) widest = static_cast<int>(i);
    }
    if (widest < 0) break;
    --widths[widest];
  }
  return widths;
}

bool Table::Fits(int width) const { return Blocks(width).size() == 1; }

void Table::AppendRow(const std::vector<size_t>& shown, const std::vector<int>& widths,
                      const std::vector<std::string>& cells, const std::vector<Color>& colors,
                      std::string& text) const {
  std::vector<std::vector<std::string>> lines_of;
  size_t num_lines = 1;
  for (size_t k = 0; k < shown.size(); ++k) {
    const std::string& cell = cells[shown[k]];
    const int width = std::max(widths[k], 1);
    lines_of.push_back(columns_[shown[k]].wraps ? Wrapped(cell, width)
                                                : std::vector{FitTo(cell, width)});
    num_lines = std::max(num_lines, lines_of.back().size());
  }
  for (size_t i = 0; i < num_lines; ++i) {
    std::string line;
    int blanks = 0;  // before the next text
    for (size_t k = 0; k < shown.size(); ++k) {
      const std::string part = i < lines_of[k].size() ? lines_of[k][i] : "";
      const int padding = std::max(0, widths[k] - DisplayWidth(part));
      const bool is_right = columns_[shown[k]].align == Align::kRight;
      if (is_right) blanks += padding;
      if (!part.empty()) {
        line.append(static_cast<size_t>(blanks), ' ');
        line += Colored(part, colors[shown[k]]);
        blanks = 0;
      }
      blanks += (is_right ? 0 : padding) + kGap;
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
}

void Table::AppendBlock(const Block& block, int width, bool colors, std::string& text) const {
  std::vector<size_t> shown = {0};
  for (size_t i = block.begin; i < block.end; ++i) shown.push_back(i);
  const std::vector<int> widths = WidthsOf(shown, width);
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  AppendRow(shown, widths, titles,
            std::vector<Color>(columns_.size(), colors ? Color::kBold : Color::kPlain), text);
  for (const std::vector<std::string>& row : rows_) {
    std::vector<Color> colors_of(columns_.size(), Color::kPlain);
    for (size_t i = 0; i < row.size() && colors; ++i) {
      if (columns_[i].color_of != nullptr) colors_of[i] = columns_[i].color_of(row[i]);
    }
    AppendRow(shown, widths, row, colors_of, text);
  }
}

std::string Table::Render(int width, bool colors) const {
  std::string text;
  for (const Block& block : Blocks(width)) {
    if (!text.empty()) text += "\n";
    AppendBlock(block, width, colors, text);
  }
  return text;
}

}  // namespace hpo::cli
