#include "common/base/limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/utf8.h"

namespace hpo {
namespace {

constexpr size_t kQuotedBytes = 60;

constexpr const Limit* kLimits[] = {&kMessageLimit,
                                    &kNumberLimit,
                                    &kNameLimit,
                                    &kTextLimit,
                                    &kAttributeLimit,
                                    &kErrorTextLimit,
                                    &kListedTextLimit,
                                    &kLogTailLimit,
                                    &kStatusTextLimit,
                                    &kCommandLimit,
                                    &kStudyFileLimit,
                                    &kArchiveLimit,
                                    &kParameterLimit,
                                    &kChoiceLimit,
                                    &kConditionLimit,
                                    &kMetricLimit,
                                    &kMeasurementLimit,
                                    &kMemoryRecordLimit,
                                    &kImportLimit,
                                    &kFilterLimit,
                                    &kLeaseLimit,
                                    &kFactLimit,
                                    &kLabelLimit,
                                    &kLengthLimit,
                                    &kPageLimit,
                                    &kTableLimit,
                                    &kTableTextLimit,
                                    &kHistoryLimit,
                                    &kCurveLimit,
                                    &kCurvePointLimit,
                                    &kTimelineLimit,
                                    &kFrontierLimit,
                                    &kCapacityLimit,
                                    &kPageBytesLimit,
                                    &kWatchLimit,
                                    &kStatementLimit,
                                    &kEventLimit,
                                    &kOptunaNameLimit,
                                    &kOptunaJsonLimit,
                                    &kOptunaAttributeLimit,
                                    &kOptunaUnfinishedLimit,
                                    &kOptunaAnswerLimit,
                                    &kRequestIdDays};

bool ContinuesCharacter(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// The largest start of `text` of at most `most` bytes that ends between characters.
absl::string_view Head(absl::string_view text, size_t most) {
  size_t end = std::min(most, text.size());
  while (end > 0 && end < text.size() && ContinuesCharacter(text[end])) --end;
  return text.substr(0, end);
}

absl::string_view Tail(absl::string_view text, size_t most) {
  size_t begin = text.size() - std::min(most, text.size());
  while (begin < text.size() && ContinuesCharacter(text[begin])) ++begin;
  return text.substr(begin);
}

// 1048576 as "1,048,576".
std::string WithCommas(int64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

std::string LimitsTable() {
  std::string table = "| what | at most | more is | because |\n|---|---|---|---|\n";
  for (const Limit* limit : kLimits) {
    absl::StrAppend(&table, "| ", limit->what, " | ", WithCommas(limit->most),
                    limit->unit.empty() ? "" : " ", limit->unit, " | ", limit->beyond, " | ",
                    limit->why, " |\n");
  }
  return table;
}

std::string Shortened(absl::string_view text, const Limit& limit) {
  const auto most = static_cast<size_t>(limit.most);
  if (text.size() <= most) return std::string(text);
  constexpr size_t kNote = 50;  // room for the words between
  const size_t half = (most - kNote) / 2;
  const absl::string_view head = Head(text, half);
  const absl::string_view tail = Tail(text, half);
  return absl::StrCat(head, " ... ", text.size() - head.size() - tail.size(),
                      " bytes left out ... ", tail);
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", CutAfter(text, kQuotedBytes), "'");
}

}  // namespace hpo
