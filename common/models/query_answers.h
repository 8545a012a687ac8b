// What a model answers one query of a text with aspects by, in addition to a logit for each class
// (TaskKind::kMultiQuery and kMultiQuerySpans).
#pragma once

#include <cstdint>

namespace hpo {

inline constexpr int64_t kAspectNumbers = 2;  // valence and arousal
inline constexpr int64_t kSpanEnds = 2;       // of each token: a span's beginning, and its end

}  // namespace hpo
