#include "server/table/trial_table.h"

#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/table/history_sample.h"
#include "server/table/table_page.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

StudySpec Study() {
  StudySpec study;
  study.name = "s";
  study.objectives = {{.metric = "f1", .direction = Direction::kMaximize}};
  study.space.parameters = {
      {.name = "lr", .domain = FloatDomain{.low = 0.0, .high = 1.0, .log = true}},
      {.name = "model", .domain = CategoricalDomain{{std::string("b"), std::string("a"), Null()}}}};
  return study;
}

TableRow Row(int64_t number, TrialState state, std::optional<double> f1, ParamValue model) {
  TableRow row;
  row.trial.id = {.study = "s", .number = TrialNumber{number}};
  row.trial.state = state;
  row.trial.params = {{"lr", 0.5 / static_cast<double>(number + 1)}, {"model", std::move(model)}};
  row.trial.value = f1;
  if (state == TrialState::kCompleted) row.trial.outcome = Completed{.metrics = {{"f1", *f1}}};
  if (state == TrialState::kFailed) row.trial.outcome = Failed{.message = "x"};
  row.num_attempts = 1;
  return row;
}

TrialColumns Some() {
  TrialColumns columns;
  columns.Set(Row(0, TrialState::kCompleted, 0.2, std::string("a")));
  columns.Set(Row(1, TrialState::kFailed, std::nullopt, std::string("b")));
  columns.Set(Row(2, TrialState::kCompleted, 0.9, Null()));
  columns.Set(Row(3, TrialState::kCompleted, 0.2, std::string("b")));
  columns.Set(Row(4, TrialState::kRunning, std::nullopt, std::string("a")));
  return columns;
}

std::vector<int64_t> NumbersOf(const TrialColumns& columns, const TableQuery& query) {
  const absl::StatusOr<TablePage> page = MakeTablePage(columns, Study(), query);
  EXPECT_TRUE(page.ok()) << page.status();
  return page.ok() ? page->numbers : std::vector<int64_t>{-1};
}

