// Tested by tests/server/table/trial_table_test.cc.
#include "server/table/table_page.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/files/sha256.h"
#include "server/table/trial_condition.h"

namespace hpo::server {
namespace {

constexpr int kDefaultPage = 100;
constexpr size_t kMarkLetters = 16;

// Which rows of a column a condition holds for.
class RowTest {
 public:
  RowTest(const Column* column, TrialCondition condition)
      : column_(column), condition_(std::move(condition)) {
    if (column_ == nullptr) return;
    for (const ParamValue& other : column_->others()) {
      holds_for_other_.push_back(Holds(other, condition_));
    }
  }
  bool operator()(size_t row) const {
    if (column_ == nullptr) return false;
    const int32_t code = column_->CodeAt(row);
    if (code >= 0) return holds_for_other_[static_cast<size_t>(code)];
    return code == Column::kNumber && HoldsFor(column_->NumberAt(row));
  }

 private:
  bool HoldsFor(double number) const {
    // A choice among whole numbers: its value, whatever its type.
    const auto chosen = condition_.choice ? AsNumber(*condition_.choice) : std::nullopt;
    if (chosen) return (number == *chosen) == (condition_.comparison == "=");
    return Holds(ParamValue(number), condition_);
  }

  const Column* column_;
  TrialCondition condition_;
  std::vector<bool> holds_for_other_;
};

// The order of rows: by a column, those without a value last, equal ones by number.
class RowOrder {
 public:
  RowOrder(const Column* column, bool largest_first)
      : column_(column), largest_first_(largest_first) {
    if (column_ == nullptr) return;
    // Numbers come before texts, and null is no value.
    std::vector<std::pair<std::string, size_t>> texts;
    ranks_.resize(column_->others().size(), kLast);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const ParamValue& other = column_->others()[i];
      if (!std::holds_alternative<Null>(other)) texts.emplace_back(FormatParam(other), i);
    }
    std::sort(texts.begin(), texts.end());
    for (auto& [text, place] : texts) {
      // true and "true" are written alike, and have one place.
      if (texts_.empty() || texts_.back() != text) texts_.push_back(std::move(text));
      ranks_[place] = RankAt(texts_.size() - 1);
    }
  }

  struct Key {
    int rank = kLast;  // 0: a number, kLast: no value, else a text's place
    double number = 0.0;
    int64_t row = 0;
  };
  Key KeyOf(size_t row) const {
    Key key{.row = static_cast<int64_t>(row)};
    const int32_t code = column_ == nullptr ? Column::kMissing : column_->CodeAt(row);
    if (code == Column::kNumber) {
      key.rank = 0;
      key.number = column_->NumberAt(row);
    } else if (code >= 0) {
      key.rank = ranks_[static_cast<size_t>(code)];
    }
    return key;
  }
  // What a key is made of, for a token: kNumberMark and the number, kTextMark and the text, or
  // empty.
  std::string ValueOf(const Key& key) const {
    if (key.rank == kLast) return "";
    if (key.rank != 0) {
      return absl::StrCat(kTextMark, texts_[static_cast<size_t>(key.rank / 2 - 1)]);
    }
    return absl::StrCat(kNumberMark, absl::Hex(absl::bit_cast<uint64_t>(key.number)));
  }
  // As ValueOf gave it, also where no row has this value any more. nullopt: it gave no such one.
  std::optional<Key> KeyOf(int64_t row, absl::string_view value) const {
    Key key{.row = row};
    uint64_t bits = 0;
    if (value.empty()) return key;
    if (absl::ConsumePrefix(&value, kTextMark)) {
      const auto found = std::lower_bound(texts_.begin(), texts_.end(), value);
      const bool is_there = found != texts_.end() && *found == value;
      key.rank = RankAt(static_cast<size_t>(found - texts_.begin())) - (is_there ? 0 : 1);
      return key;
    }
    if (!absl::ConsumePrefix(&value, kNumberMark) || !absl::SimpleHexAtoi(value, &bits)) {
      return std::nullopt;
    }
    key.rank = 0;
    key.number = absl::bit_cast<double>(bits);
    return key;
  }
  bool Less(const Key& a, const Key& b) const {
    if ((a.rank == kLast) != (b.rank == kLast)) return b.rank == kLast;
    if (a.rank != b.rank) return (a.rank < b.rank) != largest_first_;
    if (a.number != b.number) return (a.number < b.number) != largest_first_;
    return a.row < b.row;
  }

 private:
  static constexpr int kLast = 1 << 30;
  static constexpr char kNumberMark[] = "n";
  static constexpr char kTextMark[] = "t";

  // Of a text that is the `place`-th one. Odd ranks are of texts that no row has.
  static int RankAt(size_t place) { return 2 * static_cast<int>(place + 1); }

