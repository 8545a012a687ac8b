#include "proto/convert/space_proto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "proto/convert/params_proto.h"

namespace hpo {
static void Set(const FloatDomain& domain, v1::Domain& proto) {
  v1::FloatDomain& out = *proto.mutable_float_domain();
  out.set_low(domain.low);
  out.set_high(domain.high);
  if (domain.step) out.set_step(*domain.step);
  out.set_log(domain.log);
}

static void Set(const IntDomain& domain, v1::Domain& proto) {
  v1::IntDomain& out = *proto.mutable_int_domain();
  out.set_low(domain.low);
  out.set_high(domain.high);
  out.set_step(domain.step);
  out.set_log(domain.log);
}

static void Set(const CategoricalDomain& domain, v1::Domain& proto) {
  v1::CategoricalDomain& out = *proto.mutable_categorical_domain();
  for (const ParamValue& choice : domain.choices) *out.add_choices() = ToProto(choice);
}

static FloatDomain FromProto(const v1::FloatDomain& proto) {
  FloatDomain domain{.low = proto.low(), .high = proto.high(), .log = proto.log()};
  if (proto.has_step()) domain.step = proto.step();
  return domain;
}

static IntDomain FromProto(const v1::IntDomain& proto) {
  return IntDomain{.low = proto.low(),
                   .high = proto.high(),
                   .step = proto.step() == 0 ? 1 : proto.step(),
                   .log = proto.log()};
}

static absl::StatusOr<std::vector<ParamValue>> ValuesFromProto(
    const google::protobuf::RepeatedPtrField<v1::Value>& proto) {
  std::vector<ParamValue> values;
  for (const v1::Value& value : proto) {
    HPO_ASSIGN_OR_RETURN(values.emplace_back(), FromProto(value));
  }
  return values;
}

static v1::Condition ToProto(const Condition& condition) {
  v1::Condition proto;
  proto.set_name(condition.name);
  for (const ParamValue& value : condition.values) *proto.add_values() = ToProto(value);
  return proto;
}

static absl::StatusOr<std::vector<Condition>> ConditionsFromProto(
    const google::protobuf::RepeatedPtrField<v1::Condition>& proto) {
  std::vector<Condition> conditions;
  for (const v1::Condition& in : proto) {
    Condition& condition = conditions.emplace_back(Condition{.name = in.name()});
    HPO_ASSIGN_OR_RETURN(condition.values, ValuesFromProto(in.values()));
  }
  return conditions;
}

static v1::Parameter ToProto(const Parameter& parameter) {
  v1::Parameter proto;
  proto.set_name(parameter.name);
  *proto.mutable_domain() = ToProto(parameter.domain);
  for (const Condition& condition : parameter.when) *proto.add_when() = ToProto(condition);
  proto.set_modelled(parameter.modelled);
  if (parameter.default_value) *proto.mutable_default_value() = ToProto(*parameter.default_value);
  return proto;
}

static absl::StatusOr<Parameter> FromProto(const v1::Parameter& proto) {
  Parameter parameter{.name = proto.name(), .modelled = proto.modelled()};
  HPO_ASSIGN_OR_RETURN(parameter.domain, FromProto(proto.domain()));
  HPO_ASSIGN_OR_RETURN(parameter.when, ConditionsFromProto(proto.when()));
  if (proto.has_default_value()) {
    HPO_ASSIGN_OR_RETURN(parameter.default_value, FromProto(proto.default_value()));
  }
  return parameter;
}

static v1::Narrowing ToProto(const Narrowing& narrowing) {
  v1::Narrowing proto;
  for (const Condition& condition : narrowing.when) *proto.add_when() = ToProto(condition);
  proto.set_name(narrowing.name);
  *proto.mutable_domain() = ToProto(narrowing.domain);
  return proto;
}

static absl::StatusOr<Narrowing> FromProto(const v1::Narrowing& proto) {
  Narrowing narrowing{.name = proto.name()};
  HPO_ASSIGN_OR_RETURN(narrowing.when, ConditionsFromProto(proto.when()));
  HPO_ASSIGN_OR_RETURN(narrowing.domain, FromProto(proto.domain()));
  return narrowing;
}

v1::Domain ToProto(const Domain& domain) {
  v1::Domain proto;
  std::visit([&proto](const auto& held) { Set(held, proto); }, domain);
  return proto;
}

absl::StatusOr<Domain> FromProto(const v1::Domain& proto) {
  switch (proto.kind_case()) {
    case v1::Domain::kFloatDomain:
      return FromProto(proto.float_domain());
    case v1::Domain::kIntDomain:
      return FromProto(proto.int_domain());
    case v1::Domain::kCategoricalDomain: {
      HPO_ASSIGN_OR_RETURN(std::vector<ParamValue> choices,
                           ValuesFromProto(proto.categorical_domain().choices()));
      return CategoricalDomain{.choices = std::move(choices)};
    }
    case v1::Domain::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "domain: expected float_domain, int_domain or categorical_domain, got none of them");
}

v1::SearchSpace ToProto(const SearchSpace& space) {
  v1::SearchSpace proto;
  for (const Parameter& parameter : space.parameters) {
    *proto.add_parameters() = ToProto(parameter);
  }
  for (const Narrowing& narrowing : space.narrowings) {
    *proto.add_narrowings() = ToProto(narrowing);
  }
  return proto;
}

absl::StatusOr<SearchSpace> FromProto(const v1::SearchSpace& proto) {
  SearchSpace space;
  for (const v1::Parameter& parameter : proto.parameters()) {
    HPO_ASSIGN_OR_RETURN(space.parameters.emplace_back(), FromProto(parameter));
  }
  for (const v1::Narrowing& narrowing : proto.narrowings()) {
    HPO_ASSIGN_OR_RETURN(space.narrowings.emplace_back(), FromProto(narrowing));
  }
  return space;
}

}  // namespace hpo
