// A transformer without its head: what all families have in common. A family (bert_model,
// deberta_model, gpt2_model, llama_model) makes its modules, embeds the tokens and says what its
// layers see; the loop over the layers is here, once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/models/model_spec.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/layers/packed_input.h"

namespace hpo::trainer {

// All [batch, tokens] int64 on the model's device, or packed [1, tokens]. mask: 1 = token, 0 =
// padding, at least one token in every row; undefined where rows are packed, which the families of
// CheckUnpadded (memory/need/memory_estimate.h) alone can take. type_ids: ignored by
// families without token types.
struct ModelInput {
  torch::Tensor ids;
  torch::Tensor mask;
  torch::Tensor type_ids;
  PackedInput packed = {};
};

// What every layer of one pass sees alike. What a family does not use is undefined. Gradients flow
// through `relative` alone.
struct LayerContext {
  torch::Tensor bias;  // see models/attention.h
  PackedInput packed;  // in the bias's place

  // DeBERTa: the batch's mask; rows of the relative table, [rows, hidden_size]; and which of them
  // belongs to each distance from tokens - 1 down to 1 - tokens, and up again.
  torch::Tensor mask;
  torch::Tensor relative;
  torch::Tensor falling_rows;
  torch::Tensor rising_rows;

  // Llama: [tokens, head_size].
  torch::Tensor cosines;
  torch::Tensor sines;
};

// One layer. forward is a function of its arguments and of dropout's random numbers, so that it may
// be run again (gradient checkpointing).
class TransformerLayer : public torch::nn::Module {
 public:
  // hidden: [batch, tokens, hidden_size]. Result: the same shape.
  virtual torch::Tensor forward(const torch::Tensor& hidden, const LayerContext& context) = 0;
};

class Backbone : public torch::nn::Module {
 public:
  // From now on backward computes `every` layers at a time again instead of keeping what they make;
  // 0: none.
  void SetCheckpointing(int64_t every) { checkpoint_every_ = every; }

  // The last hidden state, [batch, tokens, hidden_size] as the input's ids. When `hidden_states` is
  // given, what goes into each layer and the result are appended to it.
  torch::Tensor forward(const ModelInput& input,
                        std::vector<torch::Tensor>* hidden_states = nullptr);

  // [vocab_size, embedding width].
  virtual torch::Tensor WordEmbeddings() const = 0;

 protected:
  // Makes the layers, named by their numbers below `path` ("encoder.layer").
  void AddLayers(absl::string_view path, int64_t count,
                 const std::function<std::shared_ptr<TransformerLayer>(int64_t)>& make);

 private:
  virtual LayerContext ContextOf(const ModelInput& input) = 0;
  // [batch, tokens, hidden_size].
  virtual torch::Tensor Embed(const ModelInput& input) = 0;
  // After the last layer.
  virtual torch::Tensor Finish(const torch::Tensor& hidden) { return hidden; }

  // Layers `first` to `first + count`.
  torch::Tensor RunLayers(int64_t first, int64_t count, torch::Tensor hidden,
                          const LayerContext& context) const;
  torch::Tensor RunRecomputedLayers(int64_t first, int64_t count, const torch::Tensor& hidden,
                                    const LayerContext& context) const;

  std::vector<std::shared_ptr<TransformerLayer>> layers_;
  int64_t checkpoint_every_ = 0;
};

// The model that `shape.family` names, its parameters on `device` and not initialised. The family
// is one that TrainerSupports.
std::shared_ptr<Backbone> MakeBackbone(const ModelShape& shape, torch::Device device);

}  // namespace hpo::trainer
