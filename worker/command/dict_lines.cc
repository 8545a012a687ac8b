// Tested by tests/worker/command/printed_dict_test.cc.
#include "worker/command/dict_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "worker/command/printed_number.h"
#include "worker/command/printed_value.h"

namespace hpo::command {
namespace {

// So many braces or commas of a line are tried in vain, as each may be read to the line's end.
constexpr size_t kMostTries = 100;
constexpr size_t kShortLine = 4096;
constexpr size_t kMostOfLine = 160;
// Of a time before a logger's line; with fewer the prefix is a rank's or a step's.
constexpr int kDigitsOfTime = 4;

// The first place where the objective's name is a key: a string before a colon, after a brace, a
// comma or the line's beginning; `after_space`, after any space too.
size_t FindKey(absl::string_view text, const std::string& objective, bool after_space) {
  for (size_t at = text.find(objective); at != kNowhere; at = text.find(objective, at + 1)) {
    const size_t end = at + objective.size();
    const bool quoted =
        at > 0 && end < text.size() && IsQuote(text[at - 1]) && text[end] == text[at - 1];
    if (!quoted) continue;
    const absl::string_view before = text.substr(0, at - 1);
    const absl::string_view stripped = absl::StripTrailingAsciiWhitespace(before);
    const bool begins = stripped.empty() || absl::StrContains("{,", stripped.back()) ||
                        (after_space && stripped.size() < before.size());
    const absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(end + 1));
    if (begins && absl::StartsWith(rest, ":")) return at - 1;
  }
  return kNowhere;
}

std::string QuoteAt(absl::string_view line, size_t at) {
  const size_t from = at > kMostOfLine / 2 ? at - kMostOfLine / 2 : 0;
  const size_t to = std::min(line.size(), from + kMostOfLine);
  return absl::StrCat(from > 0 ? "..." : "", line.substr(from, to - from),
                      to < line.size() ? "..." : "");
}

std::optional<UnreadObjective> NamedIn(absl::string_view line, const std::string& objective,
                                       bool after_space = false) {
  const size_t at = FindKey(line, objective, after_space);
  if (at == kNowhere) return std::nullopt;
  return UnreadObjective{.line = QuoteAt(line, at), .value = std::nullopt};
}

// What a reader has of a dict, of which `line` is the last line.
FoundDict FoundBy(const PrintedDictReader& reader, absl::string_view line,
                  const std::string& objective) {
  FoundDict found{.numbers = reader.numbers(), .num_left_out = reader.num_left_out()};
  if (reader.no_number()) {
    const size_t at = FindKey(line, objective, /*after_space=*/true);
    found.unread = UnreadObjective{.line = QuoteAt(line, at == kNowhere ? 0 : at),
                                   .value = reader.no_number()};
  }
  return found;
}

// The entries of a dict behind a part that is not understood, up to its end.
struct LastEntries {
  PrintedDictReader reader;
  size_t end = 0;
};

// Reads from each comma before a string on. It is the outermost dict that ends there where neither
// a brace nor a comma follows.
std::optional<LastEntries> FindLastEntries(absl::string_view text, size_t from, size_t to,
                                           const std::string& objective) {
  size_t comma = text.find(',', from);
  // Bytes that may be read: in a long line fewer places are tried.
  size_t left = std::max(kMostTries * kShortLine, 2 * text.size());
  for (; comma < to; comma = text.find(',', comma + 1)) {
    size_t begin = comma + 1;
    while (begin < text.size() && IsSpace(text[begin])) ++begin;
    if (begin == text.size() || !IsQuote(text[begin])) continue;
    const size_t size = text.size() - begin;
    if (size > left) return std::nullopt;
    left -= size;
    LastEntries last{.reader = PrintedDictReader(objective)};
    if (last.reader.TakeEntries(text.substr(begin)) != PrintedDict::End::kClosed) continue;
    last.end = begin + last.reader.size();
    const absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(last.end));
    const bool is_last = rest.empty() || !absl::StrContains("},]", rest.front());
    if (is_last && last.reader.has_entry() && !last.reader.is_odd()) return last;
  }
  return std::nullopt;
}

// `found` with the entries of `last`, of which those before it count.
void Join(const LastEntries& last, absl::string_view line, const std::string& objective,
          FoundDict& found) {
  FoundDict more = FoundBy(last.reader, line, objective);
  found.num_left_out += more.num_left_out;
  const bool has_objective = found.numbers.contains(objective);
  found.numbers.merge(more.numbers);
  if (!has_objective) found.unread = std::move(more.unread);
}

