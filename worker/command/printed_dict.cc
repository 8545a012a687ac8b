#include "worker/command/printed_dict.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/limits.h"
#include "worker/command/printed_number.h"
#include "worker/command/printed_value.h"

namespace hpo::command {
namespace {

constexpr size_t kMostBrackets = 16 << 20;
constexpr size_t kEndOfValue = 80;
constexpr std::array kOwnNames = {"step", "epoch"};
constexpr std::array kOwnWords = {"None",  "True", "False", "null",     "true",
                                  "false", "nan",  "NaN",   "Infinity", "inf"};

// Whether the text is a name without quotes. Python's and JSON's own words are keys of another
// kind.
bool IsWord(absl::string_view text) {
  const bool is_own = std::find(kOwnWords.begin(), kOwnWords.end(), text) != kOwnWords.end();
  return !is_own && !text.empty() && IsLetterOfWord(text.front()) &&
         std::all_of(text.begin(), text.end(), IsWordChar);
}

}  // namespace

// One line of a dict. Each step says whether the next one may follow; else `end_` has the end.
class PrintedDictLine {
 public:
  using End = PrintedDict::End;
  using Entry = PrintedDictReader::Entry;

  PrintedDictLine(absl::string_view line, size_t begin, bool is_first,
                  PrintedDictReader::State state)
      : line_(line), is_first_(is_first), at_(begin), entry_at_(begin), state_(std::move(state)) {}

  End Read() {
    if (!GoesOn()) return End::kNone;
    while (state_.in_value ? ReadValue() : ReadKey()) {
    }
    return end_;
  }

  size_t at() const { return end_ == End::kNone ? entry_at_ : at_; }
  std::vector<Entry>& entries() { return entries_; }
  PrintedDictReader::State& state() { return state_; }

 private:
  bool EndAs(End end) {
    end_ = end;
    return false;
  }

  bool Close() {
    ++at_;
    return EndAs(End::kClosed);
  }

  void SkipSpace() {
    while (at_ < line_.size() && IsSpace(line_[at_])) ++at_;
  }

  // Whether the line may follow those before it. A value ends with its line, unless it is a text
  // that goes on in the next one, as pprint has it, or announces more by a colon.
  bool GoesOn() {
    SkipSpace();
    if (at_ == line_.size()) return true;
    const char c = line_[at_];
    if (!state_.in_value) return is_first_ || ContinuesEntries();
    if (!state_.closers.empty()) {
      return c != '{' || absl::StrContains(",[(", state_.last);
    }
    if (state_.last == 0 || state_.last == ':' || c == ',' || c == '}') return true;
    return IsQuote(c) && IsQuote(state_.last);
  }

  // A line of another program's between two entries has a colon too: "UserWarning: x".
  bool ContinuesEntries() const {
    if (line_[at_] == '}') return true;
    const size_t end = FindOutside(line_, at_, ":,}");
    if (end == kNowhere || end == line_.size()) return false;
    const absl::string_view key = absl::StripAsciiWhitespace(line_.substr(at_, end - at_));
    if (key == "...") return true;
    return line_[end] == ':' && (!state_.has_name || NameOfKey(key).has_value());
  }

  // A key and its colon, or the end.
  bool ReadKey() {
    SkipSpace();
    entry_at_ = at_;
    if (at_ == line_.size()) return EndAs(End::kOpen);
    if (line_[at_] == '}') return Close();
    if (line_[at_] == '{' || line_[at_] == '[') return EndAs(End::kNone);
    const size_t end = FindOutside(line_, at_, ":,}");
    if (end == kNowhere || end == line_.size()) return EndAs(End::kNone);
    const absl::string_view key = absl::StripAsciiWhitespace(line_.substr(at_, end - at_));
    at_ = end;
    if (line_[end] != ':') return EndPart(key);
    if (key.empty()) return EndAs(End::kNone);
    ++at_;
    state_.is_spaced = at_ < line_.size() && line_[at_] == ' ';
    const bool is_name = NameOfKey(key).has_value();
    state_.has_name |= is_name;
    state_.is_odd |= !is_name && absl::StrContains(key, '\'');
    state_.key = std::string(key);
    state_.value.clear();
    state_.end.clear();
    state_.last = 0;
    state_.in_value = true;
    return true;
  }

  // A part without a colon belongs to the value before its comma, which is no number then: the 234
  // of 1,234.
  bool EndPart(absl::string_view part) {
    if (part != "...") {  // reprlib leaves entries out so
      if (!state_.has_entry) return EndAs(End::kNone);
      if (!part.empty() && state_.before) {
        state_.before->number.reset();
        absl::StrAppend(&state_.before->value, ", ",
                        part.substr(0, PrintedDictReader::kMostOfValue));
        entries_.push_back(*state_.before);
        state_.is_odd = true;
      }
    }
    return PastEntry();
  }

  bool PastEntry() {
    if (line_[at_] == '}') return Close();
    ++at_;
    return true;
  }

  bool ReadValue() {
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (state_.closers.empty() && (c == ',' || c == '}')) return EndEntry();
      if (!PassOver(c)) return EndAs(End::kNone);
    }
    Append("\n");
    return EndAs(End::kOpen);
  }

