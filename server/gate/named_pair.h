// A pair of sockets by which gRPC knows who is at the other end.
#pragma once

#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace hpo::server {

// Two connected sockets, non-blocking, of the caller. For the second one, the name of its peer is
// `name`, in the abstract namespace of unix sockets.
//   AlreadyExists  somebody has the name
//   Unavailable    what else the system says
absl::StatusOr<std::pair<int, int>> NamedPair(const std::string& name);

// The same with a name of `next_name`, which is asked again, three times at most, where somebody
// has the name.
//   codes of `next_name` and NamedPair
absl::StatusOr<std::pair<int, int>> PairOfFreeName(
    absl::FunctionRef<absl::StatusOr<std::string>()> next_name);

}  // namespace hpo::server
