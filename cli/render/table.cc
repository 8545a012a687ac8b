#include "cli/render/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/render/terminal.h"
#include "common/base/status.h"

namespace hpo {
namespace {

constexpr int kGap = 2;
constexpr int kNarrowest = 8;

std::string Pad(const std::string& cell, int width, Align align) {
  const std::string fitted = FitTo(cell, std::max(width, 1));
  const std::string blanks(std::max(0, width - DisplayWidth(fitted)), ' ');
  return align == Align::kLeft ? fitted + blanks : blanks + fitted;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<std::string> cells) {
  HPO_CHECK(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<int> Table::Widths(int width) const {
  std::vector<int> widths;
  for (const Column& column : columns_) widths.push_back(DisplayWidth(column.title));
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  const int gaps = kGap * static_cast<int>(columns_.size() - 1);
  while (width > 0 && std::accumulate(widths.begin(), widths.end(), gaps) > width) {
    int widest = -1;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (columns_[i].align == Align::kRight || widths[i] <= kNarrowest) continue;
      if (widest < 0 || widths[i] > widths[widest]) widest = static_cast<int>(i);
    }
    if (widest < 0) break;
    --widths[widest];
  }
  return widths;
}

bool Table::Fits(int width) const {
  const std::vector<int> widths = Widths(width);
  const int gaps = kGap * static_cast<int>(columns_.size() - 1);
  return width <= 0 || std::accumulate(widths.begin(), widths.end(), gaps) <= width;
}

std::string Table::Render(int width) const {
  const std::vector<int> widths = Widths(width);
  std::string text;
  const auto add = [&](const auto& cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      line += Pad(cell_of(i), widths[i], columns_[i].align);
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  };
  add([this](size_t i) { return columns_[i].title; });
  for (const std::vector<std::string>& row : rows_) {
    add([&row](size_t i) { return row[i]; });
  }
  return text;
}

}  // namespace hpo
