// Tested by tests/common/interop/importance/fanova_test.cc.
#include "common/interop/importance/partition_tree.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace hpo {
namespace {

// Rows of one box, and what it spans.
struct Node {
  size_t num_rows = 0;
  // All rows once for each dimension (at least once), in the order of their inputs there: sorted
  // once, and kept in order as boxes are divided.
  std::vector<uint32_t> orders;
  std::vector<Extent> extents;

  std::span<const uint32_t> OrderOf(size_t dimension) const {
    return std::span(orders).subspan(dimension * num_rows, num_rows);
  }
};

// The best way to divide a node along one dimension.
struct Cut {
  size_t dimension = 0;
  double gain = 0.0;  // reduction of the squared error
  size_t place = 0;   // so many rows, or groups of a choice, go left
};

struct Split {
  size_t dimension = 0;
  double threshold = 0.0;     // numeric: inputs up to it go left
  std::vector<bool> choices;  // categorical: these go left
};

// Rows that stay together.
struct Group {
  double count = 0.0;
  double sum = 0.0;   // of the outputs
  size_t choice = 0;  // of a categorical dimension
  double Mean() const { return sum / count; }
};

// Grows one tree.
class Growth {
 public:
  // `data`, `orders` and `rng` outlive it.
  Growth(const RegressionData& data, const std::vector<std::vector<uint32_t>>& orders,
         const std::vector<size_t>& rows, Rng& rng)
      : data_(data), orders_(orders), rng_(rng) {
    counts_.resize(data.outputs.size(), 0.0);
    for (const size_t row : rows) counts_[row] += 1.0;
    for (size_t row = 0; row < counts_.size(); ++row) {
      sums_.push_back(counts_[row] * data.outputs[row]);
    }
    goes_left_.resize(counts_.size());
  }

  std::vector<Box> Grow() {
    std::vector<Box> boxes;
    std::vector<Node> open;
    open.push_back(WholeCube());
    while (!open.empty()) {
      Node node = std::move(open.back());
      open.pop_back();
      const Group all = Together(node.OrderOf(0));
      const std::optional<Cut> cut = BestCut(node, all);
      if (!cut.has_value()) {
        boxes.push_back({std::move(node.extents), all.Mean()});
        continue;
      }
      auto [left, right] = Divide(node, MakeSplit(node, *cut));
      open.push_back(std::move(left));
      open.push_back(std::move(right));
    }
    return boxes;
  }

 private:
  Node WholeCube() const {
    Node cube;
    for (const size_t num_choices : data_.num_choices) {
      cube.extents.push_back({.choices = std::vector<bool>(num_choices, true)});
    }
    for (const std::vector<uint32_t>& order : orders_) {
      std::copy_if(order.begin(), order.end(), std::back_inserter(cube.orders),
                   [this](uint32_t row) { return counts_[row] > 0.0; });
    }
    cube.num_rows = cube.orders.size() / orders_.size();
    return cube;
  }

  void Add(uint32_t row, Group& group) const {
    group.count += counts_[row];
    group.sum += sums_[row];
  }

  Group Together(std::span<const uint32_t> rows) const {
    Group all;
    for (const uint32_t row : rows) Add(row, all);
    return all;
  }

  static double Gain(const Group& left, const Group& all) {
    const double excess = left.sum * all.count - all.sum * left.count;
    return excess * excess / (all.count * left.count * (all.count - left.count));
  }

  Cut CutOfNumbers(const Node& node, size_t dimension, const Group& all) const {
    const std::vector<double>& inputs = data_.inputs[dimension];
    const std::span<const uint32_t> order = node.OrderOf(dimension);
    Cut best{.dimension = dimension};
    Group left;
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      Add(order[i], left);
      if (inputs[order[i]] == inputs[order[i + 1]]) continue;
      const double gain = Gain(left, all);
      if (gain > best.gain) best = {dimension, gain, i + 1};
    }
    return best;
  }