TEST(TablePage, SortsByAnyColumnAndWhatIsMissingComesLast) {
  const TrialColumns columns = Some();
  EXPECT_THAT(NumbersOf(columns, {}), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(NumbersOf(columns, {.sort = "-number"}), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(NumbersOf(columns, {.sort = "value"}), ElementsAre(0, 3, 2, 1, 4));
  EXPECT_THAT(NumbersOf(columns, {.sort = "-value"}), ElementsAre(2, 0, 3, 1, 4));
  EXPECT_THAT(NumbersOf(columns, {.sort = "model"}), ElementsAre(0, 4, 1, 3, 2));
  EXPECT_THAT(NumbersOf(columns, {.sort = "-f1", .from_end = true}), ElementsAre(2, 0, 3, 1, 4));
}

TEST(TablePage, TakesTheConditionsOfTheCommandLine) {
  const TrialColumns columns = Some();
  EXPECT_THAT(NumbersOf(columns, {.where = {"state=completed", "value>0.5"}}), ElementsAre(2));
  EXPECT_THAT(NumbersOf(columns, {.where = {"model=null"}}), ElementsAre(2));
  EXPECT_THAT(NumbersOf(columns, {.where = {"model!=a"}}), ElementsAre(1, 2, 3));
  EXPECT_THAT(NumbersOf(columns, {.where = {"lr<0.2", "number!=4"}}), ElementsAre(2, 3));
  for (const auto& [where, said] :
       {std::pair("lr", "where: expected NAME=VALUE"),
        std::pair("lr>x", "where: lr: expected a number"),
        std::pair("model=c", "where: model: expected one of b, a, null"),
        std::pair("loss=1", "got 'loss'"), std::pair("state<running", "states have no order")}) {
    const absl::Status refused = MakeTablePage(columns, Study(), {.where = {where}}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(said));
  }
}

TEST(TablePage, AReasonIsAWordInAnyCaseAndKnownBeforeATrialHasOne) {
  const TrialColumns columns = Some();
  EXPECT_THAT(NumbersOf(columns, {.where = {"why=INTERNAL"}}), ElementsAre(1));
  EXPECT_THAT(NumbersOf(columns, {.where = {"why=internal", "state=FAILED"}}), ElementsAre(1));
  EXPECT_THAT(NumbersOf(columns, {.where = {"why!=internal"}}), IsEmpty());
  EXPECT_THAT(NumbersOf(columns, {.where = {"why=pruner"}}), IsEmpty());
  EXPECT_THAT(NumbersOf(columns, {.where = {"state=Completed"}}), ElementsAre(0, 2, 3));
  TrialColumns none;
  none.Set(Row(0, TrialState::kRunning, std::nullopt, std::string("a")));
  for (const std::string where :
       {"why=out_of_memory", "why!=DIVERGED", "worker=w1", "peak_bytes>1000", "f1>0.5"}) {
    EXPECT_THAT(NumbersOf(none, {.where = {where}}), IsEmpty()) << where;
  }
  for (const auto& [where, said] :
       {std::pair("why=crash", "why: expected one of OUT_OF_MEMORY, PREDICTED_OUT_OF_MEMORY"),
        std::pair("why<PRUNER", "its values have no order"),
        std::pair("worker>w", "its values are texts")}) {
    const absl::Status refused = MakeTablePage(none, Study(), {.where = {where}}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(said));
  }
}

TEST(TablePage, AnUnknownNameIsAnsweredByAllThatThereAre) {
  for (const TableQuery& query : {TableQuery{.where = {"nothing=1"}}, TableQuery{.sort = "nothing"},
                                  TableQuery{.columns = {"nothing"}}}) {
    const absl::Status refused = MakeTablePage(Some(), Study(), query).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("got 'nothing'"));
    for (const char* const field : kTableFields) {
      EXPECT_THAT(std::string(refused.message()), HasSubstr(field));
    }
  }
}

TEST(TablePage, PagesGoOnFromARowWhateverEndsMeanwhile) {
  TrialColumns columns;
  for (int64_t i = 0; i < 1000; ++i) {
    columns.Set(
        Row(i, TrialState::kCompleted, static_cast<double>(i * 7919 % 97), std::string("a")));
  }
  TableQuery query{.sort = "-value", .page_size = 90};
  std::vector<int64_t> forth;
  std::vector<std::string> previous;
  for (;;) {
    const TablePage page = MakeTablePage(columns, Study(), query).value();
    EXPECT_EQ(page.position, static_cast<int64_t>(forth.size()));
    EXPECT_EQ(page.matching, 1000);
    forth.insert(forth.end(), page.numbers.begin(), page.numbers.end());
    previous.push_back(page.previous_page_token);
    if (page.next_page_token.empty()) break;
    query.page_token = page.next_page_token;
  }
  EXPECT_EQ(forth, NumbersOf(columns, {.sort = "-value", .page_size = 1000}));
  EXPECT_THAT(previous.front(), IsEmpty());
  query.page_token = previous.back();
  EXPECT_EQ(NumbersOf(columns, query),
            std::vector<int64_t>(forth.begin() + 900, forth.begin() + 990));
  const TablePage last =
      MakeTablePage(columns, Study(), {.sort = "-value", .page_size = 90, .from_end = true})
          .value();
  EXPECT_EQ(last.numbers, std::vector<int64_t>(forth.end() - 90, forth.end()));
  query.sort = "value";
  EXPECT_THAT(std::string(MakeTablePage(columns, Study(), query).status().message()),
              HasSubstr("page_token"));
  query.page_token = "garbage";
  EXPECT_FALSE(MakeTablePage(columns, Study(), query).ok());
  EXPECT_FALSE(MakeTablePage(columns, Study(), {.page_size = 20001}).ok());
}

TEST(TablePage, TheNextPageBeginsWhereTheLastRowWasWhateverItsValueBecomes) {
  const auto completed = [](int64_t number, double f1, const std::string& model) {
    return Row(number, TrialState::kCompleted, f1, model);
  };
  for (const std::string sort : {"value", "model"}) {
    TrialColumns columns;
    for (int64_t i = 0; i < 6; ++i) {
      columns.Set(completed(i, static_cast<double>(i), std::string(1, static_cast<char>('b' + i))));
    }
    TableQuery query{.sort = sort, .page_size = 3};
    query.page_token = MakeTablePage(columns, Study(), query)->next_page_token;
    columns.Set(completed(2, 9.0, "z"));
    EXPECT_THAT(NumbersOf(columns, query), ElementsAre(3, 4, 5)) << sort;
    columns.Set(completed(2, -1.0, "a"));
    EXPECT_THAT(NumbersOf(columns, query), ElementsAre(3, 4, 5)) << sort;
  }
}

TEST(TablePage, PagesOfValuesThatAreWrittenAlikeHaveEachRowOnce) {
  TrialColumns columns;
  for (int64_t i = 0; i < 8; ++i) {
    columns.Set(Row(i, TrialState::kCompleted, 0.5,
                    i % 2 == 0 ? ParamValue(true) : ParamValue(std::string("true"))));
  }
  for (const std::string sort : {"model", "-model"}) {
    TableQuery query{.sort = sort, .page_size = 3};
    std::vector<int64_t> seen;
    for (int page = 0; page < 3; ++page) {
      const TablePage next = MakeTablePage(columns, Study(), query).value();
      seen.insert(seen.end(), next.numbers.begin(), next.numbers.end());
      query.page_token = next.next_page_token;
    }
    EXPECT_THAT(query.page_token, IsEmpty()) << sort;
    EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)) << sort;
  }
}

