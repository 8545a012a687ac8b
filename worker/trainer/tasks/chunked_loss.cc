#include "worker/trainer/tasks/chunked_loss.h"

#include <vector>

#include "common/base/status.h"
#include "worker/trainer/models/layers/recomputation.h"

namespace hpo::trainer {

torch::Tensor ChunkedCrossEntropy(const torch::Tensor& features, const torch::Tensor& labels,
                                  const LogitsOf& logits_of, int64_t rows_at_once) {
  HPO_CHECK(rows_at_once >= 1);
  torch::Tensor sum = at::zeros({}, features.options().dtype(torch::kFloat32));
  int64_t first = 0;
  // One split, so that the pieces' gradients are put together once.
  for (const torch::Tensor& piece : features.split(rows_at_once)) {
    const Segment segment = [logits_of, labels = labels.narrow(0, first, piece.size(0))](
                                const std::vector<torch::Tensor>& inputs) {
      // A statement of its own, so that logits of 16 bits are gone before the loss needs room.
      const torch::Tensor logits = logits_of(inputs.front()).to(torch::kFloat32);
      return at::cross_entropy_loss(logits, labels, /*weight=*/{}, at::Reduction::Sum,
                                    kIgnoredLabel);
    };
    sum = sum + RunRecomputed(segment, {piece}, /*has_parameters=*/true);
    first += piece.size(0);
  }
  return sum;
}

}  // namespace hpo::trainer
