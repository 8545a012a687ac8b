// Tested by tests/integration/page/test_page_export.py.
#include "cli/client/study_recorder.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "proto/convert/message_json.h"

namespace hpo::cli {
namespace {

constexpr int kHistoryPoints = 10'000;
constexpr int kCurves = 200;
constexpr int kAttempts = 10'000;
// Of a page of the table: its message stays below gRPC's 4 MiB also with many columns.
constexpr int kRows = 2'000;
// Of GPUs that the page of memory offers, in GiB (web/src/pages/memory).
constexpr int64_t kGpuGib[] = {8, 12, 16, 24, 40, 48, 80, 141};

// Those, and the workers' own.
std::vector<int64_t> CapacitiesOf(const v1::Study& study) {
  std::set<int64_t> bytes;
  for (const int64_t gib : kGpuGib) bytes.insert(gib << 30);
  for (const v1::Worker& worker : study.workers()) {
    if (worker.capacity_bytes() > 0) bytes.insert(worker.capacity_bytes());
  }
  return {bytes.begin(), bytes.end()};
}

std::string NameOf(const v1::ColumnInfo& column) {
  const absl::string_view name = column.name();
  if (absl::StrContains(name, ':')) return std::string(name);
  switch (column.kind()) {
    case v1::COLUMN_KIND_PARAMETER:
      return absl::StrCat("param:", name);
    case v1::COLUMN_KIND_METRIC:
      return absl::StrCat("metric:", name);
    default:
      return std::string(name);
  }
}

}  // namespace

template <typename Stub, typename Request, typename Response>
absl::Status StudyRecorder::Keep(const char* method, Stub& stub,
                                 grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&,
                                                            Response*),
                                 const Request& request, Response* answer) {
  grpc::ClientContext context;
  context.set_deadline(connection_.Deadline());
  HPO_RETURN_IF_ERROR(connection_.Describe((stub.*call)(&context, request, answer)));
  HPO_ASSIGN_OR_RETURN(const std::string asked, MessageToJson(request));
  HPO_ASSIGN_OR_RETURN(const std::string answered, MessageToJson(*answer));
  calls_.push_back(absl::StrCat(R"({"method":")", method, R"(","request":)", asked, R"(,"answer":)",
                                answered, "}"));
  return absl::OkStatus();
}