TEST(TablePage, ColumnsAreNumbersOrTextsAndSayWhatIsMissing) {
  const TrialColumns columns = Some();
  const TablePage page =
      MakeTablePage(columns, Study(), {.columns = {"value", "state", "model", "metric:f1", "why"}})
          .value();
  EXPECT_THAT(page.columns[0].numbers, ElementsAre(0.2, 0.0, 0.9, 0.2, 0.0));
  EXPECT_THAT(page.columns[0].missing, ElementsAre(1, 4));
  EXPECT_THAT(page.columns[1].texts, ElementsAre("COMPLETED", "FAILED", "RUNNING"));
  EXPECT_THAT(page.columns[1].indexes, ElementsAre(0, 1, 0, 0, 2));
  EXPECT_THAT(page.columns[2].texts, ElementsAre("a", "b", "null"));
  EXPECT_THAT(page.columns[4].missing, ElementsAre(0, 2, 3, 4));
  EXPECT_FALSE(MakeTablePage(columns, Study(), {.columns = {"nothing"}}).ok());
  EXPECT_THAT(page.all_columns, SizeIs(std::size(kTableFields) + 2 + 1));
}

TEST(TablePage, AMessageSaysInALineHowATrialEndedThatHasNoResult) {
  TrialColumns columns = Some();
  TableRow failed = Row(5, TrialState::kFailed, std::nullopt, std::string("a"));
  failed.trial.outcome =
      Failed{.message = "Traceback (most recent call last):\n  File\nKeyError: 'f1'"};
  columns.Set(failed);
  TableRow pruned = Row(6, TrialState::kPruned, std::nullopt, std::string("a"));
  pruned.trial.outcome = OutOfMemory{
      .predicted = true, .limit = Bytes{int64_t{1} << 30}, .needed = Bytes{int64_t{2} << 30}};
  columns.Set(pruned);
  TableRow cancelled = Row(7, TrialState::kCancelled, std::nullopt, std::string("a"));
  cancelled.trial.outcome = Cancelled{.reason = std::string(5000, 'y')};
  columns.Set(cancelled);
  const TablePage page =
      MakeTablePage(columns, Study(), {.sort = "message", .columns = {"message"}}).value();
  EXPECT_THAT(page.numbers, ElementsAre(5, 6, 1, 7, 0, 2, 3, 4));
  const TableColumn& messages = page.columns.front();
  ASSERT_TRUE(messages.is_text);
  EXPECT_EQ(messages.texts[0], "KeyError: 'f1'");
  EXPECT_EQ(messages.texts[1], "not started: needs 2.00 GiB, allowed 1.00 GiB");
  EXPECT_EQ(messages.texts[2], "x");
  EXPECT_LE(messages.texts[3].size(), 300U);
  EXPECT_THAT(messages.texts[3], HasSubstr("bytes left out"));
  EXPECT_THAT(messages.missing, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(NumbersOf(columns, {.where = {"message=x"}}), ElementsAre(1));
}

TEST(TablePage, MemoryIsThatOfTheLastAttemptThatMeasured) {
  TrialColumns columns = Some();
  TableRow measured = Row(5, TrialState::kCompleted, 0.5, std::string("a"));
  measured.memory = {.live_peak = Bytes{10}, .reserved_peak = Bytes{20}, .limit = Bytes{40}};
  columns.Set(measured);
  const TablePage page = MakeTablePage(columns, Study(),
                                       {.where = {"number>3"},
                                        .columns = {"live_bytes", "reserved_bytes", "device_bytes",
                                                    "limit_bytes", "peak_bytes"}})
                             .value();
  EXPECT_THAT(page.columns[0].numbers, ElementsAre(0, 10));
  EXPECT_THAT(page.columns[1].numbers, ElementsAre(0, 20));
  EXPECT_THAT(page.columns[2].missing, ElementsAre(0, 1)) << "the device has told nothing";
  EXPECT_THAT(page.columns[3].numbers, ElementsAre(0, 40));
  EXPECT_THAT(page.columns[4].numbers, ElementsAre(0, 20)) << "reserved, as the device is silent";
  EXPECT_THAT(NumbersOf(columns, {.where = {"limit_bytes>=40"}}), ElementsAre(5));
}

TEST(HistorySample, KeepsTheStepsOfTheBestAndTheExtremes) {
  TrialColumns columns;
  for (int64_t i = 0; i < 20000; ++i) {
    const TrialState state = i % 10 == 0 ? TrialState::kFailed : TrialState::kCompleted;
    std::optional<double> value;
    if (state == TrialState::kCompleted) value = std::sin(static_cast<double>(i)) / 2;
    if (i == 12345) value = 3.0;
    if (i == 17771) value = -3.0;
    columns.Set(Row(i, state, value, std::string("a")));
  }
  const HistorySample sample = SampleHistory(columns, Study(), 300);
  EXPECT_EQ(sample.total, 20000);
  EXPECT_LE(sample.numbers.size(), 300U + sample.best_numbers.size());
  EXPECT_EQ(sample.states.size(), sample.numbers.size());
  EXPECT_EQ(sample.series.front().values.size(), sample.numbers.size());
  EXPECT_EQ(sample.best_numbers.back(), 12345);
  EXPECT_TRUE(std::is_sorted(sample.numbers.begin(), sample.numbers.end()));
  EXPECT_TRUE(std::binary_search(sample.numbers.begin(), sample.numbers.end(), 17771));
  EXPECT_TRUE(std::is_sorted(sample.best_values.begin(), sample.best_values.end()));
  EXPECT_THAT(sample.states, HasSubstr("F"));
  TrialColumns endless = Some();
  TableRow infinite = Row(5, TrialState::kCompleted, HUGE_VAL, std::string("a"));
  infinite.trial.params["value"] = 99.0;  // a parameter of that name is another thing
  endless.Set(infinite);
  EXPECT_THAT(SampleHistory(endless, Study(), 300).best_numbers, ElementsAre(0, 2));
  const HistorySample all = SampleHistory(Some(), Study(), 300);
  EXPECT_EQ(all.states, "CFCCR");
  EXPECT_THAT(all.best_numbers, ElementsAre(0, 2));
}

TEST(TrialTables, AStudyThatHasTheIdOfADeletedOneHasATableOfItsOwn) {
  TrialTables tables;
  const StudyRuntime::Identity deleted{1, absl::FromUnixSeconds(10)};
  const StudyRuntime::Identity created{1, absl::FromUnixSeconds(20)};
  const auto table = tables.Of(deleted);
  EXPECT_EQ(tables.Of(deleted), table);
  EXPECT_NE(tables.Of(created), table);
  tables.Keep([&](const auto& study) { return study == created; });
  EXPECT_NE(tables.Of(deleted), table);
}

}  // namespace
}  // namespace hpo::server
