#include "proto/convert/worker_proto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "proto/convert/enum_pairs.h"

namespace hpo {
namespace {

constexpr EnumPairs<ReleaseReason, v1::ReleaseReason, 3> kReleaseReasons = {{
    {ReleaseReason::kPreempted, v1::RELEASE_REASON_PREEMPTED},
    {ReleaseReason::kRejected, v1::RELEASE_REASON_REJECTED},
    {ReleaseReason::kUnhealthy, v1::RELEASE_REASON_UNHEALTHY},
}};

}  // namespace

static v1::RelativeAttention ToProto(const RelativeAttention& relative) {
  v1::RelativeAttention proto;
  proto.set_span(relative.span);
  proto.set_bucketed(relative.bucketed);
  proto.set_content_to_position(relative.content_to_position);
  proto.set_position_to_content(relative.position_to_content);
  proto.set_share_projections(relative.share_projections);
  return proto;
}

static RelativeAttention FromProto(const v1::RelativeAttention& proto) {
  return RelativeAttention{.span = proto.span(),
                           .bucketed = proto.bucketed(),
                           .content_to_position = proto.content_to_position(),
                           .position_to_content = proto.position_to_content(),
                           .share_projections = proto.share_projections()};
}

static v1::ModelShape ToProto(const ModelShape& shape) {
  v1::ModelShape proto;
  proto.set_family(shape.family);
  proto.set_vocab_size(shape.vocab_size);
  proto.set_hidden_size(shape.hidden_size);
  proto.set_num_layers(shape.num_layers);
  proto.set_num_heads(shape.num_heads);
  proto.set_intermediate_size(shape.intermediate_size);
  proto.set_max_positions(shape.max_positions);
  proto.set_type_vocab_size(shape.type_vocab_size);
  proto.set_layer_norm_eps(shape.layer_norm_eps);
  proto.set_hidden_dropout(shape.hidden_dropout);
  proto.set_attention_dropout(shape.attention_dropout);
  proto.set_initializer_range(shape.initializer_range);
  proto.set_pad_token_id(shape.pad_token_id);
  proto.set_hidden_act(shape.hidden_act);
  proto.set_num_key_value_heads(shape.num_key_value_heads);
  proto.set_head_size(shape.head_size);
  proto.set_embedding_size(shape.embedding_size);
  proto.set_tied_head(shape.tied_head);
  proto.set_attention_bias(shape.attention_bias);
  proto.set_mlp_bias(shape.mlp_bias);
  proto.set_embedding_dropout(shape.embedding_dropout);
  *proto.mutable_relative() = ToProto(shape.relative);
  proto.set_relative_norm(shape.relative_norm);
  proto.set_no_positions(shape.no_positions);
  proto.set_conv_kernel_size(shape.conv_kernel_size);
  proto.set_stored_type(shape.stored_type);
  return proto;
}

static ModelShape FromProto(const v1::ModelShape& proto) {
  return ModelShape{.family = proto.family(),
                    .vocab_size = proto.vocab_size(),
                    .hidden_size = proto.hidden_size(),
                    .num_layers = proto.num_layers(),
                    .num_heads = proto.num_heads(),
                    .intermediate_size = proto.intermediate_size(),
                    .max_positions = proto.max_positions(),
                    .type_vocab_size = proto.type_vocab_size(),
                    .layer_norm_eps = proto.layer_norm_eps(),
                    .hidden_dropout = proto.hidden_dropout(),
                    .attention_dropout = proto.attention_dropout(),
                    .initializer_range = proto.initializer_range(),
                    .pad_token_id = proto.pad_token_id(),
                    .hidden_act = proto.hidden_act(),
                    .num_key_value_heads = proto.num_key_value_heads(),
                    .head_size = proto.head_size(),
                    .embedding_size = proto.embedding_size(),
                    .tied_head = proto.tied_head(),
                    .attention_bias = proto.attention_bias(),
                    .mlp_bias = proto.mlp_bias(),
                    .embedding_dropout = proto.embedding_dropout(),
                    .relative = FromProto(proto.relative()),
                    .relative_norm = proto.relative_norm(),
                    .no_positions = proto.no_positions(),
                    .conv_kernel_size = proto.conv_kernel_size(),
                    .stored_type = proto.stored_type()};
}

static v1::Model ToProto(const ModelFacts& model) {
  v1::Model proto;
  proto.set_name(model.name);
  *proto.mutable_shape() = ToProto(model.shape);
  proto.set_digest(model.digest);
  proto.set_tokenizer_digest(model.tokenizer_digest);
  proto.set_has_weights(model.has_weights);
  return proto;
}

static ModelFacts FromProto(const v1::Model& proto) {
  return ModelFacts{.name = proto.name(),
                    .shape = FromProto(proto.shape()),
                    .digest = proto.digest(),
                    .tokenizer_digest = proto.tokenizer_digest(),
                    .has_weights = proto.has_weights()};
}

static v1::DataSet ToProto(const DataSetFacts& data) {
  v1::DataSet proto;
  proto.set_name(data.name);
  proto.set_digest(data.digest);
  proto.set_rows(data.rows);
  proto.mutable_labels()->Assign(data.labels.begin(), data.labels.end());
  proto.set_multi_label(data.multi_label);
  proto.set_pairs(data.pairs);
  for (const auto& [tokenizer, histogram] : data.lengths) {
    auto& rows = *(*proto.mutable_lengths())[tokenizer].mutable_rows_by_length();
    for (const auto& [length, count] : histogram) rows[length] = count;
  }
  return proto;
}

static absl::StatusOr<DataSetFacts> FromProto(const v1::DataSet& proto) {
  DataSetFacts data{.name = proto.name(),
                    .digest = proto.digest(),
                    .rows = proto.rows(),
                    .labels = {proto.labels().begin(), proto.labels().end()},
                    .multi_label = proto.multi_label(),
                    .pairs = proto.pairs()};
  for (const auto& [tokenizer, histogram] : proto.lengths()) {
    LengthHistogram& lengths = data.lengths[tokenizer];
    for (const auto& [length, count] : histogram.rows_by_length()) {
      if (length < 1 || count < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("data set ", data.name, ": expected lengths >= 1 and counts >= 0, got ",
                         count, " rows of length ", length));
      }
      lengths[length] = count;
    }
  }
  return data;
}

