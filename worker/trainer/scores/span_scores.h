// How well spans are found: F1 of exact matches. Free of torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/study/trial.h"
#include "worker/text/data/span_queries.h"

namespace hpo::trainer {

// The spans that the logits of a row's tokens say, in order: from each token of `text` at which one
// begins (a logit above 0) to the first from there on at which one ends, where that is before the
// next beginning. logits: of each token of the row, its beginning and its end.
std::vector<text::TokenRange> SpansIn(std::span<const float> logits, const text::TokenRange& text);

// How probable a span is by them: that it begins and that it ends there, each its logit's logistic
// function, as Chen et al. 2021 have it. In (0, 1). The span is one of SpansIn.
double SpanProbability(std::span<const float> logits, const text::TokenRange& span);

// Counts answers query by query. Not thread-safe.
//
// An answer is found where one of its places is said, begin and end, however many of them are;
// anything else that is said is wrong. An answer that is cut off cannot be found, and is missed.
class SpanScores {
 public:
  // logits: as SpansIn takes them. A query that asks for no spans counts for nothing.
  void AddRow(const text::SpanQuery& query, std::span<const float> logits);

  // "aspect_f1" and "opinion_f1" over all queries that ask for them: 2 found / (2 found + wrong +
  // missed); 0 where there is nothing to find and nothing is said.
  void Summarize(Metrics& metrics) const;

 private:
  struct Counts {
    int64_t found = 0;
    int64_t wrong = 0;
    int64_t missed = 0;
    double F1() const;
  };

  Counts aspects_;
  Counts opinions_;
};

}  // namespace hpo::trainer
