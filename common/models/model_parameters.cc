#include "common/models/model_parameters.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/models/model_modules.h"

namespace hpo {
namespace {

constexpr int64_t kMaxLabels = 1 << 20;

// Appends tensors under a name prefix, as modules nest.
class ModuleTensors {
 public:
  // What follows is named under `root`: "bert." of the model under a task head.
  void Enter(absl::string_view root, int64_t layer) {
    root_ = std::string(root);
    layer_ = layer;
  }

  void EnterLayer(int64_t layer) { layer_ = layer; }

  void Embedding(absl::string_view module, int64_t rows, int64_t columns) {
    Add(absl::StrCat(module, ".weight"), ParameterKind::kEmbedding, rows, columns);
  }

  void Linear(absl::string_view module, int64_t outputs, int64_t inputs, bool bias = true) {
    Add(absl::StrCat(module, ".weight"), ParameterKind::kLinear, outputs, inputs);
    if (bias) Add(absl::StrCat(module, ".bias"), ParameterKind::kBias, outputs, 1);
  }

  void TransposedLinear(absl::string_view module, int64_t outputs, int64_t inputs) {
    Add(absl::StrCat(module, ".weight"), ParameterKind::kTransposedLinear, inputs, outputs);
    Add(absl::StrCat(module, ".bias"), ParameterKind::kBias, outputs, 1);
  }

  void LayerNorm(absl::string_view module, int64_t width) {
    RmsNorm(module, width);
    Add(absl::StrCat(module, ".bias"), ParameterKind::kNorm, width, 1);
  }

  void RmsNorm(absl::string_view module, int64_t width) {
    Add(absl::StrCat(module, ".weight"), ParameterKind::kNorm, width, 1);
  }

  void Convolution(absl::string_view module, int64_t outputs, int64_t inputs, int64_t width) {
    Add(absl::StrCat(module, ".weight"), ParameterKind::kConvolution, outputs, inputs * width);
    Add(absl::StrCat(module, ".bias"), ParameterKind::kBias, outputs, 1);
  }

  std::vector<ParameterTensor> Take() { return std::move(tensors_); }

 private:
  void Add(std::string name, ParameterKind kind, int64_t rows, int64_t columns) {
    tensors_.push_back({absl::StrCat(root_, name), kind, rows, columns, layer_});
  }

