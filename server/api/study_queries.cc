// Tested by tests/server/api/study_api_test.cc.
#include "server/api/study_queries.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "server/api/memory_answer.h"
#include "server/api/page_token.h"
#include "server/api/pareto.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/studies/study_description.h"
#include "server/studies/trial_writer.h"
#include "server/table/history_sample.h"
#include "server/table/table_page.h"

namespace hpo::server {
namespace {

constexpr int kDefaultPage = 100;
constexpr int kDefaultHistory = 1500;
constexpr int64_t kLargestPage = kPageLimit.most;
constexpr absl::Duration kBookmarkEach = absl::Seconds(5);
constexpr absl::Duration kCancellationCheck = absl::Milliseconds(100);
constexpr int kEventBatch = 256;

// What was stored after `sequence`; of the study's own changes bookmarks.
absl::StatusOr<std::vector<WatchEvent>> EventsAfter(const StudyRows& rows, int64_t sequence) {
  std::vector<WatchEvent> events;
  HPO_ASSIGN_OR_RETURN(const auto stored, rows.events.After(sequence, kEventBatch));
  for (const EventLog::Event& event : stored) {
    if (event.trial == kNoTrial) {
      events.emplace_back(Bookmark{event.sequence});
      continue;
    }
    HPO_ASSIGN_OR_RETURN(Trial trial, rows.trials.LoadTrialToShow(event.trial));
    events.emplace_back(TrialEvent{event.sequence, event.kind, Listed(std::move(trial))});
  }
  return events;
}

}  // namespace

Trial Listed(Trial trial) {
  const auto shorten = [](std::string& text) { text = Shortened(text, kListedTextLimit); };
  if (!trial.outcome) return trial;
  if (auto* failed = std::get_if<Failed>(&*trial.outcome)) shorten(failed->message);
  if (auto* oom = std::get_if<OutOfMemory>(&*trial.outcome)) {
    shorten(oom->message);
    shorten(oom->traceback);
  }
  return trial;
}

absl::StatusOr<StudyStatus> StudyQueries::GetStudy(const std::string& name) const {
  return DescribeStudy(scheduler_.state(), name);
}

absl::StatusOr<std::vector<StudyStatus>> StudyQueries::ListStudies() const {
  std::vector<StudyStatus> studies;
  for (const std::string& name : scheduler_.state().studies.Names()) {
    HPO_ASSIGN_OR_RETURN(studies.emplace_back(), DescribeStudy(scheduler_.state(), name));
  }
  return studies;
}

absl::StatusOr<StudyPage> StudyQueries::ListStudies(int page_size, const std::string& token) const {
  const auto most = static_cast<size_t>(page_size == 0 ? kDefaultPage : page_size);
  HPO_ASSIGN_OR_RETURN(std::vector<StudyStatus> studies, ListStudies());
  std::sort(studies.begin(), studies.end(),
            [](const StudyStatus& a, const StudyStatus& b) { return a.spec.name < b.spec.name; });
  StudyPage page;
  for (StudyStatus& study : studies) {
    if (!token.empty() && study.spec.name <= token) continue;
    if (page.studies.size() == most) {
      page.next_token = page.studies.back().spec.name;
      break;
    }
    page.studies.push_back(std::move(study));
  }
  return page;
}

std::map<std::string, int64_t> StudyQueries::LastChanges() const {
  std::map<std::string, int64_t> last;
  for (const std::string& name : scheduler_.state().studies.Names()) {
    const absl::StatusOr<StudyRuntime*> study = scheduler_.state().studies.Find(name);
    last[name] = study.ok() ? (*study)->changes.last() : 0;
  }
  return last;
}

absl::StatusOr<TrialPage> StudyQueries::ListTrials(const std::string& study,
                                                   const TrialQuery& query) const {
  if (query.page_size < 0 || query.page_size > kLargestPage) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_size: expected 0 to ", kLargestPage, ", got ", query.page_size));
  }
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  std::optional<TrialNumber> after;
  if (!query.page_token.empty()) {
    HPO_ASSIGN_OR_RETURN(after, ReadPageToken(runtime->name(), query.filter, query.page_token));
  }
  const int size = query.page_size == 0 ? kDefaultPage : query.page_size;
  TrialPage page;
  const auto read = [&](const StudyRows& rows) -> absl::Status {
    // One more than the page tells whether another follows.
    HPO_ASSIGN_OR_RETURN(page.trials, rows.trials.ListTrials(query.filter, after, size + 1));
    HPO_ASSIGN_OR_RETURN(page.total, rows.trials.CountTrials(query.filter));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadRows(*scheduler_.state().store, *runtime, read));
  if (page.trials.size() > static_cast<size_t>(size)) {
    page.trials.pop_back();
    page.next_token = MakePageToken(runtime->name(), query.filter, page.trials.back().id.number);
  }
  return page;
}

absl::StatusOr<TablePage> StudyQueries::QueryTrials(const std::string& study,
                                                    const TableQuery& query) const {
  TablePage page;
  const auto make = [&](const StudyRuntime& runtime, const TrialColumns& columns,
                        int64_t sequence) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(page, MakeTablePage(columns, runtime.spec(), query));
    page.sequence = sequence;
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(tables_.Use(study, make));
  return page;
}