namespace {

// What a server refuses is left out; that it is gone is an error.
absl::Status UnlessRefused(absl::Status status) {
  return status.GetPayload(ServerConnection::kUnreachable).has_value() ? status : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> StudyRecorder::Record(const std::string& study) {
  using Studies = v1::StudyService::Stub;
  v1::GetStudyRequest named;
  named.set_name(study);
  v1::GetStudyResponse found;
  HPO_RETURN_IF_ERROR(
      Keep("StudyService/GetStudy", connection_.study(), &Studies::GetStudy, named, &found));
  const std::string name = found.study().name();

  v1::GetHistoryRequest history;
  history.set_study(name);
  history.set_points(kHistoryPoints);
  v1::GetHistoryResponse drawn;
  HPO_RETURN_IF_ERROR(
      Keep("StudyService/GetHistory", connection_.study(), &Studies::GetHistory, history, &drawn));
  HPO_RETURN_IF_ERROR(KeepAnalysis(found.study()));

  v1::ListBestTrialsRequest best;
  best.set_study(name);
  best.set_count(kRecordedBestTrials);
  v1::ListBestTrialsResponse ranked;
  HPO_RETURN_IF_ERROR(UnlessRefused(Keep("StudyService/ListBestTrials", connection_.study(),
                                         &Studies::ListBestTrials, best, &ranked)));
  std::set<int64_t> numbers;
  for (const v1::Trial& trial : ranked.trials()) numbers.insert(trial.number());
  HPO_RETURN_IF_ERROR(KeepTable(name, numbers));
  for (const int64_t number : numbers) {
    v1::GetTrialRequest one;
    one.set_study(name);
    one.set_number(number);
    v1::GetTrialResponse trial;
    HPO_RETURN_IF_ERROR(
        Keep("StudyService/GetTrial", connection_.study(), &Studies::GetTrial, one, &trial));
  }
  const std::string now = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  return absl::StrCat(R"({"recorded":")", now, R"(","calls":[)", absl::StrJoin(calls_, ",\n"),
                      R"(],"trials":[)", absl::StrJoin(pages_, ",\n"), "]}");
}

absl::Status StudyRecorder::KeepAnalysis(const v1::Study& study) {
  using Analysis = v1::AnalysisService::Stub;
  for (const v1::Objective& objective : study.objectives()) {
    for (const auto method : {v1::IMPORTANCE_METHOD_PED_ANOVA, v1::IMPORTANCE_METHOD_FANOVA}) {
      v1::GetImportanceRequest request;
      request.set_study(study.name());
      request.set_metric(objective.metric());
      request.set_method(method);
      v1::GetImportanceResponse answer;
      HPO_RETURN_IF_ERROR(
          UnlessRefused(Keep("AnalysisService/GetImportance", connection_.analysis(),
                             &Analysis::GetImportance, request, &answer)));
    }
  }
  HPO_RETURN_IF_ERROR(KeepCurves(study.name()));

  v1::GetTimelineRequest timeline;
  timeline.set_study(study.name());
  timeline.set_count(kAttempts);
  v1::GetTimelineResponse attempts;
  HPO_RETURN_IF_ERROR(UnlessRefused(Keep("AnalysisService/GetTimeline", connection_.analysis(),
                                         &Analysis::GetTimeline, timeline, &attempts)));
  const std::vector<int64_t> capacities = CapacitiesOf(study);
  v1::GetMemoryFrontierRequest frontier;
  frontier.set_study(study.name());
  frontier.mutable_capacities()->Assign(capacities.begin(), capacities.end());
  v1::GetMemoryFrontierResponse cells;
  HPO_RETURN_IF_ERROR(
      UnlessRefused(Keep("AnalysisService/GetMemoryFrontier", connection_.analysis(),
                         &Analysis::GetMemoryFrontier, frontier, &cells)));
  v1::GetMemoryFitRequest fit;
  fit.set_study(study.name());
  fit.mutable_capacities()->Assign(capacities.begin(), capacities.end());
  v1::GetMemoryFitResponse fits;
  return UnlessRefused(Keep("AnalysisService/GetMemoryFit", connection_.analysis(),
                            &Analysis::GetMemoryFit, fit, &fits));
}

absl::Status StudyRecorder::KeepCurves(const std::string& study) {
  using Analysis = v1::AnalysisService::Stub;
  v1::GetCurvesRequest request;
  request.set_study(study);
  request.set_count(kCurves);
  v1::GetCurvesResponse first;
  HPO_RETURN_IF_ERROR(UnlessRefused(Keep("AnalysisService/GetCurves", connection_.analysis(),
                                         &Analysis::GetCurves, request, &first)));
  for (const std::string& metric : first.metrics()) {
    request.set_metric(metric);
    v1::GetCurvesResponse answer;
    HPO_RETURN_IF_ERROR(UnlessRefused(Keep("AnalysisService/GetCurves", connection_.analysis(),
                                           &Analysis::GetCurves, request, &answer)));
  }
  return absl::OkStatus();
}

// All trials with all columns, page after page; adds the newest trials to `newest`.
absl::Status StudyRecorder::KeepTable(const std::string& study, std::set<int64_t>& newest) {
  using Studies = v1::StudyService::Stub;
  v1::QueryTrialsRequest request;
  request.set_study(study);
  request.set_page_size(1);
  HPO_ASSIGN_OR_RETURN(v1::QueryTrialsResponse page,
                       connection_.Call(&Studies::QueryTrials, request));
  for (const v1::ColumnInfo& column : page.all_columns()) request.add_columns(NameOf(column));
  request.set_page_size(kRows);
  std::vector<int64_t> numbers;
  do {
    HPO_ASSIGN_OR_RETURN(page, connection_.Call(&Studies::QueryTrials, request));
    HPO_ASSIGN_OR_RETURN(pages_.emplace_back(), MessageToJson(page));
    numbers.insert(numbers.end(), page.numbers().begin(), page.numbers().end());
    request.set_page_token(page.next_page_token());
  } while (!page.next_page_token().empty());
  const size_t first = numbers.size() - std::min<size_t>(numbers.size(), kRecordedNewestTrials);
  newest.insert(numbers.begin() + static_cast<std::ptrdiff_t>(first), numbers.end());
  return absl::OkStatus();
}

}  // namespace hpo::cli
