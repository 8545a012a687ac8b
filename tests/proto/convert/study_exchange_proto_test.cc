#include "proto/convert/study_exchange_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hpo {
namespace {

const std::map<std::string, Domain> kRanges = {
    {"lr", FloatDomain{.low = 1e-5, .high = 1e-3, .log = true}},
    {"rows", IntDomain{.low = 1, .high = 8}}};

template <typename Wire, typename T>
T RoundTrip(const T& value) {
  return FromMessage<T>(ToMessage<Wire>(value)).value();
}

TEST(StudyExchangeProto, AnUpdateSaysWhatChangesAndNothingElse) {
  const StudyUpdate cases[] = {
      {},
      {.trials = 0, .failures_in_a_row = 0, .failed_share = 1.0, .target = 0.0},
      {.add_trials = 5, .wall_clock = absl::Hours(2), .remove_target = true},
      {.target = 0.9,
       .added_choices = {{"model", {std::string("a"), std::string("b")}}, {"rows", {int64_t{4}}}}}};
  for (const StudyUpdate& update : cases) {
    const v1::UpdateStudyRequest proto = ToProto(update);
    SCOPED_TRACE(proto.ShortDebugString());
    EXPECT_EQ(FromProto(proto).value(), update);
  }
  EXPECT_EQ(ToProto(StudyUpdate{}).ByteSizeLong(), 0);
  EXPECT_EQ(ToProto(cases[1]).target_change_case(), v1::UpdateStudyRequest::kTarget);
  EXPECT_EQ(ToProto(cases[2]).target_change_case(), v1::UpdateStudyRequest::kRemoveTarget);

  v1::UpdateStudyRequest twice;
  for (const char* choice : {"a", "b"}) {
    v1::AddedChoices& added = *twice.add_added_choices();
    added.set_parameter("model");
    added.add_choices()->set_string_value(choice);
  }
  EXPECT_EQ(FromProto(twice)->added_choices.at("model").size(), 2);
  twice.mutable_added_choices(0)->add_choices();
  EXPECT_EQ(FromProto(twice).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StudyExchangeProto, AnEditAndItsResultRoundTrip) {
  const StudyEdit edit = RoundTrip<v1::EditStudyRequest>(
      StudyEdit{.yaml = "name: a", .origin = "a.yaml", .ranges = kRanges, .validate_only = true});
  EXPECT_EQ(edit.yaml, "name: a");
  EXPECT_EQ(edit.origin, "a.yaml");
  EXPECT_EQ(edit.ranges, kRanges);
  EXPECT_TRUE(edit.validate_only);
  const EditResult result = RoundTrip<v1::EditStudyResponse>(
      EditResult{.study = {.waiting_for = "a worker"},
                 .before = kRanges,
                 .after = {{"rows", IntDomain{.low = 2, .high = 4}}},
                 .num_outside = 3,
                 .cancelled = {TrialNumber{4}, TrialNumber{7}}});
  EXPECT_EQ(result.study.waiting_for, "a worker");
  EXPECT_EQ(result.before, kRanges);
  EXPECT_EQ(result.after.size(), 1);
  EXPECT_EQ(result.num_outside, 3);
  EXPECT_EQ(result.cancelled, (std::vector<TrialNumber>{TrialNumber{4}, TrialNumber{7}}));

  v1::EditStudyRequest without;
  without.add_ranges()->set_parameter("lr");
  EXPECT_EQ(FromMessage<StudyEdit>(without).status().message(),
            "domain: expected float_domain, int_domain or categorical_domain, got none of them");
}

TEST(StudyExchangeProto, AQueryHasEachStateAndReasonOnceAndInOrder) {
  TrialQuery query{.filter = {.states = {TrialState::kFailed, TrialState::kQueued},
                              .prune_reasons = {PruneReason::kPruner, PruneReason::kPruner},
                              .newest_first = true},
                   .page_size = 7,
                   .page_token = "next"};
  auto proto = ToMessage<v1::ListTrialsRequest>(query);
  EXPECT_EQ(proto.states_size(), 2);
  const TrialQuery read = FromProto(proto).value();
  EXPECT_EQ(read.filter.states,
            (std::vector<TrialState>{TrialState::kQueued, TrialState::kFailed}));
  EXPECT_EQ(read.filter.prune_reasons, std::vector<PruneReason>{PruneReason::kPruner});
  EXPECT_TRUE(read.filter.newest_first);
  EXPECT_EQ(read.page_size, 7);
  EXPECT_EQ(read.page_token, "next");
  proto.add_states(static_cast<v1::TrialState>(99));
  EXPECT_EQ(FromProto(proto).status().message(), "expected a trial state, got 99");
}

TEST(StudyExchangeProto, RetriesRoundTrip) {
  const RetryRequest request = RoundTrip<v1::RetryTrialsRequest>(
      RetryRequest{.numbers = {TrialNumber{3}, TrialNumber{1}}, .all_failed = true});
  EXPECT_EQ(request.numbers, (std::vector<TrialNumber>{TrialNumber{3}, TrialNumber{1}}));
  EXPECT_TRUE(request.all_failed);
  const Trial trial{.id = {.study = "plain", .number = TrialNumber{5}}, .params = {{"x", 0.5}}};
  const RetryResult result = RoundTrip<v1::RetryTrialsResponse>(
      RetryResult{.trials = {trial}, .skipped = {{TrialNumber{3}, "it waits"}}});
  ASSERT_EQ(result.trials.size(), 1);
  EXPECT_EQ(result.trials[0].id, trial.id);
  EXPECT_EQ(result.trials[0].params, trial.params);
  EXPECT_EQ(result.skipped, (std::vector<SkippedTrial>{{TrialNumber{3}, "it waits"}}));
}

TEST(StudyExchangeProto, AMemoryQueryAndItsAnswerRoundTrip) {
  const MemoryQuery query = RoundTrip<v1::EstimateMemoryRequest>(
      MemoryQuery{.params = {{"rows", int64_t{4}}}, .worker = "a", .limit = GiB(3)});
  EXPECT_EQ(query.params, (ParamMap{{"rows", int64_t{4}}}));
  EXPECT_EQ(query.worker, "a");
  EXPECT_EQ(query.limit, GiB(3));
  v1::EstimateMemoryRequest empty;
  (*empty.mutable_params())["train.lr"];
  EXPECT_THAT(std::string(FromMessage<MemoryQuery>(empty).status().message()),
              testing::StartsWith("parameter train.lr: expected bool_value"));
  const memory::MemoryEstimate estimate{.weights = MiB(1),
                                        .gradients = MiB(2),
                                        .optimizer = MiB(3),
                                        .activations = MiB(4),
                                        .head = MiB(5),
                                        .workspaces = MiB(6),
                                        .base = MiB(7),
                                        .live_peak = MiB(8),
                                        .expected_live_peak = MiB(13),
                                        .expected_reserved_peak = MiB(11),
                                        .reserved_peak = MiB(9),
                                        .needed_limit = MiB(10),
                                        .peak_phase = "backward"};
  const MemoryPlan plan{.effective_batch = 8, .micro_batch = 4};
  const memory::MemoryAnswer answer = RoundTrip<v1::EstimateMemoryResponse>(memory::MemoryAnswer{
      .estimate = estimate, .plan = plan, .fits = true, .usable = GiB(2), .explanation = "fits"});
  EXPECT_EQ(answer.estimate, estimate);
  EXPECT_EQ(answer.plan, plan);
  EXPECT_TRUE(answer.fits);
  EXPECT_EQ(answer.usable, GiB(2));
  EXPECT_EQ(answer.explanation, "fits");
}

TEST(StudyExchangeProto, EventsOfAWatchRoundTrip) {
  const Trial trial{.id = {.study = "plain", .number = TrialNumber{5}}};
  const WatchEvent change = TrialEvent{.sequence = 9, .kind = "finished", .trial = trial};
  const WatchEvent read = FromProto(ToProto(change)).value();
  EXPECT_EQ(std::get<TrialEvent>(read).sequence, 9);
  EXPECT_EQ(std::get<TrialEvent>(read).kind, "finished");
  EXPECT_EQ(std::get<TrialEvent>(read).trial.id, trial.id);
  const WatchEvent snapshot = StudyStatus{.sequence = 4};
  EXPECT_EQ(std::get<StudyStatus>(FromProto(ToProto(snapshot)).value()).sequence, 4);
  // A bookmark before the first change is on the wire too.
  EXPECT_TRUE(ToProto(Bookmark{}).has_bookmark());
  EXPECT_EQ(std::get<Bookmark>(FromProto(ToProto(Bookmark{7})).value()).value, 7);
  EXPECT_EQ(std::get<Bookmark>(FromProto(v1::WatchStudyResponse()).value()).value, 0);
}

TEST(StudyExchangeProto, AttributeChangesRoundTrip) {
  const AttributeChange change{
      .note = "", .add_tags = {"a", "b"}, .remove_tags = {"c"}, .set = {{"rows", "12"}}};
  EXPECT_EQ(RoundTrip<v1::AnnotateRequest>(change), change);
  EXPECT_FALSE(ToMessage<v1::AnnotateRequest>(AttributeChange{}).has_note());
}

TEST(StudyExchangeProto, OtherAnswersRoundTrip) {
  const EnqueueRequest enqueue =
      RoundTrip<v1::EnqueueTrialRequest>(EnqueueRequest{.params = {{"x", 0.5}},
                                                        .demonstration = true,
                                                        .skip_admission = true,
                                                        .forced_micro_batch = 4});
  EXPECT_EQ(enqueue.params, (ParamMap{{"x", 0.5}}));
  EXPECT_TRUE(enqueue.demonstration);
  EXPECT_TRUE(enqueue.skip_admission);
  EXPECT_EQ(enqueue.forced_micro_batch, 4);
  const CreateResult created =
      RoundTrip<v1::CreateStudyResponse>(CreateResult{.study = {.sequence = 3}, .created = true});
  EXPECT_EQ(created.study.sequence, 3);
  EXPECT_TRUE(created.created);
  const ArchiveEnd end =
      RoundTrip<v1::ArchiveEnd>(ArchiveEnd{.size = Bytes{70}, .sha256 = "ab", .num_trials = 3});
  EXPECT_EQ(end.size, Bytes{70});
  EXPECT_EQ(end.sha256, "ab");
  EXPECT_EQ(end.num_trials, 3);
  const TrialPage page = RoundTrip<v1::ListTrialsResponse>(
      TrialPage{.trials = {Trial()}, .next_token = "next", .total = 12});
  EXPECT_EQ(page.trials.size(), 1);
  EXPECT_EQ(page.next_token, "next");
  EXPECT_EQ(page.total, 12);
  const ImportResult imported = RoundTrip<v1::ImportTrialsResponse>(
      ImportResult{.study = "plain", .num_added = 2, .num_known = 1});
  EXPECT_EQ(imported.study, "plain");
  EXPECT_EQ(imported.num_added, 2);
  EXPECT_EQ(imported.num_known, 1);
}

TEST(StudyExchangeProto, AQueryOfATableComesAsItWasAsked) {
  v1::QueryTrialsRequest proto;
  proto.add_where("value>0.5");
  proto.add_where("model=a");
  proto.set_sort("-value");
  proto.add_columns("number");
  proto.set_page_size(50);
  proto.set_page_token("token");
  proto.set_from_end(true);
  const TableQuery query = FromProto(proto);
  EXPECT_THAT(query.where, testing::ElementsAre("value>0.5", "model=a"));
  EXPECT_EQ(query.sort, "-value");
  EXPECT_THAT(query.columns, testing::ElementsAre("number"));
  EXPECT_EQ(query.page_size, 50);
  EXPECT_EQ(query.page_token, "token");
  EXPECT_TRUE(query.from_end);
  EXPECT_FALSE(FromProto(v1::QueryTrialsRequest()).from_end);
}

TEST(StudyExchangeProto, APageOfATableKeepsNumbersTextsAndWhatIsMissing) {
  const v1::QueryTrialsResponse proto = ToProto(TablePage{
      .total = 9,
      .matching = 5,
      .position = 2,
      .sequence = 77,
      .numbers = {4, 8},
      .columns = {{.name = "value", .numbers = {0.5, 0.0}, .missing = {1}},
                  {.name = "model", .is_text = true, .texts = {"a", "b"}, .indexes = {1, 0}}},
      .all_columns =
          {{.name = "value", .kind = ColumnInfo::Kind::kField, .numeric = true},
           {.name = "lr", .kind = ColumnInfo::Kind::kParameter, .numeric = true, .log = true},
           {.name = "f1", .kind = ColumnInfo::Kind::kMetric}},
      .next_page_token = "next",
      .previous_page_token = "previous"});
  EXPECT_EQ(proto.total(), 9);
  EXPECT_EQ(proto.matching(), 5);
  EXPECT_EQ(proto.position(), 2);
  EXPECT_EQ(proto.sequence(), 77);
  EXPECT_THAT(proto.numbers(), testing::ElementsAre(4, 8));
  ASSERT_EQ(proto.columns_size(), 2);
  EXPECT_EQ(proto.columns(0).name(), "value");
  EXPECT_THAT(proto.columns(0).numbers(), testing::ElementsAre(0.5, 0.0));
  EXPECT_THAT(proto.columns(0).missing(), testing::ElementsAre(1));
  EXPECT_THAT(proto.columns(1).texts(), testing::ElementsAre("a", "b"));
  EXPECT_THAT(proto.columns(1).indexes(), testing::ElementsAre(1, 0));
  ASSERT_EQ(proto.all_columns_size(), 3);
  EXPECT_EQ(proto.all_columns(0).kind(), v1::COLUMN_KIND_FIELD);
  EXPECT_EQ(proto.all_columns(1).kind(), v1::COLUMN_KIND_PARAMETER);
  EXPECT_TRUE(proto.all_columns(1).log());
  EXPECT_FALSE(proto.all_columns(0).log());
  EXPECT_EQ(proto.all_columns(2).kind(), v1::COLUMN_KIND_METRIC);
  EXPECT_FALSE(proto.all_columns(2).numeric());
  EXPECT_EQ(proto.next_page_token(), "next");
  EXPECT_EQ(proto.previous_page_token(), "previous");
}

TEST(StudyExchangeProto, AHistoryKeepsItsSeriesAndTheStepsOfTheBest) {
  const v1::GetHistoryResponse proto =
      ToProto(HistorySample{.sequence = 5,
                            .total = 100,
                            .numbers = {0, 3, 9},
                            .states = "CPF",
                            .series = {{.metric = "f1", .values = {0.5, std::nan(""), 0.75}}},
                            .best_numbers = {0, 9},
                            .best_values = {0.5, 0.75}});
  EXPECT_EQ(proto.sequence(), 5);
  EXPECT_EQ(proto.total(), 100);
  EXPECT_THAT(proto.numbers(), testing::ElementsAre(0, 3, 9));
  EXPECT_EQ(proto.states(), "CPF");
  ASSERT_EQ(proto.series_size(), 1);
  EXPECT_EQ(proto.series(0).metric(), "f1");
  EXPECT_EQ(proto.series(0).values(0), 0.5);
  EXPECT_TRUE(std::isnan(proto.series(0).values(1)));
  EXPECT_EQ(proto.series(0).values(2), 0.75);
  EXPECT_THAT(proto.best_numbers(), testing::ElementsAre(0, 9));
  EXPECT_THAT(proto.best_values(), testing::ElementsAre(0.5, 0.75));
}

}  // namespace
}  // namespace hpo
