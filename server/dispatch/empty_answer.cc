// Tested by tests/server/api/fleet_api_test.cc and tests/server/scheduler/trial_scheduler_test.cc.
#include "server/dispatch/empty_answer.h"

#include <algorithm>
#include <vector>

#include "server/placement/capability.h"
#include "server/studies/held_trials.h"
#include "server/studies/study_end.h"

namespace hpo::server {

AcquireResult EmptyAnswer(const SchedulerState& state, const WorkerFacts& facts) {
  std::vector<StudyRuntime*> studies = state.studies.All();
  std::erase_if(studies,
                [&](const StudyRuntime* study) { return !CheckTold(study->name(), facts).ok(); });
  AcquireResult answer;
  answer.studies_version = state.studies.version();
  answer.draining = state.work.draining();
  answer.all_studies_finished = !studies.empty() && std::all_of(studies.begin(), studies.end(),
                                                                [](const StudyRuntime* study) {
                                                                  return study->standing().finished;
                                                                });
  if (!answer.all_studies_finished) return answer;
  for (const StudyRuntime* study : studies) answer.finished.push_back(EndOf(*study));
  return answer;
}

AcquireResult DrainedAnswer(const SchedulerState& state, const WorkerFacts& facts) {
  AcquireResult answer = EmptyAnswer(state, facts);
  answer.drained = true;
  answer.waiting_for = WhyDrained(facts.worker);
  // A worker of an earlier version pauses.
  answer.draining = true;
  return answer;
}

}  // namespace hpo::server
