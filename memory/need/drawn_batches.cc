#include "memory/need/drawn_batches.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/random.h"
#include "common/models/packed_rows.h"
#include "memory/allocator/allocation_timeline.h"

namespace hpo::memory {
namespace {

constexpr uint64_t kSeed = 1;
constexpr size_t kMostParts = 4;
// Rows of the model that are drawn at a time. Of more the longest are sure to be among them.
constexpr int64_t kMostDrawnRows = 8192;

// The queries of a text, by their tokens; one, where a text is a row.
using Text = std::vector<int64_t>;

// Values of a histogram, each as often as it says, until all are drawn; then all of them again.
class Bag {
 public:
  explicit Bag(const LengthHistogram& histogram) {
    for (const auto& [value, count] : histogram) {
      if (count > 0) values_.emplace_back(value, count);
    }
    Refill();
  }

  int64_t size() const {
    int64_t size = 0;
    for (const auto& [value, count] : values_) size += count;
    return size;
  }

  void Refill() {
    left_ = values_;
    num_left_ = size();
  }

  // The bag was not empty.
  int64_t Draw(Rng& random) {
    if (num_left_ == 0) Refill();
    return Take(static_cast<int64_t>(random.Below(static_cast<uint64_t>(num_left_))));
  }
  int64_t DrawSmallest() {
    if (num_left_ == 0) Refill();
    return Take(0);
  }
  int64_t DrawLargest() {
    if (num_left_ == 0) Refill();
    return Take(num_left_ - 1);
  }

 private:
  // The value of this number, the smallest first.
  int64_t Take(int64_t number) {
    --num_left_;
    auto drawn = left_.begin();
    while (number >= drawn->second) number -= (drawn++)->second;
    --drawn->second;
    return drawn->first;
  }

  std::vector<std::pair<int64_t, int64_t>> values_;
  std::vector<std::pair<int64_t, int64_t>> left_;
  int64_t num_left_ = 0;
};

// Texts of one data set, drawn by chance.
class TextDraw {
 public:
  TextDraw(const EstimateInput& input, const LengthHistogram& lengths,
           const LengthHistogram& queries)
      : config_(input.config),
        lengths_(Merged(input, lengths)),
        queries_(queries),
        has_queries_(!queries.empty()),
        most_queries_(has_queries_ ? queries.rbegin()->first : 1),
        random_(kSeed, /*stream=*/0) {}

  int64_t num_texts() const {
    return has_queries_ && lengths_.size() > 0 ? queries_.size() : lengths_.size();
  }

  // Whether so many texts have few enough rows to be drawn.
  bool CanDraw(int64_t texts) const {
    return TensorBytes({texts, std::max<int64_t>(most_queries_, 1)}) <= kMostDrawnRows;
  }

  void BeginEpoch() {
    lengths_.Refill();
    queries_.Refill();
  }

  // From 0 on.
  int64_t NumberBelow(int64_t count) {
    return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(count)));
  }

  // The one that takes most comes first.
  std::vector<Text> Draw(int64_t count) {
    std::vector<Text> texts(static_cast<size_t>(count));
    for (Text& text : texts) {
      const int64_t queries = has_queries_ ? queries_.Draw(random_) : 1;
      text.assign(static_cast<size_t>(queries), lengths_.Draw(random_));
    }
    const auto size_of = [](const Text& text) {
      return text.empty() ? 0 : *std::max_element(text.begin(), text.end()) * std::ssize(text);
    };
    std::stable_sort(texts.begin(), texts.end(),
                     [&size_of](const Text& a, const Text& b) { return size_of(a) > size_of(b); });
    return texts;
  }

