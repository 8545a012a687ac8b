// DeBERTa's relative positions: which row of its table a pair of tokens has.
// Source: He et al. 2021 (arXiv:2006.03654, 2111.09543); transformers 5.23
// (make_log_bucket_position). Pure.
#pragma once

#include <cstdint>

#include "common/models/model_spec.h"

namespace hpo {

// The row of the relative table, in [0, 2 * span), for a query `distance` tokens after its key;
// never falls as the distance grows. relative.span > 0.
int64_t RelativeRow(const RelativeAttention& relative, int64_t max_positions, int64_t distance);

}  // namespace hpo
