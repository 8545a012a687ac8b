// What is around every page: heading, navigation, notices, and what is said where the server does
// not answer or wants a token.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { connection, isLive, recordedAt } from "./api/call";
import { logOut, refusalOf, session } from "./api/session";
import { time } from "./format/format";
import { Notices } from "./parts/notices";
import { Link, path } from "./router";
import { chooseTheme, theme } from "./state/theme";

export function Shell({ children }: { children: ComponentChildren }) {
  const recorded = recordedAt();
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <Link to="/" class="name">
          hpo
        </Link>
        {isLive() && (
          <nav aria-label="Pages">
            <Link to="/" current={path.value === "/" || path.value.startsWith("/studies")}>
              Studies
            </Link>
            <Link to="/fleet" current={path.value === "/fleet"}>
              Fleet
            </Link>
          </nav>
        )}
        {recorded !== undefined && <span class="hint">as of {time(recorded)}</span>}
        <span class="space" />
        {session.value && (
          <span class="hint" title={`hpo-server ${session.value.version}`}>
            {session.value.name} ({session.value.role})
          </span>
        )}
        {session.value?.tls && (
          <button type="button" class="quiet" onClick={() => void logOut()}>
            Log out
          </button>
        )}
        <button
          type="button"
          class="quiet"
          onClick={() => chooseTheme(theme.value === "dark" ? "light" : "dark")}
          aria-label={theme.value === "dark" ? "Light colours" : "Dark colours"}
          title={theme.value === "dark" ? "Light colours" : "Dark colours"}
        >
          {theme.value === "dark" ? "☀" : "☾"}
        </button>
      </header>
      {connection.value === "lost" && (
        <div class="banner" role="alert">
          The server does not answer. What you see is what it said last; the page goes on by itself once it is back.
        </div>
      )}
      <main id="content" tabIndex={-1}>
        {connection.value === "refused" ? <TokenForm /> : children}
      </main>
      <Notices />
    </>
  );
}

function TokenForm() {
  const [problem, setProblem] = useState("");
  const field = useRef<HTMLInputElement>(null);
  // The address with the token makes the session (web/API.md). A wrong one would lead to a page
  // with nothing but the server's line.
  const enter = async (form: HTMLFormElement, field: HTMLInputElement) => {
    field.value = field.value.trim();
    const refusal = await refusalOf(field.value);
    setProblem(refusal);
    if (refusal === "") form.submit();
  };
  return (
    <form
      method="get"
      class="card token"
      onSubmit={(event) => {
        event.preventDefault();
        if (field.current !== null) void enter(event.currentTarget, field.current);
      }}
    >
      <h1>This server asks for a token</h1>
      <p>
        Paste a join string (<code>hpo1.…@host:port</code>) or its secret. <code>hpo admin token create</code> makes one.
      </p>
      <label>
        Token
        <input ref={field} name="token" type="password" autocomplete="off" required aria-invalid={problem !== ""} aria-describedby="token-problem" />
      </label>
      <button type="submit" class="main">
        Log in
      </button>
      {problem !== "" && (
        <p id="token-problem" class="problem" role="alert">
          {problem}
        </p>
      )}
    </form>
  );
}