static v1::DeviceProfile ToProto(const DeviceProfile& device) {
  v1::DeviceProfile proto;
  proto.set_kind(device.kind);
  proto.set_name(device.name);
  proto.set_uuid(device.uuid);
  proto.set_driver(device.driver);
  proto.set_total_bytes(device.total.count);
  proto.set_base_bytes(device.base.count);
  proto.set_workspace_bytes(device.workspace.count);
  proto.set_source(device.source);
  proto.set_torch_build(device.torch_build);
  proto.set_capability(device.capability);
  proto.set_attention(device.attention);
  proto.set_allocator(device.allocator);
  proto.set_threads(device.threads);
  proto.set_multiprocessors(device.multiprocessors);
  proto.set_threads_per_multiprocessor(device.threads_per_multiprocessor);
  return proto;
}

static DeviceProfile FromProto(const v1::DeviceProfile& proto) {
  return DeviceProfile{.kind = proto.kind(),
                       .name = proto.name(),
                       .uuid = proto.uuid(),
                       .driver = proto.driver(),
                       .total = Bytes{proto.total_bytes()},
                       .base = Bytes{proto.base_bytes()},
                       .workspace = Bytes{proto.workspace_bytes()},
                       .source = proto.source().empty() ? "default" : proto.source(),
                       .torch_build = proto.torch_build(),
                       .capability = proto.capability(),
                       .attention = proto.attention(),
                       .allocator = proto.allocator(),
                       .threads = proto.threads(),
                       .multiprocessors = proto.multiprocessors(),
                       .threads_per_multiprocessor = proto.threads_per_multiprocessor()};
}

v1::RegisterWorkerRequest ToProto(const WorkerFacts& facts) {
  v1::RegisterWorkerRequest proto;
  proto.set_worker(facts.worker);
  proto.set_instance_key(facts.instance_key);
  proto.set_version(facts.version);
  proto.set_torch_build(facts.torch_build);
  proto.set_trainer(facts.trainer);
  proto.set_plans(facts.plans);
  *proto.mutable_device() = ToProto(facts.device);
  proto.set_capacity_bytes(facts.capacity.count);
  for (const ModelFacts& model : facts.models) *proto.add_models() = ToProto(model);
  for (const DataSetFacts& data : facts.data_sets) *proto.add_data_sets() = ToProto(data);
  if (facts.serves) {
    proto.mutable_serves()->mutable_names()->Assign(facts.serves->begin(), facts.serves->end());
  }
  return proto;
}

absl::StatusOr<WorkerFacts> FromProto(const v1::RegisterWorkerRequest& proto) {
  if (proto.worker().empty() || proto.instance_key().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a worker name and an instance key, got '", proto.worker(), "' and '",
                     proto.instance_key(), "'"));
  }
  WorkerFacts facts{.worker = proto.worker(),
                    .instance_key = proto.instance_key(),
                    .version = proto.version(),
                    .torch_build = proto.torch_build(),
                    .trainer = proto.trainer(),
                    .plans = proto.plans(),
                    .device = FromProto(proto.device()),
                    .capacity = Bytes{proto.capacity_bytes()}};
  for (const v1::Model& model : proto.models()) facts.models.push_back(FromProto(model));
  for (const v1::DataSet& data : proto.data_sets()) {
    HPO_ASSIGN_OR_RETURN(facts.data_sets.emplace_back(), FromProto(data));
  }
  if (proto.has_serves()) {
    facts.serves.emplace(proto.serves().names().begin(), proto.serves().names().end());
  }
  return facts;
}

v1::ReleaseReason ToProto(ReleaseReason reason) { return ToWire(kReleaseReasons, reason); }

absl::StatusOr<ReleaseReason> FromProto(v1::ReleaseReason proto) {
  return FromWire(kReleaseReasons, proto, "a release reason");
}

}  // namespace hpo
