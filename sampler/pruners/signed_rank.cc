#include "sampler/pruners/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace hpo::sampler {
namespace {

// Ranks of the sizes, equal ones sharing the mean of theirs. Times two, and so whole numbers.
struct Ranks {
  std::vector<int64_t> doubled;  // by difference
  double tie_correction = 0.0;   // sum of t^3 - t over groups of t equal sizes
};

Ranks RankSizes(const std::vector<double>& differences) {
  std::vector<size_t> order(differences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size_of = [&](size_t i) { return std::abs(differences[i]); };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return size_of(a) < size_of(b); });

  Ranks ranks{.doubled = std::vector<int64_t>(differences.size())};
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && size_of(order[end]) == size_of(order[begin])) ++end;
    for (size_t i = begin; i < end; ++i) {
      ranks.doubled[order[i]] = static_cast<int64_t>(begin + 1 + end);
    }
    const auto tied = static_cast<double>(end - begin);
    ranks.tie_correction += tied * tied * tied - tied;
    begin = end;
  }
  return ranks;
}

// Times four, because half a rank of a zero counts, and ranks may be halves.
int64_t PositiveSum(const std::vector<double>& differences, const Ranks& ranks) {
  int64_t sum = 0;
  for (size_t i = 0; i < differences.size(); ++i) {
    if (differences[i] > 0.0) sum += 2 * ranks.doubled[i];
    if (differences[i] == 0.0) sum += ranks.doubled[i];
  }
  return sum;
}

// Counts the sign assignments by their positive sum. A zero adds the same to each.
double ExactTail(const std::vector<double>& differences, const Ranks& ranks) {
  std::vector<double> count = {1.0};  // by sum, times four
  double assignments = 1.0;
  int64_t always = 0;
  for (size_t i = 0; i < differences.size(); ++i) {
    if (differences[i] == 0.0) {
      always += ranks.doubled[i];
      continue;
    }
    const auto step = static_cast<size_t>(2 * ranks.doubled[i]);
    std::vector<double> next(count.size() + step, 0.0);
    for (size_t sum = 0; sum < count.size(); ++sum) {
      next[sum] += count[sum];
      next[sum + step] += count[sum];
    }
    count = std::move(next);
    assignments *= 2.0;
  }
  const auto least = static_cast<std::ptrdiff_t>(PositiveSum(differences, ranks) - always);
  return std::accumulate(count.begin() + least, count.end(), 0.0) / assignments;
}

double NormalTail(const std::vector<double>& differences, const Ranks& ranks) {
  const auto n = static_cast<double>(differences.size());
  const double mean = n * (n + 1.0) / 4.0;
  const double variance = (n * (n + 1.0) * (2.0 * n + 1.0) - ranks.tie_correction / 2.0) / 24.0;
  const double sum = static_cast<double>(PositiveSum(differences, ranks)) / 4.0;
  return 0.5 * std::erfc((sum - mean) / std::sqrt(2.0 * variance));
}

}  // namespace

double SignedRankTest(const std::vector<double>& differences) {
  constexpr size_t kMostDistinct = 50;
  constexpr size_t kMostTied = 13;
  const Ranks ranks = RankSizes(differences);
  const bool distinct =
      ranks.tie_correction == 0.0 && std::count(differences.begin(), differences.end(), 0.0) == 0;
  const bool exact = differences.size() <= (distinct ? kMostDistinct : kMostTied);
  return exact ? ExactTail(differences, ranks) : NormalTail(differences, ranks);
}

}  // namespace hpo::sampler
