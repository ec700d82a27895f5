// Options of the client over gRPC. Wrong ones fail at once, in the constructor.

import type { ChannelCredentials } from "@grpc/grpc-js";

import { checkToken } from "./bearer.js";
import { checkBoolean, COMMON_NAMES, commonSettings, type CommonOptions, type CommonSettings } from "./common_options.js";
import { parseTarget, type Target } from "./target.js";
import { credentialsOf, type Tls } from "./tls.js";

/** Options of a client. */
export interface Options extends CommonOptions {
  /** TLS. Without it, the connection is plain text. */
  tls?: Tls;
  /** Whether to leave out nodes that hang or fail. True if not set. */
  ejection?: boolean;
}

/** Options that were checked. @internal */
export interface Settings extends CommonSettings {
  readonly target: Target;
  readonly credentials: ChannelCredentials;
  readonly ejection: boolean;
}

/** Checks options. Throws ConfigurationError. @internal */
export function settingsOf(target: string, options: Options): Settings {
  const common = commonSettings(options, [...COMMON_NAMES, "tls", "ejection"]);
  const { tls, ejection, token, insecureToken } = options;
  checkBoolean("ejection", ejection);
  const parsed = parseTarget(target);
  const isPrivate = tls !== undefined || parsed.loopback || insecureToken === true;
  checkToken(token, { private: isPrivate, text: parsed.text, remedy: "set tls" });
  return { ...common, target: parsed, credentials: credentialsOf(tls), ejection: ejection ?? true };
}
