// What a call is about, for the audit log: "study=criteria number=12". Pure.
#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace hpo::server {

// Of the fields of a request that name what it is about, those that it has. A value that is not a
// plain word is in quotes and escaped, so that it cannot pass for another field.
std::string SubjectOf(const google::protobuf::Message& request);

// Of an answer with a study: its name, which the request had in a file.
std::string SubjectOfAnswer(const google::protobuf::Message& answer);

}  // namespace hpo::server
