#include "worker/command/printed_number.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hpo::command {
namespace {

constexpr absl::string_view kUnicodeMinus = "\xe2\x88\x92";

bool IsHexDigit(char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); }

bool AllDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

bool IsGroupOfThree(absl::string_view text) { return text.size() == 3 && AllDigits(text); }

// "1,234,567.5" as its fields between separators.
bool SeparatesThousands(const std::vector<absl::string_view>& fields) {
  const absl::string_view first = fields.front();
  if (first.size() > 3 || !AllDigits(first) || first.front() == '0') return false;
  for (size_t i = 1; i + 1 < fields.size(); ++i) {
    if (!IsGroupOfThree(fields[i])) return false;
  }
  return IsGroupOfThree(fields.back().substr(0, fields.back().find('.')));
}

// "0,35" and "1.234,5" as their fields: one number with a decimal comma. In "3,0.25" and "0.5,3"
// the comma stands between two numbers.
bool HasDecimalComma(const std::vector<absl::string_view>& fields) {
  if (fields.size() != 2 || !AllDigits(fields.back())) return false;
  const std::vector<absl::string_view> groups = absl::StrSplit(fields.front(), '.');
  return groups.size() == 1 || SeparatesThousands(groups);
}

// Reads a line from left to right.
class NumberFinder {
 public:
  explicit NumberFinder(absl::string_view line) : line_(line) {}

  std::vector<PrintedNumber> Find() {
    while (at_ < line_.size()) {
      if (BeginsDigits()) {
        TakeDigits();
      } else if (const size_t size = SizeOfWord()) {
        Add(at_, at_ + size, /*may_be_read=*/true);
      } else {
        ++at_;
      }
    }
    return std::move(found_);
  }

 private:
  char At(size_t i) const { return i < line_.size() ? line_[i] : '\0'; }
  char Before(size_t i) const { return i > 0 ? line_[i - 1] : '\0'; }

  bool BeginsDigits() const {
    if (IsDigit(At(at_))) return true;
    return At(at_) == '.' && IsDigit(At(at_ + 1)) && !IsWordChar(Before(at_)) &&
           Before(at_) != '.' && Before(at_) != ')' && Before(at_) != ']';
  }

  // Of inf, infinity or nan at at_; 0: none.
  size_t SizeOfWord() const {
    if (IsWordChar(Before(at_))) return 0;
    for (const absl::string_view word : {"infinity", "inf", "nan"}) {
      const bool whole = !IsWordChar(At(at_ + word.size()));
      if (whole && absl::StartsWithIgnoreCase(line_.substr(at_), word)) return word.size();
    }
    return 0;
  }

  // Past an exponent at `i`, if one is there.
  size_t PastExponent(size_t i) const {
    if (At(i) != 'e' && At(i) != 'E') return i;
    size_t end = i + 1;
    if (At(end) == '-' || At(end) == '+') ++end;
    if (!IsDigit(At(end))) return i;
    while (IsDigit(At(end))) ++end;
    return end;
  }

  bool ContinuesAt(size_t i) const {
    if (IsDigit(At(i))) return true;
    if (At(i) == '.') return IsDigit(At(i + 1)) || PastExponent(i + 1) > i + 1;
    return (At(i) == ',' || At(i) == '_') && IsDigit(At(i + 1)) && IsDigit(Before(i));
  }

  void TakeDigits() {
    const size_t begin = at_;
    size_t end = begin;
    while (ContinuesAt(end)) ++end;
    const absl::string_view run = line_.substr(begin, end - begin);
    const bool hex = run == "0" && (At(end) == 'x' || At(end) == 'X') && IsHexDigit(At(end + 1));
    if (hex) {
      ++end;
      while (IsHexDigit(At(end))) ++end;
      return Add(begin, end, /*may_be_read=*/false);
    }
    TakeRun(begin, end);
  }

  // Digits, points and separators in [begin, end): one number or several.
  void TakeRun(size_t begin, size_t end) {
    const absl::string_view run = line_.substr(begin, end - begin);
    const bool commas = run.find(',') != absl::string_view::npos;
    const bool underscores = run.find('_') != absl::string_view::npos;
    if (!commas && !underscores) return Add(begin, PastExponent(end), /*may_be_read=*/true);
    if (commas != underscores) {
      const std::vector<absl::string_view> fields = absl::StrSplit(run, commas ? ',' : '_');
      // "model_1_100" has numbers of a name.
      const bool thousands =
          SeparatesThousands(fields) && (commas || !IsLetterOfWord(Before(begin)));
      if (thousands) return Add(begin, PastExponent(end), /*may_be_read=*/true);
      if (commas && HasDecimalComma(fields)) {
        return Add(begin, PastExponent(end), /*may_be_read=*/false);
      }
    }
    for (const absl::string_view field : absl::StrSplit(run, absl::ByAnyChar(",_"))) {
      const size_t from = static_cast<size_t>(field.data() - line_.data());
      const size_t to = from + field.size();
      Add(from, to == end ? PastExponent(end) : to, /*may_be_read=*/true);
    }
  }

  // Of the sign before `begin`; 0: what is there is a dash, or nothing.
  size_t SizeOfSign(size_t begin) const {
    const absl::string_view before = line_.substr(0, begin);
    const bool sign = absl::EndsWith(before, "-") || absl::EndsWith(before, "+");
    const bool minus = absl::EndsWith(before, kUnicodeMinus);
    const size_t size = minus ? kUnicodeMinus.size() : sign ? 1 : 0;
    const char previous = Before(begin - size);
    const bool dash = IsWordChar(previous) || previous == '.' || previous == ')' || previous == ']';
    return dash ? 0 : size;
  }

  void Add(size_t begin, size_t end, bool may_be_read) {
    const bool in_word = IsLetterOfWord(Before(begin));
    begin -= SizeOfSign(begin);
    PrintedNumber number{.text = line_.substr(begin, end - begin), .in_word = in_word};
    if (may_be_read) number.value = ValueOf(number.text);
    found_.push_back(number);
    at_ = end;
  }

  static std::optional<double> ValueOf(absl::string_view text) {
    std::string plain;
    if (absl::ConsumePrefix(&text, kUnicodeMinus)) plain = "-";
    for (const char c : text) {
      if (c != ',' && c != '_') plain += c;
    }
    return ParsePlainNumber(plain);
  }

  const absl::string_view line_;
  size_t at_ = 0;
  std::vector<PrintedNumber> found_;
};

}  // namespace

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

bool IsLetterOfWord(char c) {
  return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_';
}

bool IsWordChar(char c) { return IsLetterOfWord(c) || IsDigit(c); }

std::vector<PrintedNumber> FindPrintedNumbers(absl::string_view line) {
  return NumberFinder(line).Find();
}

std::optional<double> ParsePlainNumber(absl::string_view text) {
  double value = 0.0;
  // SimpleAtod takes space around a number, and hexadecimal ones.
  const bool plain =
      absl::StripAsciiWhitespace(text) == text && text.find_first_of("xX") == text.npos;
  if (!plain || !absl::SimpleAtod(text, &value)) return std::nullopt;
  return value;
}

}  // namespace hpo::command
