// Values whose every field differs from its default, for tests of what is stored, sent and printed.
#pragma once

#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "common/study/trial.h"

namespace hpo {

Budget FullBudget();
StudySpec FullStudySpec();
MemoryPlan FullPlan();
OutOfMemory FullOutOfMemory();
MemoryRecord FullMemoryRecord();
MemoryReport FullMemoryReport();
TrainerJob FullTrainerJob();
WorkerFacts FullWorkerFacts();

}  // namespace hpo
