#include "worker/trainer/scores/span_scores.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/models/query_answers.h"

namespace hpo::trainer {
namespace {

float LogitOf(std::span<const float> logits, int64_t token, size_t which) {
  return logits[kSpanEnds * static_cast<size_t>(token) + which];
}

bool Says(std::span<const float> logits, int64_t token, size_t which) {
  return LogitOf(logits, token, which) > 0.0f;
}

double Logistic(float logit) { return 1.0 / (1.0 + std::exp(-static_cast<double>(logit))); }

}  // namespace

std::vector<text::TokenRange> SpansIn(std::span<const float> logits, const text::TokenRange& text) {
  constexpr int64_t kNone = -1;
  std::vector<text::TokenRange> spans;
  int64_t begin = kNone;
  for (int64_t token = text.begin; token < text.end; ++token) {
    if (Says(logits, token, 0)) begin = token;
    if (begin == kNone || !Says(logits, token, 1)) continue;
    spans.push_back({.begin = begin, .end = token + 1});
    begin = kNone;
  }
  return spans;
}

double SpanProbability(std::span<const float> logits, const text::TokenRange& span) {
  return Logistic(LogitOf(logits, span.begin, 0)) * Logistic(LogitOf(logits, span.end - 1, 1));
}

void SpanScores::AddRow(const text::SpanQuery& query, std::span<const float> logits) {
  if (query.asks == text::TextQuestion::Asks::kClass) return;
  Counts& counts = query.asks == text::TextQuestion::Asks::kAspects ? aspects_ : opinions_;
  std::set<int32_t> found;
  for (const text::TokenRange& said : SpansIn(logits, query.text)) {
    const auto answer =
        std::find_if(query.answers.begin(), query.answers.end(),
                     [&said](const text::AnswerSpan& known) { return known.tokens == said; });
    if (answer == query.answers.end()) {
      ++counts.wrong;
    } else {
      found.insert(answer->phrase);
    }
  }
  std::set<int32_t> all;
  for (const text::AnswerSpan& answer : query.answers) all.insert(answer.phrase);
  counts.found += static_cast<int64_t>(found.size());
  counts.missed += static_cast<int64_t>(all.size() - found.size());
}

double SpanScores::Counts::F1() const {
  const int64_t all = 2 * found + wrong + missed;
  return all == 0 ? 0.0 : 2.0 * static_cast<double>(found) / static_cast<double>(all);
}

void SpanScores::Summarize(Metrics& metrics) const {
  metrics["aspect_f1"] = aspects_.F1();
  metrics["opinion_f1"] = opinions_.F1();
}

}  // namespace hpo::trainer
