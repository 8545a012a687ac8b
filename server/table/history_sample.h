// The optimization history of a study, reduced to what a chart can show. Pure.
#pragma once

#include <cstddef>

#include "common/protocol/study_exchange.h"
#include "common/study/study.h"
#include "server/table/trial_columns.h"

namespace hpo::server {

// How a trial's state is written in a history and in a curve: proto/hpo/v1/study.proto.
char LetterOf(RowKind kind);

// Keeps each step of the best value so far, at most `most` of them, and, of equal stretches of the
// study, the lowest and the highest value and one trial of each other kind: at most `most` trials
// more. All trials where there are no more than `most`.
HistorySample SampleHistory(const TrialColumns& columns, const StudySpec& study, size_t most);

}  // namespace hpo::server