  // Of all texts these many, heaviest first: the longest rows are those of the texts that ask most,
  // as far as is known. The lightest come after them.
  std::vector<Text> Heaviest(int64_t heaviest, int64_t lightest) {
    std::vector<Text> texts;
    for (int64_t i = 0; i < heaviest; ++i) {
      Text& text = texts.emplace_back(has_queries_ ? queries_.DrawLargest() : 1);
      for (int64_t& row : text) row = lengths_.DrawLargest();
      std::fill(text.begin(), text.end(), text.empty() ? 0 : text.front());
    }
    for (int64_t i = 0; i < lightest; ++i) {
      Text& text = texts.emplace_back(has_queries_ ? queries_.DrawSmallest() : 1);
      for (int64_t& row : text) row = lengths_.DrawSmallest();
      std::fill(text.begin(), text.end(), text.empty() ? 0 : text.back());
    }
    std::reverse(texts.begin() + heaviest, texts.end());
    return texts;
  }

  // Queries of each text from now on, where they are padded: as many as any text of the data asks,
  // or of its part. Which of the two a configuration does is not known here.
  void PadToAll(bool all) { pads_to_all_ = all; }
  bool Pads() const { return has_queries_ && config_.pads_queries; }

  // What the texts of a part run as.
  void AddPieces(std::span<const Text> texts, std::vector<BatchShape>& pieces) const {
    std::vector<int64_t> rows;
    size_t most = pads_to_all_ ? static_cast<size_t>(most_queries_) : 0;
    for (const Text& text : texts) {
      rows.insert(rows.end(), text.begin(), text.end());
      most = std::max(most, text.size());
    }
    const size_t answered = rows.size();
    if (Pads()) {
      for (const Text& text : texts) {
        if (!text.empty()) rows.resize(rows.size() + most - text.size(), text.front());
      }
    }
    const size_t at_once = has_queries_ && config_.queries_at_once > 0
                               ? static_cast<size_t>(config_.queries_at_once)
                               : std::max<size_t>(rows.size(), 1);
    for (size_t begin = 0; begin < answered; begin += at_once) {
      pieces.push_back(
          ShapeOf(std::span(rows).subspan(begin, std::min(at_once, rows.size() - begin))));
    }
  }

 private:
  // As long as rows run: few lengths are left, where rows are padded.
  static LengthHistogram Merged(const EstimateInput& input, const LengthHistogram& lengths) {
    const int64_t most = std::min(input.config.max_length, input.model.max_positions);
    LengthHistogram merged;
    for (const auto& [length, count] : lengths) {
      const int64_t tokens = input.config.unpadded ? std::clamp<int64_t>(length, 1, most)
                                                   : LongestTokens(input, {{length, 1}});
      merged[tokens] += std::max<int64_t>(count, 0);
    }
    return merged;
  }

  BatchShape ShapeOf(std::span<const int64_t> rows) const {
    if (config_.unpadded) return BatchShape::Of(PackRows(rows));
    return {.rows = std::ssize(rows), .tokens = *std::max_element(rows.begin(), rows.end())};
  }

  const TrainingConfig& config_;
  Bag lengths_;
  Bag queries_;
  const bool has_queries_;
  const int64_t most_queries_;
  bool pads_to_all_ = false;
  Rng random_;
};

// Parts of `rows` texts each.
std::vector<BatchShape> PartsOf(const TextDraw& draw, std::span<const Text> texts, int64_t rows) {
  std::vector<BatchShape> parts;
  for (size_t begin = 0; begin < texts.size(); begin += static_cast<size_t>(rows)) {
    draw.AddPieces(texts.subspan(begin, std::min(texts.size() - begin, static_cast<size_t>(rows))),
                   parts);
  }
  if (parts.size() <= kMostParts) return parts;
  return {parts[0], parts[1], parts[parts.size() / 2], parts.back()};
}

// The effective batches of an epoch, or so many of a longer one.
class EpochDraw {
 public:
  // The draw has texts, so few in a batch that they can be drawn.
  EpochDraw(TextDraw& draw, int64_t batch, bool groups_by_length)
      : draw_(draw),
        batch_(batch),
        batches_((draw.num_texts() - 1) / batch + 1),
        last_(draw.num_texts() - (batches_ - 1) * batch),
        groups_by_length_(groups_by_length) {}

