// The fields of a model's shape and of what a worker tells of a data set.
#pragma once

#include "common/base/fields/json_fields.h"
#include "common/models/model_spec.h"
#include "common/models/workload.h"

namespace hpo {

// [[length, rows], ...] by length.
template <>
struct JsonForm<LengthHistogram> {
  static nlohmann::json Write(const LengthHistogram& histogram);
  static absl::StatusOr<LengthHistogram> Read(const nlohmann::json& json);
};

// Its sizes are checked, too.
template <>
struct JsonForm<ModelShape> {
  static absl::StatusOr<ModelShape> Read(const nlohmann::json& json) {
    return ModelShapeFromJson(json);
  }
};

void VisitFields(Is<RelativeAttention> auto& relative, auto visit) {
  visit({"span"}, relative.span);
  visit({"bucketed"}, relative.bucketed);
  visit({.key = "farthest", .presence = kAlways, .wire = kNotSent}, relative.farthest);
  visit({"content_to_position"}, relative.content_to_position);
  visit({"position_to_content"}, relative.position_to_content);
  visit({"share_projections"}, relative.share_projections);
}

void VisitFields(Is<RopeScaling> auto& rope, auto visit) {
  visit({"factor"}, rope.factor);
  visit({"low_frequency"}, rope.low_frequency);
  visit({"high_frequency"}, rope.high_frequency);
  visit({"original_positions"}, rope.original_positions);
}

void VisitFields(Is<ModelShape> auto& shape, auto visit) {
  visit({"family"}, shape.family);
  visit({"vocab_size"}, shape.vocab_size);
  visit({"hidden_size"}, shape.hidden_size);
  visit({"num_layers"}, shape.num_layers);
  visit({"num_heads"}, shape.num_heads);
  visit({"intermediate_size"}, shape.intermediate_size);
  visit({"max_positions"}, shape.max_positions);
  visit({"type_vocab_size"}, shape.type_vocab_size);
  visit({"layer_norm_eps", kAlways}, shape.layer_norm_eps);
  visit({"hidden_dropout", kAlways}, shape.hidden_dropout);
  visit({"attention_dropout", kAlways}, shape.attention_dropout);
  visit({"initializer_range", kAlways}, shape.initializer_range);
  visit({"pad_token_id", kAlways}, shape.pad_token_id);
  visit({"hidden_act", kAlways}, shape.hidden_act);
  visit({"num_key_value_heads", kAlways}, shape.num_key_value_heads);
  visit({"head_size", kAlways}, shape.head_size);
  visit({"embedding_size", kAlways}, shape.embedding_size);
  visit({"tied_head", kAlways}, shape.tied_head);
  visit({"attention_bias", kAlways}, shape.attention_bias);
  visit({"mlp_bias", kAlways}, shape.mlp_bias);
  visit({"embedding_dropout", kAlways}, shape.embedding_dropout);
  visit({"relative", kAlways}, shape.relative);
  visit({"relative_norm", kAlways}, shape.relative_norm);
  visit({"no_positions", kAlways}, shape.no_positions);
  visit({"conv_kernel_size", kAlways}, shape.conv_kernel_size);
  visit({"conv_act", kAlways}, shape.conv_act);
  visit({.key = "rope_theta", .presence = kAlways, .wire = kNotSent}, shape.rope_theta);
  visit({.key = "rope", .presence = kAlways, .wire = kNotSent}, shape.rope);
  visit({"stored_type", kAlways}, shape.stored_type);
}

void VisitFields(Is<DataSetFacts> auto& facts, auto visit) {
  visit({"name"}, facts.name);
  visit({"digest"}, facts.digest);
  visit({"rows"}, facts.rows);
  visit({"labels"}, facts.labels);
  visit({"multi_label", kAlways}, facts.multi_label);
  visit({"pairs", kAlways}, facts.pairs);
  visit({"lengths", kAlways}, facts.lengths);
}

}  // namespace hpo
