// `hpo open`: the page of a running server, in a browser.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cli/client/session.h"

namespace hpo::cli {

// The address of a study's page; `page` is the server's, "http://127.0.0.1:8080/". An empty study:
// the list of all. `token`: of whoever opens it; empty: the page needs none.
std::string PageAddress(const std::string& page, const std::string& study, absl::string_view token);

// Starts xdg-open, where this machine has it and a display. False: it was not started.
bool OpenInBrowser(const std::string& address);

// Prints the address of the page, and opens it in a browser where `in_browser` says so and there is
// one. With a join string the address has its secret, which the page takes for a cookie.
//   NotFound            the server has no such study
//   FailedPrecondition  it serves no page
absl::Status OpenPage(Session& session, bool in_browser);

}  // namespace hpo::cli
