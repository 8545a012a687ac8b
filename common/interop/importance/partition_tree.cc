// Tested by tests/common/interop/importance/fanova_test.cc.
#include "common/interop/importance/partition_tree.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace hpo {
namespace {

// Rows of one box, and what it spans.
struct Node {
  std::vector<size_t> rows;
  std::vector<Extent> extents;
};

struct Split {
  size_t dimension = 0;
  double gain = 0.0;          // reduction of the squared error
  double threshold = 0.0;     // numeric: inputs up to it go left
  std::vector<bool> choices;  // categorical: these go left
};

// Inputs of a node's rows that stay together, in the order in which they may be split.
struct Group {
  double input = 0.0;  // a value, or the number of a choice
  double count = 0.0;
  double sum = 0.0;  // of the outputs
  double Mean() const { return sum / count; }
};

std::vector<Group> GroupsOf(const RegressionData& data, const std::vector<size_t>& rows,
                            size_t dimension) {
  const std::vector<double>& inputs = data.inputs[dimension];
  std::vector<size_t> order = rows;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return inputs[a] < inputs[b]; });
  std::vector<Group> groups;
  for (const size_t row : order) {
    if (groups.empty() || groups.back().input != inputs[row]) groups.push_back({inputs[row]});
    groups.back().count += 1.0;
    groups.back().sum += data.outputs[row];
  }
  if (data.num_choices[dimension] > 0) {
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.Mean() < b.Mean(); });
  }
  return groups;
}

// Puts the first `num_left` groups on the left.
Split MakeSplit(size_t dimension, const std::vector<Group>& groups, size_t num_left, double gain,
                const Extent& extent) {
  Split split{.dimension = dimension, .gain = gain};
  if (extent.choices.empty()) {
    split.threshold = 0.5 * groups[num_left - 1].input + 0.5 * groups[num_left].input;
    return split;
  }
  double count_left = 0.0;
  double count = 0.0;
  for (size_t i = 0; i < groups.size(); ++i) {
    count += groups[i].count;
    if (i < num_left) count_left += groups[i].count;
  }
  split.choices = extent.choices;
  const bool unseen_left = count_left > count - count_left;
  std::fill(split.choices.begin(), split.choices.end(), unseen_left);
  for (size_t i = 0; i < groups.size(); ++i) {
    split.choices[static_cast<size_t>(groups[i].input)] = i < num_left;
  }
  return split;
}

std::optional<Split> BestSplitOf(const RegressionData& data, const Node& node, size_t dimension) {
  const std::vector<Group> groups = GroupsOf(data, node.rows, dimension);
  double count = 0.0;
  double sum = 0.0;
  for (const Group& group : groups) {
    count += group.count;
    sum += group.sum;
  }
  double count_left = 0.0;
  double sum_left = 0.0;
  double best_gain = 0.0;
  size_t best = 0;
  for (size_t i = 0; i + 1 < groups.size(); ++i) {
    count_left += groups[i].count;
    sum_left += groups[i].sum;
    const double difference = sum_left / count_left - (sum - sum_left) / (count - count_left);
    const double gain = count_left * (count - count_left) / count * difference * difference;
    if (gain <= best_gain) continue;
    best_gain = gain;
    best = i + 1;
  }
  if (best == 0) return std::nullopt;
  return MakeSplit(dimension, groups, best, best_gain, node.extents[dimension]);
}

// nullopt: the box is a leaf.
std::optional<Split> BestSplit(const RegressionData& data, const Node& node, Rng& rng) {
  std::optional<Split> best;
  uint64_t num_equal = 1;
  for (size_t dimension = 0; dimension < data.inputs.size(); ++dimension) {
    std::optional<Split> split = BestSplitOf(data, node, dimension);
    if (!split.has_value()) continue;
    const bool equal = best.has_value() && split->gain == best->gain;
    if (equal ? rng.Below(++num_equal) == 0 : !best.has_value() || split->gain > best->gain) {
      if (!equal) num_equal = 1;
      best = std::move(split);
    }
  }
  return best;
}

std::pair<Node, Node> Divide(const RegressionData& data, const Node& node, const Split& split) {
  Node left{.extents = node.extents};
  Node right{.extents = node.extents};
  Extent& left_extent = left.extents[split.dimension];
  Extent& right_extent = right.extents[split.dimension];
  if (split.choices.empty()) {
    left_extent.high = split.threshold;
    right_extent.low = split.threshold;
  } else {
    for (size_t choice = 0; choice < split.choices.size(); ++choice) {
      const bool inside = left_extent.choices[choice];
      left_extent.choices[choice] = inside && split.choices[choice];
      right_extent.choices[choice] = inside && !split.choices[choice];
    }
  }
  for (const size_t row : node.rows) {
    const double input = data.inputs[split.dimension][row];
    const bool goes_left = split.choices.empty() ? input <= split.threshold
                                                 : split.choices[static_cast<size_t>(input)];
    (goes_left ? left : right).rows.push_back(row);
  }
  return {std::move(left), std::move(right)};
}

Node WholeCube(const RegressionData& data, std::vector<size_t> rows) {
  Node cube{.rows = std::move(rows)};
  for (const size_t num_choices : data.num_choices) {
    cube.extents.push_back({.choices = std::vector<bool>(num_choices, true)});
  }
  return cube;
}

}  // namespace

double Extent::Size() const {
  if (choices.empty()) return high - low;
  const auto inside = std::count(choices.begin(), choices.end(), true);
  return static_cast<double>(inside) / static_cast<double>(choices.size());
}

std::vector<Box> GrowPartition(const RegressionData& data, std::vector<size_t> rows, Rng& rng) {
  std::vector<Box> boxes;
  std::vector<Node> open = {WholeCube(data, std::move(rows))};
  while (!open.empty()) {
    Node node = std::move(open.back());
    open.pop_back();
    const std::optional<Split> split = BestSplit(data, node, rng);
    if (split.has_value()) {
      auto [left, right] = Divide(data, node, *split);
      open.push_back(std::move(left));
      open.push_back(std::move(right));
      continue;
    }
    double sum = 0.0;
    for (const size_t row : node.rows) sum += data.outputs[row];
    boxes.push_back({std::move(node.extents), sum / static_cast<double>(node.rows.size())});
  }
  return boxes;
}

}  // namespace hpo
