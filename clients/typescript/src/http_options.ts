// Options of the client over HTTP. Wrong ones fail at once, in the constructor.

import { checkToken } from "./bearer.js";
import { COMMON_NAMES, commonSettings, type CommonOptions, type CommonSettings } from "./common_options.js";
import { ConfigurationError } from "./errors.js";

/** Options of a client over HTTP. */
export interface HttpOptions extends CommonOptions {
  /** What sends requests. The `fetch` of the runtime if not set. */
  fetch?: typeof fetch;
}

/** Options that were checked. @internal */
export interface HttpSettings extends CommonSettings {
  readonly url: string;
  readonly fetch: typeof fetch | undefined;
}

const PATH = "/weir.v1.RateLimitService/ShouldAllow";

/** Checks options. Throws ConfigurationError. @internal */
export function httpSettings(baseUrl: string, options: HttpOptions): HttpSettings {
  const common = commonSettings(options, [...COMMON_NAMES, "fetch"]);
  const { fetch, token, insecureToken } = options;
  if (fetch !== undefined && typeof (fetch as unknown) !== "function") throw new ConfigurationError("fetch: not a function");
  const base = parseUrl(baseUrl);
  const isPrivate = base.protocol === "https:" || isLoopback(base.hostname) || insecureToken === true;
  checkToken(token, { private: isPrivate, text: base.origin, remedy: "use https:" });
  return { ...common, url: `${base.origin}${base.pathname.replace(/\/+$/, "")}${PATH}`, fetch };
}

// A user name with its password may be part of a URL, so the URL is part of no text.
function parseUrl(baseUrl: string): URL {
  const given: unknown = baseUrl;
  const url = typeof given === "string" && URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new ConfigurationError('baseUrl: not a URL such as "https://weir.example.com:8082"');
  }
  if (url.username !== "" || url.password !== "") throw new ConfigurationError("baseUrl: it has a user name or a password; set token");
  if (url.search !== "" || url.hash !== "") throw new ConfigurationError("baseUrl: it has a query or a fragment");
  return url;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
