#include "worker/trainer/tasks/text_task.h"

#include <utility>

namespace hpo::trainer {

TextTask::TextTask(std::shared_ptr<TextClassifier> model, const TaskParts& parts)
    : model_(std::move(model)), parts_(parts) {}

double TextTask::WeightOf(std::span<const int64_t> rows) const {
  return static_cast<double>(rows.size());
}

std::vector<text::BatchRows> TextTask::PiecesOf(std::span<const int64_t> rows) const {
  return {{rows.begin(), rows.end()}};
}

text::TokenBatch TextTask::TokensOf(std::span<const int64_t> rows) const {
  return parts_.BatchOf(parts_.data.train, rows);
}

DeviceBatch TextTask::ToTensors(const text::TokenBatch& tokens) const {
  return ToDevice(tokens, parts_.data.train.num_labels, parts_.device);
}

}  // namespace hpo::trainer
