// What proves that a worker holds a lease. The worker has the token, the database its hash alone.
#pragma once

#include <string>

#include "common/base/ids.h"

namespace hpo::server {

// The same for the same arguments, so that a repeated request is answered alike although the token
// is not stored. `secret` is the database's; `request_id` the worker's, of which the database knows
// only the hash; where it is empty the token is random.
std::string MakeLeaseToken(const std::string& secret, const std::string& request_id,
                           const TrialId& trial, AttemptNumber attempt);

std::string HashOfToken(const std::string& token);

}  // namespace hpo::server
