// A described step's encoder layers as torch.nn.TransformerEncoderLayer runs them, with
// batch_first. Event by event: tests/memory/described_step_events_test.cc.
#pragma once

#include <array>
#include <vector>

#include "memory/offline/step_description.h"
#include "memory/ops/attention_ops.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/linear_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

class DescribedEncoder {
 public:
  // Allocates the parameters. `ops`, `step` and `layer`, which is one of the step's, outlive it.
  DescribedEncoder(TracedDevice& device, const StepDescription& step, const EncoderLayers& layer,
                   int64_t width);

  // In the order of torch's parameters().
  const std::vector<TracedParameter>& parameters() const { return parameters_; }

  struct Pass {
    int64_t rows = 0;
    bool training = true;
  };
  // input: [rows, tokens, width].
  TracedTensor Run(const TracedTensor& input, const Pass& pass);

 private:
  struct Layer {
    TracedLinear in_projection, out_projection, linear1, linear2;
    TracedNorm norm1, norm2;
  };
  using AttentionInputs = std::array<TracedTensor, 3>;  // query, key, value

  void Make(Layer& layer);
  TracedTensor RunLayer(const Layer& layer, TracedTensor x);
  TracedTensor AddNormed(const TracedTensor& x, TracedTensor change, const TracedNorm& norm);
  TracedTensor SelfAttention(const Layer& layer, TracedTensor x);
  AttentionInputs Split(const TracedTensor& packed);
  TracedTensor FeedForward(const Layer& layer, TracedTensor x);
  TracedTensor Dropout(const TracedTensor& x);
  TracedTensor RunFused(const Layer& layer, TracedTensor x);
  TracedTensor FusedAttention(const Layer& layer, const TracedTensor& x);
  bool FusesAttention() const;
  bool FusesLayers() const;
  // Whether tokens before rows is another layout than rows before tokens.
  bool SwapsTokens() const { return rows_ > 1 && tokens_ > 1; }
  bool CopiesContext() const;
  AttentionShape Shape() const;

  TracedDevice& device_;
  const StepDescription& step_;
  const EncoderLayers& described_;
  int64_t width_ = 0;
  std::vector<Layer> layers_;
  std::vector<TracedParameter> parameters_;
  // Of what runs.
  int64_t rows_ = 0;
  int64_t tokens_ = 0;
  bool training_ = true;
};

}  // namespace hpo::memory
