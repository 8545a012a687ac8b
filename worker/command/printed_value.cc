// Tested by tests/worker/command/printed_dict_test.cc.
#include "worker/command/printed_value.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/json_reader.h"
#include "worker/command/printed_number.h"

namespace hpo::command {

bool IsQuote(char c) { return c == '"' || c == '\''; }

size_t PastString(absl::string_view text, size_t begin) {
  for (size_t i = begin + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == text[begin]) return i + 1;
    if (text[i] == '\\') ++i;
  }
  return kNowhere;
}

bool MayBeginString(absl::string_view text, size_t i) {
  return i == 0 || !IsWordChar(text[i - 1]) || text[i - 1] == 'b';
}

char CloserOf(absl::string_view text, size_t i) {
  switch (text[i]) {
    case '(':
      return ')';
    case '[':
      return ']';
    case '{':
      return '}';
    case '<':
      if (i > 0 && IsWordChar(text[i - 1])) return 0;
      return i + 1 < text.size() && IsLetterOfWord(text[i + 1]) ? '>' : 0;
    default:
      return 0;
  }
}

size_t FindOutside(absl::string_view text, size_t begin, absl::string_view ends) {
  std::string closers;
  std::string unpaired;  // quotes that the rest of the line does not close
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (closers.empty() && absl::StrContains(ends, c)) return i;
    if (c == '\n') unpaired.clear();
    if (IsQuote(c) && !absl::StrContains(unpaired, c) && MayBeginString(text, i)) {
      const size_t past = PastString(text, i);
      if (past != kNowhere) {
        i = past - 1;
      } else {
        unpaired += c;
      }
    } else if (const char closer = CloserOf(text, i)) {
      closers += closer;
    } else if (!closers.empty() && c == closers.back()) {
      closers.pop_back();
    } else if (c == ')' || c == ']' || c == '}') {
      return kNowhere;
    }
  }
  return text.size();
}

namespace {

// The characters of a text that is one string, as Python or JSON writes it; nullopt: it is none.
std::optional<std::string> StringOf(absl::string_view text) {
  if (text.empty() || !IsQuote(text.front()) || PastString(text, 0) != text.size()) {
    return std::nullopt;
  }
  const absl::string_view inner = text.substr(1, text.size() - 2);
  std::string json = "\"";
  for (size_t i = 0; i < inner.size(); ++i) {
    const absl::string_view pair = inner.substr(i, 2);
    if (inner[i] == '"') json += '\\';
    if (pair == "\\'") continue;  // the quote comes next
    if (pair == "\\x") {
      json += "\\u00";
      ++i;
      continue;
    }
    json += inner[i];
    if (inner[i] == '\\' && pair.size() == 2) json += inner[++i];
  }
  const absl::StatusOr<nlohmann::json> decoded = ParseJson(absl::StrCat(json, "\""));
  if (decoded.ok() && decoded->is_string()) return decoded->get<std::string>();
  return std::string(inner);
}

struct Call {
  absl::string_view name;  // the last part: float64 of np.float64
  std::vector<absl::string_view> arguments;
  bool others_are_named = true;  // all but the first: device='cuda:0'
};

bool IsNamed(absl::string_view argument) {
  size_t i = 0;
  while (i < argument.size() && IsWordChar(argument[i])) ++i;
  return i > 0 && i < argument.size() && argument[i] == '=';
}

// NAME(ARGUMENT, ...); nullopt: the text is something else.
std::optional<Call> CallOf(absl::string_view text) {
  size_t open = 0;
  while (open < text.size() && (IsWordChar(text[open]) || text[open] == '.')) ++open;
  const bool calls = open > 0 && open < text.size() && IsLetterOfWord(text.front()) &&
                     text[open] == '(' && text.back() == ')';
  if (!calls) return std::nullopt;
  Call call{.name = text.substr(0, open)};
  if (const size_t dot = call.name.rfind('.'); dot != kNowhere) call.name.remove_prefix(dot + 1);
  const absl::string_view inner = text.substr(open + 1, text.size() - open - 2);
  for (size_t begin = 0; begin <= inner.size();) {
    const size_t end = FindOutside(inner, begin, ",");
    if (end == kNowhere) return std::nullopt;
    const absl::string_view argument = absl::StripAsciiWhitespace(inner.substr(begin, end - begin));
    if (!call.arguments.empty() && !argument.empty() && !IsNamed(argument)) {
      call.others_are_named = false;
    }
    call.arguments.push_back(argument);
    begin = end + 1;
  }
  return call;
}

std::optional<double> NumberOfCall(const Call& call) {
  const absl::string_view first = call.arguments.front();
  if (call.name == "Fraction" && call.arguments.size() == 2) {
    const std::optional<double> over = ParsePlainNumber(first);
    const std::optional<double> under = ParsePlainNumber(call.arguments[1]);
    if (over && under && *under != 0.0) return *over / *under;
    return std::nullopt;
  }
  if (!call.others_are_named) return std::nullopt;
  if (call.name == "Decimal" || call.name == "float" || call.name == "mpf") {
    if (const std::optional<std::string> text = StringOf(first)) return ParsePlainNumber(*text);
  }
  return ParsePlainNumber(first);
}

// <tf.Tensor: shape=(), dtype=float32, numpy=0.3>
std::optional<double> NumberOfTensor(absl::string_view text) {
  constexpr absl::string_view kNumpy = "numpy=";
  const size_t numpy = text.find(kNumpy);
  const bool scalar = absl::ConsumeSuffix(&text, ">") && absl::StrContains(text, "shape=()");
  if (!scalar || numpy == kNowhere) return std::nullopt;
  return ParsePlainNumber(text.substr(numpy + kNumpy.size()));
}

// As texts of people have it: '1,234.5', ' 0.3 '.
std::optional<double> NumberOfString(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const std::vector<PrintedNumber> numbers = FindPrintedNumbers(text);
  if (numbers.size() != 1 || numbers.front().text != text) return std::nullopt;
  return numbers.front().value;
}

}  // namespace

std::optional<double> NumberOfValue(absl::string_view text) {
  if (const std::optional<double> number = ParsePlainNumber(text)) return number;
  if (const std::optional<std::string> string = StringOf(text)) return NumberOfString(*string);
  if (absl::ConsumePrefix(&text, "Parameter containing:")) {
    text = absl::StripLeadingAsciiWhitespace(text);
  }
  if (absl::StartsWith(text, "<tf.")) return NumberOfTensor(text);
  if (const std::optional<Call> call = CallOf(text)) return NumberOfCall(*call);
  return std::nullopt;
}

std::optional<std::string> NameOfKey(absl::string_view key) {
  if (std::optional<std::string> name = StringOf(key)) return name;
  const std::optional<Call> call = CallOf(key);
  if (call && call->name == "str_" && call->arguments.size() == 1) {
    return StringOf(call->arguments.front());
  }
  return std::nullopt;
}

}  // namespace hpo::command