  std::vector<std::vector<Text>> Draw(int64_t most) {
    draw_.BeginEpoch();
    const int64_t wanted = std::min(batches_, most);
    return groups_by_length_ ? DrawPool(wanted) : DrawBatches(wanted);
  }

 private:
  // One of them, whichever, is the shorter one.
  std::vector<std::vector<Text>> DrawBatches(int64_t wanted) {
    const int64_t shorter = draw_.NumberBelow(wanted);
    std::vector<std::vector<Text>> batches;
    for (int64_t i = 0; i < wanted; ++i)
      batches.push_back(draw_.Draw(i == shorter ? last_ : batch_));
    return batches;
  }

  // Of a pool's batches, the heaviest texts together: those that come first where all are shuffled.
  std::vector<std::vector<Text>> DrawPool(int64_t wanted) {
    int64_t in_pool = std::min(batches_, kPoolBatches);
    while (in_pool > wanted && !draw_.CanDraw(in_pool * batch_)) --in_pool;
    std::vector<Text> texts = draw_.Draw((in_pool - 1) * batch_ + last_);
    std::vector<std::vector<Text>> batches;
    for (auto begin = texts.begin(); begin != texts.end();) {
      const auto end = begin + std::min<std::ptrdiff_t>(batch_, texts.end() - begin);
      batches.emplace_back(std::move_iterator(begin), std::move_iterator(end));
      begin = end;
    }
    for (int64_t i = 0; i < wanted; ++i) {
      std::swap(batches[static_cast<size_t>(i)],
                batches[static_cast<size_t>(i + draw_.NumberBelow(in_pool - i))]);
    }
    batches.resize(static_cast<size_t>(wanted));
    return batches;
  }

  TextDraw& draw_;
  const int64_t batch_;
  const int64_t batches_;
  const int64_t last_;  // texts of the batch that may be shorter
  const bool groups_by_length_;
};

std::vector<std::vector<BatchShape>> DrawSteps(const EstimateInput& input, const MemoryPlan& plan,
                                               int64_t num_steps) {
  TextDraw draw(input, input.workload.train_lengths, TrainingQueries(input));
  const int64_t texts = draw.num_texts();
  const int64_t batch = std::min(plan.effective_batch, texts);
  std::vector<std::vector<BatchShape>> steps;
  if (texts == 0 || !draw.CanDraw(batch)) return steps;
  EpochDraw epoch(draw, batch, input.config.group_by_length);
  for (int64_t step = 0; step < num_steps;) {
    for (const std::vector<Text>& rows : epoch.Draw(num_steps)) {
      if (step == num_steps) break;
      draw.PadToAll(step++ % 2 == 1);
      std::vector<BatchShape> parts = PartsOf(draw, rows, plan.micro_batch);
      if (!parts.empty()) steps.push_back(std::move(parts));
    }
  }
  return steps;
}

// The first two batches and the last one.
std::vector<BatchShape> Evaluation(const EstimateInput& input, const MemoryPlan& plan) {
  TextDraw draw(input, input.workload.validation_lengths, input.workload.validation_queries);
  const int64_t at_once = TensorBytes({plan.micro_batch, input.config.eval_batch_multiplier});
  const int64_t texts = draw.num_texts();
  const int64_t first = std::min(texts, TensorBytes({2, at_once}));
  const int64_t last = texts == first ? 0 : (texts - 1) % at_once + 1;
  if (texts == 0 || !draw.CanDraw(first + last)) return {};
  const std::vector<Text> rows = draw.Heaviest(first, last);
  std::vector<BatchShape> batches = PartsOf(draw, rows, at_once);
  if (draw.Pads()) {
    draw.PadToAll(true);
    for (BatchShape& batch : PartsOf(draw, rows, at_once)) batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace

DrawnBatches DrawBatches(const EstimateInput& input, const MemoryPlan& plan, int64_t num_steps) {
  return {.steps = DrawSteps(input, plan, num_steps), .evaluation = Evaluation(input, plan)};
}

}  // namespace hpo::memory