// The dicts of a line.
class LineOfDicts {
 public:
  LineOfDicts(absl::string_view line, const std::string& objective)
      : line_(line), objective_(objective) {}

  // `open`: receives the reader of one that is not closed, and where it begins; without it, it is
  // taken for one that never will be.
  std::vector<FoundDict> Read(std::optional<PrintedDictReader>* open, size_t* open_at) {
    size_t brace = line_.find('{');
    size_t tries = 0;
    while (tries < kMostTries && brace != kNowhere) {
      PrintedDictReader reader(objective_);
      const PrintedDict::End end = reader.Take(line_.substr(brace));
      if (end == PrintedDict::End::kOpen && open != nullptr) {
        *open = std::move(reader);
        *open_at = brace;
        return std::move(dicts_);
      }
      size_t next = kNowhere;
      if (end == PrintedDict::End::kClosed) {
        next = TakeClosed(reader, brace);
      } else {
        ++tries;
        next = TakeBroken(reader, brace, end);
      }
      brace = next == kNowhere ? kNowhere : line_.find('{', next);
    }
    if (brace != kNowhere) AddNamed(brace);
    return std::move(dicts_);
  }

 private:
  void AddNamed(size_t from) {
    std::optional<UnreadObjective> named = NamedIn(line_.substr(from), objective_);
    if (named) dicts_.push_back({.unread = std::move(named)});
  }

  // Each returns where the next dict may begin; nowhere: none follows.
  size_t TakeClosed(const PrintedDictReader& reader, size_t brace) {
    const size_t end = brace + reader.size();
    const absl::string_view text = line_.substr(brace, reader.size());
    FoundDict found = FoundBy(reader, text, objective_);
    const bool has_objective = found.unread || found.numbers.contains(objective_);
    if (!has_objective && reader.is_odd() && NamedIn(text, objective_)) {
      const auto last = FindLastEntries(line_, brace, end, objective_);
      if (last && last->end == end) {
        Join(*last, text, objective_, found);
      } else {
        found.unread = NamedIn(text, objective_);
      }
    }
    dicts_.push_back(std::move(found));
    return end;
  }

  size_t TakeBroken(const PrintedDictReader& reader, size_t brace, PrintedDict::End end) {
    if (!reader.has_name()) return brace + 1;
    FoundDict found = FoundBy(reader, line_.substr(brace), objective_);
    if (end == PrintedDict::End::kNone) {
      const auto last = FindLastEntries(line_, brace + reader.size(), line_.size(), objective_);
      if (last) {
        Join(*last, line_, objective_, found);
        dicts_.push_back(std::move(found));
        return last->end;
      }
    }
    const bool has_number = found.numbers.contains(objective_);
    if (!has_number && !reader.has_entry()) {
      AddNamed(brace);
      return brace + 1;
    }
    if (!has_number && !found.unread) found.unread = NamedIn(line_.substr(brace), objective_);
    dicts_.push_back(std::move(found));
    return kNowhere;
  }

  const absl::string_view line_;
  const std::string& objective_;
  std::vector<FoundDict> dicts_;
};

// Past the digits or the space at `i`, which are one character.
size_t PastRun(absl::string_view text, size_t i) {
  const auto of = IsDigit(text[i]) ? IsDigit : IsSpace;
  while (i < text.size() && of(text[i])) ++i;
  return i;
}

// The line without `prefix`, in which a time may differ.
absl::string_view WithoutPrefix(absl::string_view line, absl::string_view prefix) {
  absl::string_view rest = line;
  if (absl::ConsumePrefix(&rest, prefix)) return rest;
  if (std::count_if(prefix.begin(), prefix.end(), IsDigit) < kDigitsOfTime) return line;
  size_t at = 0;
  for (size_t i = 0; i < prefix.size();) {
    const bool runs = IsDigit(prefix[i]) || IsSpace(prefix[i]);
    if (at == line.size()) return line;
    const bool alike = IsDigit(prefix[i])   ? IsDigit(line[at])
                       : IsSpace(prefix[i]) ? IsSpace(line[at])
                                            : prefix[i] == line[at];
    if (!alike) return line;
    i = runs ? PastRun(prefix, i) : i + 1;
    at = runs ? PastRun(line, at) : at + 1;
  }
  return line.substr(at);
}

}  // namespace

DictLines::DictLines(std::string objective) : objective_(std::move(objective)) {}

