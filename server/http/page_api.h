// The page's site: files, calls of the API as JSON, streams of events, and who may have them.
// web/API.md is its contract.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/access/access_control.h"
#include "server/access/page_sessions.h"
#include "server/http/event_hub.h"
#include "server/http/http_message.h"
#include "server/http/page_files.h"
#include "server/json/json_gateway.h"

namespace hpo::server {

struct PageSite {
  AccessControl& access;
  // Null: the page is served without TLS, and whoever reaches it is of this machine, as with gRPC.
  const PageSessions* sessions = nullptr;
  // Names of this server beside localhost and addresses (CheckOrigin).
  std::vector<std::string> names;
  std::string version;
  // What keeps the server from working; empty: nothing.
  std::function<std::string()> trouble;
};

// Names of callers for calls within the process: one for each token and host, so that a client's
// limits hold over its connections. Thread-safe.
class CallerNames {
 public:
  explicit CallerNames(AccessControl& access) : access_(access) {}
  ~CallerNames();
  CallerNames(const CallerNames&) = delete;

  std::string Of(const Caller& caller);

 private:
  static constexpr size_t kMost = 1024;
  using Key = std::pair<int64_t, std::string>;  // token, host

  AccessControl& access_;
  absl::Mutex mutex_;
  std::list<std::pair<Key, std::string>> recent_ ABSL_GUARDED_BY(mutex_);  // the newest first
  std::map<Key, std::list<std::pair<Key, std::string>>::iterator> known_ ABSL_GUARDED_BY(mutex_);
};

class PageApi final : public HttpSite {
 public:
  // `gateway` and `hub` outlive it; so does what `site` refers to.
  PageApi(PageSite site, JsonGateway& gateway, EventHub& hub);

  std::optional<HttpAnswer> Screen(RequestHead& head) override;
  void Serve(const RequestHead& head, std::string body, std::shared_ptr<Reply> reply) override;

 private:
  absl::StatusOr<Caller> CallerOf(const RequestHead& head) const;
  std::optional<HttpAnswer> ScreenApi(RequestHead& head) const;
  // Takes a token from the query, and leads to the same page without it.
  HttpAnswer Enter(const RequestHead& head, const std::string& token) const;
  HttpAnswer Leave(const RequestHead& head) const;
  HttpAnswer Session(const RequestHead& head) const;
  HttpAnswer Health() const;
  void Call(const RequestHead& head, const std::string& body, std::shared_ptr<Reply> reply);
  void Watch(const RequestHead& head, std::shared_ptr<Reply> reply);
  absl::Status AddViewer(const RequestHead& head, const std::shared_ptr<Reply>& reply);

  const PageSite site_;
  JsonGateway& gateway_;
  EventHub& hub_;
  const PageFiles files_;
  CallerNames names_;
};

}  // namespace hpo::server