absl::StatusOr<HistorySample> StudyQueries::GetHistory(const std::string& study, int points) const {
  HistorySample sample;
  const auto most = static_cast<size_t>(points == 0 ? kDefaultHistory : points);
  const auto make = [&](const StudyRuntime& runtime, const TrialColumns& columns,
                        int64_t sequence) {
    sample = SampleHistory(columns, runtime.spec(), most);
    sample.sequence = sequence;
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(tables_.Use(study, make));
  return sample;
}

absl::StatusOr<TrialView> StudyQueries::GetTrial(const std::string& study,
                                                 TrialNumber number) const {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  TrialView detail;
  const auto read = [&](const StudyRows& rows) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(TrialRecord record, rows.trials.LoadTrialWithAttempts(number));
    HPO_ASSIGN_OR_RETURN(detail.sampler, rows.suggestions.LoadSampler(number));
    HPO_ASSIGN_OR_RETURN(detail.measurements,
                         rows.attempts.LoadMeasurements(number, record.ToldAttempt()));
    detail.trial = std::move(record.trial);
    for (Attempt& attempt : detail.trial.attempts) {
      HPO_ASSIGN_OR_RETURN(attempt.memory_records,
                           rows.attempts.LoadMemoryRecords(number, attempt.number));
      HPO_ASSIGN_OR_RETURN(attempt.log_tail, rows.attempts.LoadLogTail(number, attempt.number));
      const bool runs = attempt.log_tail.empty();  // or it printed nothing
      if (runs) attempt.log_tail = runtime->open.LastLogTail(number, attempt.number);
    }
    return absl::OkStatus();
  };
  const absl::Status loaded = ReadRows(*scheduler_.state().store, *runtime, read);
  if (absl::IsDataLoss(loaded)) {
    return TrialView{.trial = UnreadableTrial({runtime->name(), number}, loaded),
                     .measurements = {},
                     .sampler = {}};
  }
  HPO_RETURN_IF_ERROR(loaded);
  return detail;
}

absl::StatusOr<std::vector<Trial>> StudyQueries::ListBestTrials(
    const std::string& study, int count, const std::function<bool()>& cancelled) const {
  if (count < 0) {
    return absl::InvalidArgumentError(absl::StrCat("count: expected at least 0, got ", count));
  }
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  const std::vector<Objective> objectives = runtime->spec().objectives;
  const bool several = objectives.size() > 1;
  std::vector<Trial> best;
  const auto read = [&](const StudyRows& rows) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(best, rows.trials.ListBest(objectives.front().direction,
                                                    several ? -1 : std::max(count, 1)));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadRows(*scheduler_.state().store, *runtime, read));
  if (several) {
    HPO_ASSIGN_OR_RETURN(best, ParetoFront(std::move(best), objectives, cancelled));
  }
  const size_t all = several ? best.size() : 1;
  const size_t wanted = count == 0 ? all : static_cast<size_t>(count);
  if (best.size() > wanted) best.resize(wanted);
  return best;
}

absl::StatusOr<memory::MemoryAnswer> StudyQueries::EstimateMemory(const std::string& study,
                                                                  const MemoryQuery& query) const {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  HPO_ASSIGN_OR_RETURN(const WorkerFacts facts,
                       ChooseWorker(scheduler_.state().workers, query.worker));
  const StudySpec spec = runtime->spec();
  const Bytes capacity =
      query.limit.count > 0 ? query.limit : memory::QuantizeCapacity(facts.capacity);
  const MemoryKnowledge knowledge = scheduler_.state().Knowledge(*runtime, facts);
  return AnswerMemory(spec, facts, knowledge, query.params, capacity);
}

absl::Status StudyQueries::WatchStudy(const std::string& study, int64_t after_sequence,
                                      const std::function<bool(const WatchEvent&)>& emit,
                                      const std::function<bool()>& cancelled) const {
  HPO_ASSIGN_OR_RETURN(const StudyStatus found, GetStudy(study));
  const std::string& name = found.spec.name;
  if (!emit(found)) return absl::OkStatus();
  // From the snapshot on, so that nothing between it and the first change is lost.
  int64_t sequence = after_sequence == 0 ? found.sequence : std::max<int64_t>(0, after_sequence);
  absl::Duration quiet;
  while (!scheduler_.state().work.draining() && !cancelled()) {
    // Anew each time: a study that is read again from its rows is another object.
    HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(name));
    if (!runtime->changes.AwaitAfter(sequence, kCancellationCheck)) {
      quiet += kCancellationCheck;
      if (quiet < kBookmarkEach) continue;
      quiet = absl::ZeroDuration();
      if (!emit(Bookmark{sequence})) return absl::OkStatus();
      continue;
    }
    quiet = absl::ZeroDuration();
    std::vector<WatchEvent> events;
    const auto read = [&](const StudyRows& rows) -> absl::Status {
      HPO_ASSIGN_OR_RETURN(events, EventsAfter(rows, sequence));
      return absl::OkStatus();
    };
    HPO_RETURN_IF_ERROR(ReadRows(*scheduler_.state().store, *runtime, read));
    for (const WatchEvent& event : events) {
      if (const auto* of_study = std::get_if<Bookmark>(&event)) {
        sequence = of_study->value;
        const absl::StatusOr<StudyStatus> now = GetStudy(name);
        if (!now.ok() || !emit(*now)) return absl::OkStatus();
      } else {
        sequence = std::get<TrialEvent>(event).sequence;
      }
      if (!emit(event)) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace hpo::server