  const Column* column_;
  const bool largest_first_;
  std::vector<std::string> texts_;  // in order
  std::vector<int> ranks_;
};

struct Sorting {
  std::string name;
  bool largest_first = false;
};

Sorting SortingOf(const TableQuery& query) {
  absl::string_view name = query.sort;
  const bool largest_first = absl::ConsumePrefix(&name, "-");
  return {.name = name.empty() ? "number" : std::string(name), .largest_first = largest_first};
}

// Where a page begins or ends: the key of a row as it was, and whether the page is before it.
struct Place {
  RowOrder::Key key;
  bool is_before = false;
};

std::string MarkOf(const StudySpec& study, const TableQuery& query) {
  return Sha256Hex(
             absl::StrCat(study.name, "\n", query.sort, "\n", absl::StrJoin(query.where, "\n")))
      .substr(0, kMarkLetters);
}

std::string TokenOf(const Place& place, const RowOrder& order, const std::string& mark) {
  return absl::WebSafeBase64Escape(absl::StrCat(place.is_before ? "b:" : "a:", mark, ":",
                                                place.key.row, ":", order.ValueOf(place.key)));
}

std::optional<Place> PlaceIn(const std::string& token, const RowOrder& order,
                             const std::string& mark) {
  std::string text;
  if (!absl::WebSafeBase64Unescape(token, &text)) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 3));
  int64_t row = 0;
  const bool is_ours =
      parts.size() == 4 && parts[1] == mark && absl::SimpleAtoi(parts[2], &row) && row >= 0;
  if (!is_ours) return std::nullopt;
  const std::optional<RowOrder::Key> key = order.KeyOf(row, parts[3]);
  if (!key) return std::nullopt;
  return Place{.key = *key, .is_before = parts[0] == "b"};
}

absl::StatusOr<std::optional<Place>> ReadToken(const TableQuery& query, const RowOrder& order,
                                               const std::string& mark) {
  if (query.page_token.empty()) return std::nullopt;
  std::optional<Place> place = PlaceIn(query.page_token, order, mark);
  if (place) return place;
  return absl::InvalidArgumentError(
      absl::StrCat("page_token: expected one that QueryTrials gave for this study, where and sort, "
                   "got '",
                   query.page_token.substr(0, 100), "'"));
}

std::string TextOf(const ParamValue& value, const std::string& column) {
  return column == "state" ? absl::AsciiStrToUpper(FormatParam(value)) : FormatParam(value);
}

TableColumn FillColumn(const Column* column, const std::string& name,
                       const std::vector<int64_t>& rows) {
  TableColumn filled{.name = name};
  // Texts, also of numbers, where some row has another value than a number.
  filled.is_text = column != nullptr && !column->others().empty();
  std::map<std::string, int32_t> known;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::optional<ParamValue> value =
        column == nullptr ? std::nullopt : column->At(static_cast<size_t>(rows[i]));
    if (!value) filled.missing.push_back(static_cast<int32_t>(i));
    if (!filled.is_text) {
      filled.numbers.push_back(value ? *AsNumber(*value) : 0.0);
      continue;
    }
    if (!value) {
      filled.indexes.push_back(0);
      continue;
    }
    const std::string text = TextOf(*value, name);
    const auto [found, is_new] = known.try_emplace(text, static_cast<int32_t>(known.size()));
    if (is_new) filled.texts.push_back(text);
    filled.indexes.push_back(found->second);
  }
  return filled;
}

