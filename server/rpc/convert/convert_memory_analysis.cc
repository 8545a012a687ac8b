#include "server/rpc/convert/convert_memory_analysis.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/base/status.h"
#include "proto/convert/params_proto.h"

namespace hpo::server {
namespace {

int32_t Clamped(int64_t number) {
  return static_cast<int32_t>(std::min<int64_t>(number, std::numeric_limits<int32_t>::max()));
}

std::vector<Bytes> SizesOf(const google::protobuf::RepeatedField<int64_t>& sizes) {
  std::vector<Bytes> bytes;
  for (const int64_t size : sizes) bytes.push_back(Bytes{size});
  return bytes;
}

char LetterOf(memory::CellVerdict verdict) {
  constexpr char kLetters[] = "FPNU";  // by CellVerdict
  return kLetters[static_cast<size_t>(verdict)];
}

void SetCount(const memory::PolicyCount& count, v1::MemoryFitCount& proto) {
  proto.set_fits(count.fits);
  proto.set_does_not_fit(count.does_not_fit);
  proto.set_unknown(count.unknown);
  if (!count.cut.has_value()) return;
  v1::MemoryCut& cut = *proto.mutable_cut();
  cut.set_parameter(count.cut->parameter);
  cut.set_description(count.cut->description);
  cut.set_misfits_removed(count.cut->misfits_removed);
  cut.set_misfits_left(count.cut->misfits_left);
  cut.set_fits_lost(count.cut->fits_lost);
}

void SetModel(const memory::ModelSurvey& model, v1::MemoryFitModel& proto) {
  proto.set_name(model.name);
  proto.set_configurations(model.configurations);
  proto.set_known(model.known);
  proto.set_smallest_bytes(model.smallest_literal.count);
  proto.set_smallest_planned_bytes(model.smallest_plan.count);
  proto.set_largest_bytes(model.largest_literal.count);
  proto.mutable_literal_fits()->Add(model.strict_fits.begin(), model.strict_fits.end());
  proto.mutable_planned_fits()->Add(model.plan_fits.begin(), model.plan_fits.end());
}

}  // namespace

absl::StatusOr<FrontierQuery> FromProto(const v1::GetMemoryFrontierRequest& proto) {
  FrontierQuery query{.x = proto.x(),
                      .y = proto.y(),
                      .capacities = SizesOf(proto.capacities()),
                      .worker = proto.worker(),
                      .points = proto.points()};
  for (const auto& [name, value] : proto.params()) {
    absl::StatusOr<ParamValue> read = hpo::FromProto(value);
    if (!read.ok()) return Annotate(read.status(), "parameter " + name);
    query.params.emplace(name, *std::move(read));
  }
  return query;
}

v1::GetMemoryFrontierResponse ToProto(const MemoryFrontier& frontier) {
  const memory::NeedGrid& grid = frontier.grid;
  v1::GetMemoryFrontierResponse proto;
  proto.set_x(grid.x);
  proto.set_y(grid.y);
  for (const ParamValue& value : grid.x_values) *proto.add_x_values() = hpo::ToProto(value);
  for (const ParamValue& value : grid.y_values) *proto.add_y_values() = hpo::ToProto(value);
  for (const Bytes needed : grid.needed) proto.add_needed_bytes(needed.count);
  for (const memory::NeedGridGpu& gpu : grid.gpus) {
    v1::FrontierGpu& shown = *proto.add_gpus();
    shown.set_capacity_bytes(gpu.capacity.count);
    shown.set_usable_bytes(gpu.usable.count);
    for (const int64_t rows : gpu.micro_batches) shown.add_micro_batches(Clamped(rows));
    for (const memory::CellVerdict verdict : gpu.verdicts) {
      shown.mutable_verdicts()->push_back(LetterOf(verdict));
    }
  }
  for (const auto& [name, value] : grid.params) {
    (*proto.mutable_params())[name] = hpo::ToProto(value);
  }
  proto.set_basis(frontier.basis);
  return proto;
}

std::vector<Bytes> CapacitiesOf(const v1::GetMemoryFitRequest& proto) {
  return SizesOf(proto.capacities());
}

v1::GetMemoryFitResponse ToProto(const memory::SpaceSurvey& survey) {
  v1::GetMemoryFitResponse proto;
  proto.set_configurations(survey.configurations);
  proto.set_sampled(survey.sampled);
  proto.set_unknown(survey.unknown);
  for (const std::string& name : survey.parameters) proto.add_parameters(name);
  for (const memory::ModelSurvey& model : survey.models) SetModel(model, *proto.add_models());
  for (const memory::CardSurvey& card : survey.cards) {
    v1::MemoryFitGpu& gpu = *proto.add_gpus();
    gpu.set_capacity_bytes(card.capacity.count);
    gpu.set_usable_bytes(card.usable.count);
    SetCount(card.strict, *gpu.mutable_literal());
    SetCount(card.plan, *gpu.mutable_planned());
  }
  return proto;
}

}  // namespace hpo::server
