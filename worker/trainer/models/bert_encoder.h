// BERT's encoder: embeddings, post-norm transformer layers, pooler. Module names are Hugging Face's
// ("embeddings.word_embeddings.weight", "encoder.layer.0.attention.self.query.bias", ...).
// Source: Devlin et al. 2018 (arXiv:1810.04805); names and numerical details, transformers'
// BertModel.
#pragma once

#include <vector>

#include "common/model_spec.h"
#include "worker/trainer/models/layers.h"
#include "worker/trainer/torch_headers.h"

namespace hpo {

// All [batch, tokens] int64 on the model's device. mask: 1 = token, 0 = padding, at least one token
// in every row.
struct EncoderInput {
  torch::Tensor ids;
  torch::Tensor mask;
  torch::Tensor type_ids;
};

class BertEmbeddingsImpl : public torch::nn::Module {
 public:
  BertEmbeddingsImpl(const ModelShape& shape, torch::Device device);
  // Result: [batch, tokens, hidden_size].
  torch::Tensor forward(const EncoderInput& input);

 private:
  Embedding word_embeddings_;
  Embedding position_embeddings_;
  Embedding token_type_embeddings_;
  LayerNorm layer_norm_;
  double dropout_;
};
TORCH_MODULE(BertEmbeddings);

// Projections of one attention layer ("attention.self").
class BertSelfAttentionImpl : public torch::nn::Module {
 public:
  BertSelfAttentionImpl(const ModelShape& shape, torch::Device device);
  // hidden: [batch, tokens, hidden_size]; bias: AttentionBias. Result: as hidden.
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& bias);

 private:
  torch::Tensor SplitHeads(const torch::Tensor& projected) const;

  Linear query_;
  Linear key_;
  Linear value_;
  int64_t num_heads_;
  double dropout_;
};
TORCH_MODULE(BertSelfAttention);

// dense, dropout, residual sum, LayerNorm: closes both halves of a layer.
class BertOutputImpl : public torch::nn::Module {
 public:
  BertOutputImpl(int64_t in_features, const ModelShape& shape, torch::Device device);
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& residual);

 private:
  Linear dense_;
  LayerNorm layer_norm_;
  double dropout_;
};
TORCH_MODULE(BertOutput);

class BertLayerImpl : public torch::nn::Module {
 public:
  BertLayerImpl(const ModelShape& shape, torch::Device device);
  // hidden: [batch, tokens, hidden_size]. Result: the same shape.
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& bias);

 private:
  BertSelfAttention self_attention_ = nullptr;
  BertOutput attention_output_ = nullptr;
  Linear intermediate_ = nullptr;
  BertOutput output_ = nullptr;
};
TORCH_MODULE(BertLayer);

class BertModelImpl : public torch::nn::Module {
 public:
  BertModelImpl(const ModelShape& shape, torch::Device device);

  // The pooled first token, [batch, hidden_size]. When `hidden_states` is given, the embeddings'
  // output and each layer's are appended to it.
  torch::Tensor forward(const EncoderInput& input,
                        std::vector<torch::Tensor>* hidden_states = nullptr,
                        int64_t checkpoint_every = 0);

 private:
  torch::Tensor RunLayers(int64_t first, int64_t count, torch::Tensor hidden,
                          const torch::Tensor& bias);

  BertEmbeddings embeddings_;
  torch::nn::ModuleList layers_;
  Linear pooler_ = nullptr;
};
TORCH_MODULE(BertModel);

}  // namespace hpo