  bool EndEntry() {
    state_.in_value = false;
    const absl::string_view value = absl::StripAsciiWhitespace(state_.value);
    std::optional<std::string> name = NameOfKey(state_.key);
    state_.has_entry |= name.has_value();
    if (value.empty() && !name) return EndAs(End::kNone);
    state_.is_odd |= value.empty();
    std::optional<double> number;
    if (state_.end.empty()) number = NumberOfValue(value);
    if (!name && number && state_.is_spaced && IsWord(state_.key)) name = state_.key;
    state_.before.reset();
    if (name) {
      state_.before = Entry{.name = *name,
                            .number = number,
                            .value = number ? std::string(value) : absl::StrCat(value, state_.end)};
      entries_.push_back(*state_.before);
    }
    return PastEntry();
  }

  // A string, a bracket or another character of a value. False: a brace closes that was not opened.
  bool PassOver(char c) {
    if (IsQuote(c) && !absl::StrContains(unpaired_, c)) {
      const bool begins = MayBeginString(line_, at_);
      // As in "it's".
      const bool in_word = !begins && at_ + 1 < line_.size() && IsWordChar(line_[at_ + 1]);
      state_.is_odd |= !begins && !in_word;
      const size_t past = begins ? PastString(line_, at_) : at_ + 1;
      if (past != kNowhere) {
        Append(line_.substr(at_, past - at_));
        at_ = past;
        return true;
      }
      unpaired_ += c;
      state_.is_odd = true;
    }
    std::string& closers = state_.closers;
    if (const char closer = CloserOf(line_, at_)) {
      if (closers.size() >= kMostBrackets) return false;
      closers += closer;
    } else if (!closers.empty() && c == closers.back()) {
      closers.pop_back();
    } else if (c == ')' || c == ']') {
      state_.is_odd = true;  // of ":)"
    } else if (c == '}') {
      state_.is_odd = true;
      if (closers.back() != '>') return false;
      closers.pop_back();  // of "p <x"
      return true;
    }
    Append(line_.substr(at_, 1));
    ++at_;
    return true;
  }

  void Append(absl::string_view text) {
    if (!IsSpace(text.back())) state_.last = text.back();
    const size_t room = PrintedDictReader::kMostOfValue - state_.value.size();
    absl::StrAppend(&state_.value, text.substr(0, room));
    if (text.size() <= room) return;
    absl::StrAppend(&state_.end,
                    text.substr(std::max(room, text.size() - std::min(text.size(), kEndOfValue))));
    if (state_.end.size() > 2 * kEndOfValue) {
      state_.end.erase(0, state_.end.size() - kEndOfValue);
    }
  }

  const absl::string_view line_;
  const bool is_first_;
  size_t at_;
  size_t entry_at_;
  PrintedDictReader::State state_;
  std::string unpaired_;  // quotes that the rest of the line does not close
  End end_ = End::kNone;
  std::vector<Entry> entries_;
};

PrintedDictReader::PrintedDictReader(std::string objective) : objective_(std::move(objective)) {}

PrintedDict::End PrintedDictReader::Take(absl::string_view line) {
  if (has_begun_) return TakeFrom(0, line);
  if (line.empty() || line.front() != '{') return End::kNone;
  return TakeFrom(1, line);
}

PrintedDict::End PrintedDictReader::TakeEntries(absl::string_view line) {
  return TakeFrom(0, line);
}

PrintedDict::End PrintedDictReader::TakeFrom(size_t begin, absl::string_view line) {
  const bool is_first = !std::exchange(has_begun_, true);
  PrintedDictLine reading(line, begin, is_first, state_);
  const End end = reading.Read();
  if (end == End::kNone && !is_first) return end;
  size_ = reading.at();
  state_ = std::move(reading.state());
  for (Entry& entry : reading.entries()) Keep(std::move(entry));
  return end;
}

void PrintedDictReader::Keep(Entry entry) {
  const bool is_objective = entry.name == objective_;
  if (is_objective) no_number_.reset();
  if (!entry.number) {
    numbers_.erase(entry.name);
    if (is_objective) no_number_ = std::move(entry.value);
    return;
  }
  const bool is_own =
      is_objective || std::find(kOwnNames.begin(), kOwnNames.end(), entry.name) != kOwnNames.end();
  const bool has_room =
      static_cast<int64_t>(numbers_.size() + kOwnNames.size() + 1) < kMetricLimit.most &&
      static_cast<int64_t>(entry.name.size()) <= kNameLimit.most;
  if (is_own || has_room || numbers_.contains(entry.name)) {
    numbers_[entry.name] = *entry.number;
  } else {
    ++num_left_out_;
  }
}

PrintedDict ReadPrintedDict(absl::string_view text, const std::string& objective) {
  PrintedDict dict;
  PrintedDictReader reader(objective);
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    dict.end = reader.Take(text.substr(begin, end - begin));
    if (dict.end == PrintedDict::End::kClosed) {
      dict.size = begin + reader.size();
      dict.numbers = reader.numbers();
    }
    if (dict.end != PrintedDict::End::kOpen) break;
    begin = end + 1;
  }
  return dict;
}

}  // namespace hpo::command
