#include "proto/convert/space_proto.h"

#include "common/space/space_fields.h"
#include "proto/convert/message_fields.h"

namespace hpo {
namespace {

constexpr const char* kDomains[] = {"float_domain", "int_domain", "categorical_domain"};

// Of what has a domain, which its list of fields is without.
template <typename T, typename Message>
struct FormWithDomain {
  using Wire = Message;

  static Wire Write(const T& value) {
    Wire proto = ToMessage<Wire>(value);
    *proto.mutable_domain() = ToProto(value.domain);
    return proto;
  }

  static absl::StatusOr<T> Read(const Wire& proto) {
    HPO_ASSIGN_OR_RETURN(T value, FromMessage<T>(proto));
    HPO_ASSIGN_OR_RETURN(value.domain, FromProto(proto.domain()));
    return value;
  }
};

}  // namespace

template <>
struct MessageForm<Parameter> : FormWithDomain<Parameter, v1::Parameter> {};
template <>
struct MessageForm<Narrowing> : FormWithDomain<Narrowing, v1::Narrowing> {};

void VisitFields(Is<SearchSpace> auto& space, auto visit) {
  visit({"parameters"}, space.parameters);
  visit({"narrowings"}, space.narrowings);
}

v1::Domain ToProto(const Domain& domain) {
  v1::Domain proto;
  WriteOneOf(domain, kDomains, proto);
  return proto;
}

absl::StatusOr<Domain> FromProto(const v1::Domain& proto) {
  HPO_ASSIGN_OR_RETURN(Domain domain, ReadOneOf<Domain>(proto, "domain", kDomains));
  auto* const integers = std::get_if<IntDomain>(&domain);
  if (integers != nullptr && integers->step == 0) integers->step = 1;
  return domain;
}

v1::SearchSpace ToProto(const SearchSpace& space) { return ToMessage<v1::SearchSpace>(space); }

absl::StatusOr<SearchSpace> FromProto(const v1::SearchSpace& proto) {
  return FromMessage<SearchSpace>(proto);
}

}  // namespace hpo
