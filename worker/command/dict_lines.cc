#include "worker/command/dict_lines.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "worker/command/printed_dict.h"

namespace hpo {
namespace {

// So many braces of a line are tried, as what looks like a dict may be read to its end in vain.
constexpr int kMostBraces = 100;

// The dicts of a line. `open` receives where one begins that is not closed; without it the braces
// within such a one are tried too.
std::vector<Metrics> DictsOf(absl::string_view line, std::optional<size_t>* open) {
  std::vector<Metrics> dicts;
  size_t brace = line.find('{');
  for (int i = 0; i < kMostBraces && brace != absl::string_view::npos; ++i) {
    PrintedDict dict = ReadPrintedDict(line.substr(brace));
    if (dict.end == PrintedDict::End::kOpen && open != nullptr) {
      *open = brace;
      break;
    }
    const bool closed = dict.end == PrintedDict::End::kClosed;
    if (closed) dicts.push_back(std::move(dict.numbers));
    brace = line.find('{', brace + (closed ? dict.size : 1));
  }
  return dicts;
}

}  // namespace

std::vector<ReadLines> DictLines::Take(absl::string_view line) {
  std::vector<ReadLines> decided;
  if (!held_.empty() && Continue(line, decided)) return decided;
  if (absl::StrContains(line, '{')) GiveUp(decided);
  std::optional<size_t> open;
  std::vector<Metrics> dicts = DictsOf(line, &open);
  const bool holds = dicts.empty() && open && line.size() <= kMostBytes;
  if (!holds) {
    if (open) dicts = DictsOf(line, nullptr);
    decided.push_back({.lines = {std::string(line)}, .dicts = std::move(dicts)});
    return decided;
  }
  held_ = {std::string(line)};
  num_lines_ = 1;
  open_ = std::string(line.substr(*open));
  prefix_ = std::string(line.substr(0, *open));
  return decided;
}

bool DictLines::Continue(absl::string_view line, std::vector<ReadLines>& decided) {
  absl::string_view rest = line;
  absl::ConsumePrefix(&rest, prefix_);
  if (++num_lines_ > kMostLines || open_.size() + rest.size() > kMostBytes) {
    GiveUp(decided);
    return false;
  }
  const std::string longer = absl::StrCat(open_, "\n", rest);
  PrintedDict dict = ReadPrintedDict(longer);
  if (dict.end == PrintedDict::End::kNone) return false;
  held_.emplace_back(line);
  open_ = longer;
  if (dict.end == PrintedDict::End::kOpen) return true;
  ReadLines whole{.lines = std::exchange(held_, {}), .dicts = {std::move(dict.numbers)}};
  for (Metrics& after : DictsOf(absl::string_view(longer).substr(dict.size), nullptr)) {
    whole.dicts.push_back(std::move(after));
  }
  decided.push_back(std::move(whole));
  return true;
}

void DictLines::GiveUp(std::vector<ReadLines>& decided) {
  for (std::string& line : std::exchange(held_, {})) {
    std::vector<Metrics> dicts = DictsOf(line, nullptr);
    decided.push_back({.lines = {std::move(line)}, .dicts = std::move(dicts)});
  }
}

std::vector<ReadLines> DictLines::Finish() {
  std::vector<ReadLines> decided;
  GiveUp(decided);
  return decided;
}

}  // namespace hpo