std::vector<ReadLines> DictLines::Take(absl::string_view line) {
  std::vector<ReadLines> decided;
  if (open_ && Continue(line, decided)) return decided;
  const bool has_brace = absl::StrContains(line, '{');
  if (has_brace) GiveUp(decided);
  std::optional<PrintedDictReader> open;
  size_t brace = 0;
  ReadLines read{.dicts = LineOfDicts(line, objective_).Read(&open, &brace)};
  if (open) {
    if (!read.dicts.empty()) decided.push_back(std::move(read));
    open_ = std::move(open);
    prefix_ = std::string(line.substr(0, brace));
    Hold(line, decided);
    return decided;
  }
  read.lines = {std::string(line)};
  if (!has_brace) {
    if (auto unread = NamedIn(line, objective_, /*after_space=*/open_.has_value())) {
      read.dicts.push_back({.unread = std::move(unread)});
    }
  }
  decided.push_back(std::move(read));
  return decided;
}

bool DictLines::Continue(absl::string_view line, std::vector<ReadLines>& decided) {
  const absl::string_view rest = WithoutPrefix(line, prefix_);
  const PrintedDict::End end = open_->Take(rest);
  if (end == PrintedDict::End::kNone) {
    if (EndAfterGap(line, decided)) return true;
    if (++num_between_ > kMostLines) GiveUp(decided);
    return false;
  }
  Hold(line, decided);
  if (end == PrintedDict::End::kOpen) return true;
  FoundDict found = FoundBy(*open_, line, objective_);
  const bool has_objective = found.unread || found.numbers.contains(objective_);
  if (!has_objective && open_->is_odd()) found.unread = named_;
  const absl::string_view after = rest.substr(open_->size());
  Decide(std::move(found), decided);
  for (FoundDict& more : LineOfDicts(after, objective_).Read(nullptr, nullptr)) {
    decided.back().dicts.push_back(std::move(more));
  }
  return true;
}

bool DictLines::EndAfterGap(absl::string_view line, std::vector<ReadLines>& decided) {
  const bool has_objective = open_->numbers().contains(objective_);
  const size_t brace = std::min(line.find('{'), line.size());
  if (open_->has_name()) {
    if (const auto last = FindLastEntries(line, 0, brace, objective_)) {
      FoundDict found = FoundBy(*open_, line, objective_);
      Join(*last, line, objective_, found);
      held_.emplace_back(line);
      Decide(std::move(found), decided);
      return true;
    }
  }
  const bool ends =
      brace == line.size() && absl::EndsWith(absl::StripTrailingAsciiWhitespace(line), "}");
  if (!ends || !has_objective) return false;
  held_.emplace_back(line);
  Decide(FoundBy(*open_, line, objective_), decided);
  return true;
}

void DictLines::Hold(absl::string_view line, std::vector<ReadLines>& decided) {
  if (!named_) named_ = NamedIn(line, objective_, /*after_space=*/true);
  held_.emplace_back(line);
  held_bytes_ += line.size();
  if (held_.size() < kMostLines && held_bytes_ < kMostBytes) return;
  decided.push_back({.lines = std::exchange(held_, {})});
  held_bytes_ = 0;
}

void DictLines::Decide(FoundDict dict, std::vector<ReadLines>& decided) {
  ReadLines whole{.lines = std::exchange(held_, {})};
  whole.dicts.push_back(std::move(dict));
  decided.push_back(std::move(whole));
  Close();
}

void DictLines::Close() {
  open_.reset();
  named_.reset();
  held_bytes_ = 0;
  num_between_ = 0;
}

void DictLines::GiveUp(std::vector<ReadLines>& decided) {
  if (!open_) return;
  FoundDict found = FoundBy(*open_, held_.empty() ? "" : held_.front(), objective_);
  if (!found.unread && !found.numbers.contains(objective_)) found.unread = named_;
  if (open_->has_entry()) return Decide(std::move(found), decided);
  // What was given out already is not read again.
  std::vector<std::string> lines = std::exchange(held_, {});
  if (found.unread) decided.push_back({.dicts = {{.unread = found.unread}}});
  for (std::string& line : lines) {
    std::vector<FoundDict> dicts = LineOfDicts(line, objective_).Read(nullptr, nullptr);
    decided.push_back({.lines = {std::move(line)}, .dicts = std::move(dicts)});
  }
  Close();
}

std::vector<ReadLines> DictLines::Finish() {
  std::vector<ReadLines> decided;
  GiveUp(decided);
  return decided;
}

}  // namespace hpo::command