std::vector<ColumnInfo> DescribeAll(const TrialColumns& columns, const StudySpec& study) {
  std::vector<ColumnInfo> all;
  const auto add = [&](const std::string& name, const std::string& key, ColumnInfo::Kind kind) {
    const Column* const column = columns.Find(key);
    all.push_back({.name = columns.Find(name) == column ? name : key,
                   .kind = kind,
                   .numeric = column == nullptr || column->others().empty()});
  };
  for (const char* const field : kTableFields) add(field, field, ColumnInfo::Kind::kField);
  for (const std::string& name : columns.Parameters()) {
    add(name, "param:" + name, ColumnInfo::Kind::kParameter);
    const Parameter* const parameter = study.space.Find(name);
    const auto* const real =
        parameter == nullptr ? nullptr : std::get_if<FloatDomain>(&parameter->domain);
    const auto* const whole =
        parameter == nullptr ? nullptr : std::get_if<IntDomain>(&parameter->domain);
    all.back().log = (real != nullptr && real->log) || (whole != nullptr && whole->log);
  }
  for (const std::string& name : columns.Metrics()) {
    add(name, "metric:" + name, ColumnInfo::Kind::kMetric);
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> ColumnsOf(const TrialColumns& columns,
                                                   const StudySpec& study,
                                                   const TableQuery& query) {
  std::vector<std::string> names = query.columns;
  if (names.empty()) {
    names = {"number", "state", "why", "value", "time"};
    for (const Parameter& parameter : study.space.parameters) {
      names.push_back("param:" + parameter.name);
    }
    return names;
  }
  for (const std::string& name : names) {
    if (columns.Find(name) != nullptr) continue;
    HPO_RETURN_IF_ERROR(CheckFieldName("columns", name, study, columns));
  }
  return names;
}

// The rows that the conditions hold for.
absl::StatusOr<std::vector<RowOrder::Key>> MatchingRows(const TrialColumns& columns,
                                                        const StudySpec& study,
                                                        const TableQuery& query,
                                                        const RowOrder& order) {
  std::vector<RowTest> tests;
  for (const std::string& word : query.where) {
    HPO_ASSIGN_OR_RETURN(TrialCondition condition, ReadCondition(word, study, columns));
    const Column* const column = columns.Find(condition.name);
    tests.emplace_back(column, std::move(condition));
  }
  std::vector<RowOrder::Key> rows;
  for (size_t row = 0; row < columns.num_rows(); ++row) {
    const bool matches =
        std::all_of(tests.begin(), tests.end(), [row](const RowTest& test) { return test(row); });
    if (matches) rows.push_back(order.KeyOf(row));
  }
  return rows;
}

// The part of `rows` that is the page, in order; `position` becomes the number of rows before it.
std::vector<RowOrder::Key> CutPage(std::vector<RowOrder::Key> rows, const RowOrder& order,
                                   const std::optional<Place>& place, bool from_end, size_t size,
                                   int64_t& position) {
  using Key = RowOrder::Key;
  const auto less = [&order](const Key& a, const Key& b) { return order.Less(a, b); };
  const auto greater = [&order](const Key& a, const Key& b) { return order.Less(b, a); };
  auto begin = rows.begin();
  auto end = rows.end();
  bool backwards = from_end;
  if (place) {
    const Key& at = place->key;
    backwards = place->is_before;
    const auto middle = std::partition(begin, end, [&](const Key& key) {
      return backwards ? order.Less(key, at) : !order.Less(at, key);
    });
    (backwards ? end : begin) = middle;
  }
  const auto count = std::min(size, static_cast<size_t>(end - begin));
  const auto cut = begin + static_cast<std::ptrdiff_t>(count);
  if (backwards) {
    std::partial_sort(begin, cut, end, greater);
    position = (end - begin) - static_cast<int64_t>(count);
    std::reverse(begin, cut);
  } else {
    std::partial_sort(begin, cut, end, less);
    position = begin - rows.begin();
  }
  return {begin, cut};
}

}  // namespace

absl::StatusOr<TablePage> MakeTablePage(const TrialColumns& columns, const StudySpec& study,
                                        const TableQuery& query) {
  if (query.page_size < 0 || query.page_size > kTableLimit.most) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_size: expected 0 to ", kTableLimit.most, ", got ", query.page_size));
  }
  const std::string mark = MarkOf(study, query);
  HPO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ColumnsOf(columns, study, query));
  const Sorting sorting = SortingOf(query);
  if (columns.Find(sorting.name) == nullptr) {
    HPO_RETURN_IF_ERROR(CheckFieldName("sort", sorting.name, study, columns));
  }
  const RowOrder order(columns.Find(sorting.name), sorting.largest_first);
  HPO_ASSIGN_OR_RETURN(const std::optional<Place> place, ReadToken(query, order, mark));
  HPO_ASSIGN_OR_RETURN(std::vector<RowOrder::Key> rows, MatchingRows(columns, study, query, order));
  TablePage page{.total = static_cast<int64_t>(columns.num_rows()),
                 .matching = static_cast<int64_t>(rows.size())};
  const size_t size = static_cast<size_t>(query.page_size == 0 ? kDefaultPage : query.page_size);
  const std::vector<RowOrder::Key> keys =
      CutPage(std::move(rows), order, place, query.from_end, size, page.position);
  for (const RowOrder::Key& key : keys) page.numbers.push_back(key.row);
  for (const std::string& name : names) {
    page.columns.push_back(FillColumn(columns.Find(name), name, page.numbers));
  }
  const int64_t after = page.position + static_cast<int64_t>(keys.size());
  if (!keys.empty() && after < page.matching) {
    page.next_page_token = TokenOf({.key = keys.back(), .is_before = false}, order, mark);
  }
  if (!keys.empty() && page.position > 0) {
    page.previous_page_token = TokenOf({.key = keys.front(), .is_before = true}, order, mark);
  }
  if (query.page_token.empty()) page.all_columns = DescribeAll(columns, study);
  return page;
}

}  // namespace hpo::server