  // Of the choices that the node's rows have, by their mean outputs.
  std::vector<Group> GroupsOf(const Node& node, size_t dimension) const {
    std::vector<Group> groups(data_.num_choices[dimension]);
    for (size_t choice = 0; choice < groups.size(); ++choice) groups[choice].choice = choice;
    for (const uint32_t row : node.OrderOf(dimension)) {
      Add(row, groups[static_cast<size_t>(data_.inputs[dimension][row])]);
    }
    std::erase_if(groups, [](const Group& group) { return group.count == 0.0; });
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.Mean() < b.Mean(); });
    return groups;
  }

  Cut CutOfChoices(const Node& node, size_t dimension, const Group& all) const {
    const std::vector<Group> groups = GroupsOf(node, dimension);
    Cut best{.dimension = dimension};
    Group left;
    for (size_t i = 0; i + 1 < groups.size(); ++i) {
      left.count += groups[i].count;
      left.sum += groups[i].sum;
      const double gain = Gain(left, all);
      if (gain > best.gain) best = {dimension, gain, i + 1};
    }
    return best;
  }

  // nullopt: the box is a leaf.
  std::optional<Cut> BestCut(const Node& node, const Group& all) {
    std::optional<Cut> best;
    uint64_t num_equal = 1;
    for (size_t dimension = 0; node.num_rows > 1 && dimension < data_.inputs.size(); ++dimension) {
      const Cut cut = data_.num_choices[dimension] > 0 ? CutOfChoices(node, dimension, all)
                                                       : CutOfNumbers(node, dimension, all);
      if (cut.place == 0 || (best && cut.gain < best->gain)) continue;
      const bool equal = best.has_value() && cut.gain == best->gain;
      if (equal && rng_.Below(++num_equal) != 0) continue;
      if (!equal) num_equal = 1;
      best = cut;
    }
    return best;
  }

  Split MakeSplit(const Node& node, const Cut& cut) const {
    Split split{.dimension = cut.dimension};
    if (data_.num_choices[cut.dimension] == 0) {
      const std::vector<double>& inputs = data_.inputs[cut.dimension];
      const std::span<const uint32_t> order = node.OrderOf(cut.dimension);
      const double below = inputs[order[cut.place - 1]];
      const double above = inputs[order[cut.place]];
      split.threshold = 0.5 * below + 0.5 * above;
      // Between neighbouring doubles there is none: rounded up it would divide nothing, for ever.
      if (!(split.threshold < above)) split.threshold = below;
      return split;
    }
    const std::vector<Group> groups = GroupsOf(node, cut.dimension);
    double count_left = 0.0;
    double count = 0.0;
    for (size_t i = 0; i < groups.size(); ++i) {
      count += groups[i].count;
      if (i < cut.place) count_left += groups[i].count;
    }
    const bool unseen_left = count_left > count - count_left;
    split.choices.assign(data_.num_choices[cut.dimension], unseen_left);
    for (size_t i = 0; i < groups.size(); ++i) split.choices[groups[i].choice] = i < cut.place;
    return split;
  }

  std::pair<Node, Node> Divide(Node& node, const Split& split) {
    Node left{.extents = node.extents};
    Node right{.extents = std::move(node.extents)};
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
    for (const uint32_t row : node.OrderOf(split.dimension)) {
      const double input = data_.inputs[split.dimension][row];
      goes_left_[row] = split.choices.empty() ? input <= split.threshold
                                              : split.choices[static_cast<size_t>(input)];
      ++(goes_left_[row] ? left : right).num_rows;
    }
    left.orders.reserve(left.num_rows * orders_.size());
    right.orders.reserve(right.num_rows * orders_.size());
    for (const uint32_t row : node.orders) (goes_left_[row] ? left : right).orders.push_back(row);
    return {std::move(left), std::move(right)};
  }

  const RegressionData& data_;
  const std::vector<std::vector<uint32_t>>& orders_;
  Rng& rng_;
  std::vector<double> counts_;  // by row: how often it was drawn
  std::vector<double> sums_;    // by row: of its outputs
  std::vector<char> goes_left_;
};

}  // namespace

double Extent::Size() const {
  if (choices.empty()) return high - low;
  const auto inside = std::count(choices.begin(), choices.end(), true);
  return static_cast<double>(inside) / static_cast<double>(choices.size());
}

PartitionGrower::PartitionGrower(RegressionData data) : data_(std::move(data)) {
  std::vector<uint32_t> rows(data_.outputs.size());
  for (size_t row = 0; row < rows.size(); ++row) rows[row] = static_cast<uint32_t>(row);
  for (const std::vector<double>& inputs : data_.inputs) {
    std::vector<uint32_t>& order = orders_.emplace_back(rows);
    std::stable_sort(order.begin(), order.end(),
                     [&inputs](uint32_t a, uint32_t b) { return inputs[a] < inputs[b]; });
  }
  if (orders_.empty()) orders_.push_back(rows);
}

std::vector<Box> PartitionGrower::Grow(const std::vector<size_t>& rows, Rng& rng) const {
  return Growth(data_, orders_, rows, rng).Grow();
}

}  // namespace hpo