  std::string root_;
  int64_t layer_ = -1;
  std::vector<ParameterTensor> tensors_;
};

// Relative positions' own projections.
void AddPositionProjections(const RelativeAttention& relative, const std::string& layer,
                            int64_t hidden, ModuleTensors& out) {
  if (relative.span == 0 || relative.share_projections) return;
  if (relative.content_to_position)
    out.Linear(layer + "attention.self.pos_key_proj", hidden, hidden);
  if (relative.position_to_content) {
    out.Linear(layer + "attention.self.pos_query_proj", hidden, hidden);
  }
}

// BERT and its descendants.
void AddEncoderLayers(const ModelShape& shape, ModelFamily family, ModuleTensors& out) {
  const EncoderLayerModules& modules = EncoderLayerModulesOf(family);
  const int64_t hidden = shape.hidden_size;
  for (int64_t i = 0; i < shape.num_layers; ++i) {
    const std::string layer = absl::StrCat(ModulesOf(family).layers, ".", i, ".");
    out.EnterLayer(i);
    for (const char* name : {modules.query, modules.key, modules.value}) {
      out.Linear(layer + name, hidden, hidden);
    }
    AddPositionProjections(shape.relative, layer, hidden, out);
    out.Linear(layer + modules.attention_dense, hidden, hidden);
    out.LayerNorm(layer + modules.attention_norm, hidden);
    out.Linear(layer + modules.intermediate, shape.intermediate_size, hidden);
    out.Linear(layer + modules.output_dense, hidden, shape.intermediate_size);
    out.LayerNorm(layer + modules.output_norm, hidden);
  }
  out.EnterLayer(shape.num_layers);
}

// ELECTRA's too, and DistilBERT's, which has no token types.
void AddBert(const ModelShape& shape, ModelFamily family, ModuleTensors& out) {
  const int64_t width = shape.EmbeddingSize();
  out.Embedding("embeddings.word_embeddings", shape.vocab_size, width);
  out.Embedding("embeddings.position_embeddings", shape.max_positions, width);
  if (family != ModelFamily::kDistilBert) {
    out.Embedding("embeddings.token_type_embeddings", shape.type_vocab_size, width);
  }
  out.LayerNorm("embeddings.LayerNorm", width);
  if (width != shape.hidden_size) out.Linear("embeddings_project", shape.hidden_size, width);
  AddEncoderLayers(shape, family, out);
}

void AddRoberta(const ModelShape& shape, ModuleTensors& out) {
  const int64_t hidden = shape.hidden_size;
  out.Embedding("embeddings.word_embeddings", shape.vocab_size, hidden);
  out.Embedding("embeddings.token_type_embeddings", shape.type_vocab_size, hidden);
  out.LayerNorm("embeddings.LayerNorm", hidden);
  out.Embedding("embeddings.position_embeddings", shape.max_positions + UnusedPositions(shape),
                hidden);
  AddEncoderLayers(shape, ModelFamily::kRoberta, out);
}

void AddDebertaEmbeddings(const ModelShape& shape, ModuleTensors& out) {
  const int64_t width = shape.EmbeddingSize();
  out.Embedding("embeddings.word_embeddings", shape.vocab_size, width);
  if (!shape.no_positions) {
    out.Embedding("embeddings.position_embeddings", shape.max_positions, width);
  }
  if (shape.type_vocab_size > 0) {
    out.Embedding("embeddings.token_type_embeddings", shape.type_vocab_size, width);
  }
  if (width != shape.hidden_size) {
    out.Linear("embeddings.embed_proj", shape.hidden_size, width, /*bias=*/false);
  }
  out.LayerNorm("embeddings.LayerNorm", shape.hidden_size);
}

void AddDeberta(const ModelShape& shape, ModuleTensors& out) {
  const int64_t hidden = shape.hidden_size;
  AddDebertaEmbeddings(shape, out);
  AddEncoderLayers(shape, ModelFamily::kDeberta, out);
  if (shape.relative.span > 0) {
    out.Embedding("encoder.rel_embeddings", 2 * shape.relative.span, hidden);
  }
  if (shape.relative_norm) out.LayerNorm("encoder.LayerNorm", hidden);
  if (shape.conv_kernel_size > 0) {
    out.Convolution("encoder.conv.conv", hidden, hidden, shape.conv_kernel_size);
    out.LayerNorm("encoder.conv.LayerNorm", hidden);
  }
}

void AddGpt2(const ModelShape& shape, ModuleTensors& out) {
  const int64_t hidden = shape.hidden_size;
  out.Embedding("wte", shape.vocab_size, hidden);
  out.Embedding("wpe", shape.max_positions, hidden);
  for (int64_t i = 0; i < shape.num_layers; ++i) {
    const std::string layer = absl::StrCat("h.", i, ".");
    out.EnterLayer(i);
    out.LayerNorm(layer + "ln_1", hidden);
    out.TransposedLinear(layer + "attn.c_attn", 3 * hidden, hidden);
    out.TransposedLinear(layer + "attn.c_proj", hidden, hidden);
    out.LayerNorm(layer + "ln_2", hidden);
    out.TransposedLinear(layer + "mlp.c_fc", shape.intermediate_size, hidden);
    out.TransposedLinear(layer + "mlp.c_proj", hidden, shape.intermediate_size);
  }
  out.EnterLayer(shape.num_layers);
  out.LayerNorm("ln_f", hidden);
}

// Llama, and Qwen2, which has biases of query, key and value always.
void AddLlama(const ModelShape& shape, bool qkv_bias, ModuleTensors& out) {
  const int64_t hidden = shape.hidden_size;
  const int64_t queries = shape.num_heads * shape.HeadSize();
  const int64_t keys = shape.KeyValueHeads() * shape.HeadSize();
  out.Embedding("embed_tokens", shape.vocab_size, hidden);
  for (int64_t i = 0; i < shape.num_layers; ++i) {
    const std::string layer = absl::StrCat("layers.", i, ".");
    out.EnterLayer(i);
    out.Linear(layer + "self_attn.q_proj", queries, hidden, qkv_bias);
    out.Linear(layer + "self_attn.k_proj", keys, hidden, qkv_bias);
    out.Linear(layer + "self_attn.v_proj", keys, hidden, qkv_bias);
    out.Linear(layer + "self_attn.o_proj", hidden, queries, shape.attention_bias);
    out.Linear(layer + "mlp.gate_proj", shape.intermediate_size, hidden, shape.mlp_bias);
    out.Linear(layer + "mlp.up_proj", shape.intermediate_size, hidden, shape.mlp_bias);
    out.Linear(layer + "mlp.down_proj", hidden, shape.intermediate_size, shape.mlp_bias);
    out.RmsNorm(layer + "input_layernorm", hidden);
    out.RmsNorm(layer + "post_attention_layernorm", hidden);
  }
  out.EnterLayer(shape.num_layers);
  out.RmsNorm("norm", hidden);
}

void AddModel(const ModelShape& shape, ModelFamily family, ModuleTensors& out) {
  switch (family) {
    case ModelFamily::kBert:
    case ModelFamily::kElectra:
    case ModelFamily::kDistilBert:
      return AddBert(shape, family, out);
    case ModelFamily::kRoberta:
      return AddRoberta(shape, out);
    case ModelFamily::kDeberta:
      return AddDeberta(shape, out);
    case ModelFamily::kGpt2:
      return AddGpt2(shape, out);
    case ModelFamily::kLlama:
      return AddLlama(shape, shape.attention_bias, out);
    case ModelFamily::kQwen2:
      return AddLlama(shape, /*qkv_bias=*/true, out);
  }
}

// BERT has one under any head, RoBERTa only as a bare model; DeBERTa's belongs to its head.
bool HasPooler(ModelFamily family, const TaskHead& head) {
  return family == ModelFamily::kBert ||
         (family == ModelFamily::kRoberta && head.kind == TaskHead::Kind::kNone);
}

void AddClassificationHead(ModelFamily family, int64_t hidden, const TaskHead& head,
                           ModuleTensors& out) {
  const ClassifierModules& modules = ModulesOf(family).classifier;
  if (modules.dense != nullptr && !HasPooler(family, head))
    out.Linear(modules.dense, hidden, hidden);
  out.Linear(modules.output, head.num_labels, hidden, modules.output_bias);
}

// The library builds the heads of XLM-R and CamemBERT before the model.
bool HeadComesFirst(const ModelShape& shape, ModelFamily family) {
  return family == ModelFamily::kRoberta && shape.family != "roberta";
}

absl::Status CheckHead(const ModelShape& shape, ModelFamily family, const TaskHead& head) {
  if (head.kind == TaskHead::Kind::kCausalLm && !IsDecoder(family)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "head: expected a decoder (gpt2, llama, qwen2) under a language-model head, got ",
        shape.family));
  }
  if (head.kind == TaskHead::Kind::kSequenceClassification &&
      (head.num_labels < 1 || head.num_labels > kMaxLabels)) {
    return absl::InvalidArgumentError(absl::StrCat("num_labels: expected an integer in [1, ",
                                                   kMaxLabels, "], got ", head.num_labels));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ParameterTensor>> ParameterTensors(const ModelShape& shape,
                                                              const TaskHead& head) {
  HPO_RETURN_IF_ERROR(CheckKnownFamily(shape));
  HPO_RETURN_IF_ERROR(CheckShape(shape, ShapeKeys{}));
  const ModelFamily family = *ModelFamilyOf(shape.family);
  HPO_RETURN_IF_ERROR(CheckHead(shape, family, head));
  const bool bare = head.kind == TaskHead::Kind::kNone;
  ModuleTensors out;
  const auto add_head = [&] {
    out.Enter("", shape.num_layers);
    if (head.kind == TaskHead::Kind::kSequenceClassification) {
      AddClassificationHead(family, shape.hidden_size, head, out);
    } else if (head.kind == TaskHead::Kind::kCausalLm && !shape.tied_head) {
      out.Linear("lm_head", shape.vocab_size, shape.hidden_size, /*bias=*/false);
    }
  };
  const bool head_first = HeadComesFirst(shape, family);
  if (head_first) add_head();
  out.Enter(bare ? "" : absl::StrCat(ModulesOf(family).prefix, "."), -1);
  AddModel(shape, family, out);
  if (HasPooler(family, head)) out.Linear("pooler.dense", shape.hidden_size, shape.hidden_size);
  if (!head_first) add_head();
  return out.Take();
}

int64_t CountElements(const std::vector<ParameterTensor>& tensors) {
  int64_t elements = 0;
  for (const ParameterTensor& tensor : tensors) elements += tensor.NumElements();
  return elements;
}

absl::StatusOr<int64_t> NumParameters(const ModelShape& shape, const TaskHead& head) {
  // Layers are equal, so that two of them tell of all, a hundred times sooner for a deep model.
  HPO_RETURN_IF_ERROR(CheckShape(shape, ShapeKeys{}));
  ModelShape shallow = shape;
  shallow.num_layers = 1;
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> one, ParameterTensors(shallow, head));
  shallow.num_layers = 2;
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> two, ParameterTensors(shallow, head));
  const int64_t first = CountElements(one);
  return first + (shape.num_layers - 1) * (CountElements(two) - first);
}

bool IsHeavy(const ModelShape& shape) {
  return NumParameters(shape).value_or(0) >= kHeavyParameters;
}

}  // namespace hpo
