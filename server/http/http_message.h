// A request and its answer, as the page's parts see them. Whoever speaks HTTP (http_server.h) makes
// the one and sends the other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/access/access_control.h"

namespace hpo::server {

// What stands before a request's body.
struct RequestHead {
  std::string method;                                      // "GET", in capitals
  std::string path;                                        // decoded; begins with '/'
  std::string raw_path;                                    // as it was sent, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in their order
  std::map<std::string, std::string> headers;  // by name in lower case; the first of equal ones
  std::string from;                            // "10.0.0.7:40112"
  bool has_tls = false;
  int port = 0;                  // of the server
  std::optional<Caller> caller;  // whom HttpSite::Screen has admitted

  // Empty: there is none.
  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  std::optional<std::string> Query(absl::string_view name) const {
    for (const auto& [key, value] : query) {
      if (key == name) return value;
    }
    return std::nullopt;
  }
};

struct HttpAnswer {
  int status = 200;
  std::string content_type;                                  // empty: there is no body
  std::vector<std::pair<std::string, std::string>> headers;  // beside those that all answers have
  std::string body;
};

// The way of one answer. Thread-safe; each answer is either one Send, or Begin, any number of
// Writes, each after the one before was taken, and End.
class Reply {
 public:
  virtual ~Reply() = default;
  virtual void Send(HttpAnswer response) = 0;
  // An answer in pieces; `head` has no body.
  virtual void Begin(HttpAnswer head) = 0;
  // `taken(false)`: the client has gone, or reads too slowly; nothing more can be sent. Called on a
  // thread of the server, which it must not hold up.
  virtual void Write(std::string piece, std::function<void(bool)> taken) = 0;
  virtual void End() = 0;
  // Cuts the connection off.
  virtual void Abort() = 0;
};

// What answers requests. Both are called on the server's one thread, which they must not hold up.
class HttpSite {
 public:
  virtual ~HttpSite() = default;
  // Before the body is read; an answer here is the last one of the connection where there is a
  // body.
  virtual std::optional<HttpAnswer> Screen(RequestHead& head) = 0;
  virtual void Serve(const RequestHead& head, std::string body, std::shared_ptr<Reply> reply) = 0;
};

}  // namespace hpo::server
