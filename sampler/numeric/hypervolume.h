// Which of many trials of several losses stand best for all of them: those that together dominate
// the largest volume. Pure; safe from any thread; the same bits on every machine.
// Sources: exclusive volumes by limited sets, While et al. 2012 (WFG), a loss less at each step;
// greedy choice, Guerreiro et al. 2016; reference point, Optuna 5.0
// (optuna/samplers/_tpe/sampler.py).
// Golden data: scripts/reference/several_objectives.py.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hpo::sampler {

// The volume of the union of the boxes between the origin and each of `corners`, none of them below
// 0 anywhere and all of one length, at least 2. O(n log n) for two coordinates, at most
// O(n^(m - 1)) for m.
double UnionVolume(std::span<const std::vector<double>> corners);

// Indices, ascending, of `count` of `points` that do not dominate each other (fewer where there are
// no more): one after another the one that adds most to the volume that those before it dominate,
// at least 1 - 1/e of the most that any could. Ties go to the point that comes first by its losses;
// points that repeat another one come after all others, the first ones first.
// The volume ends at max(1.1 w, 0.9 w), w being the worst of each loss (1e-12 where that is 0). A
// loss of infinity adds no volume, one of -infinity is worth the least finite one; none is NaN.
// Time: O(n count m), and what exact volumes take, of which there are so many as some 30 ms allow
// (counted by steps, not by a clock): enough for 100 of 3,000 points of two losses, of 500 of
// three, of 300 of four. What is chosen beyond that goes by upper bounds of what it adds.
std::vector<size_t> ChooseByHypervolume(std::span<const std::vector<double>> points, size_t count);

}  // namespace hpo::sampler
