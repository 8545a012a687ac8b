#include "server/http/page_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "server/json/watch_json.h"

namespace hpo::server {
namespace {

EventSource SourceOf(const StudyQueries& queries) {
  return {.watch =
              [&queries](const std::string& study, const std::function<void(JsonEvent)>& emit,
                         const std::function<bool()>& cancelled) {
                return WatchJson(queries, study, emit, cancelled);
              },
          .snapshot = [&queries](const std::string& study) { return SnapshotJson(queries, study); },
          .last_changes = [&queries] { return queries.LastChanges(); }};
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const PageOptions& options,
                                                              PageParts parts) {
  std::unique_ptr<PageSessions> sessions;
  if (options.identity != nullptr) {
    HPO_ASSIGN_OR_RETURN(sessions,
                         PageSessions::Create(options.key_folder, parts.tokens, parts.clock));
  }
  std::unique_ptr<PageServer> server(
      new PageServer(std::move(parts), std::move(sessions), options.names));
  HPO_ASSIGN_OR_RETURN(
      server->http_,
      HttpServer::Start({.listen = options.listen, .identity = options.identity}, server->api_));
  ListenAddress shown = server->http_->address();
  const bool is_any = shown.host == "0.0.0.0" || shown.host == "::";
  if (is_any && !options.names.empty()) shown.host = options.names.front();
  server->url_ = absl::StrCat(options.identity == nullptr ? "http://" : "https://",
                              FormatListenAddress(shown), "/");
  return server;
}

PageServer::PageServer(PageParts parts, std::unique_ptr<PageSessions> sessions,
                       const std::vector<std::string>& names)
    : sessions_(std::move(sessions)),
      gateway_(std::make_unique<JsonGateway>(std::move(parts.channel))),
      hub_(std::make_unique<EventHub>(SourceOf(parts.queries), HubOptions{})),
      api_({.access = parts.access,
            .sessions = sessions_.get(),
            .names = names,
            .version = std::string(Version()),
            .trouble = std::move(parts.trouble)},
           *gateway_, *hub_) {}

PageServer::~PageServer() { Stop(); }

// First no request comes any more; then what is under way ends, while its replies can still be
// called.
void PageServer::Stop() {
  if (http_ != nullptr) http_->Stop();
  hub_.reset();
  gateway_.reset();
}

}  // namespace hpo::server
