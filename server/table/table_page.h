// Pages of a table of trials. Pure. A page is found by the sort key of the row that it begins
// after, as it was when that row was shown, so that neither its cost nor its rows depend on how
// many pages are before it, or on what becomes of that row; each query looks at every trial once.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/study_exchange.h"
#include "common/study/study.h"
#include "server/table/trial_columns.h"

namespace hpo::server {

//   InvalidArgument  a page_size out of range, a condition that cannot be read, a column that
//   nobody
//                    has, or a token of another study, order or condition
absl::StatusOr<TablePage> MakeTablePage(const TrialColumns& columns, const StudySpec& study,
                                        const TableQuery& query);

}  // namespace hpo::server
