// TLS of a client. Nothing is ever unverified.

import { readFileSync } from "node:fs";

import { ChannelCredentials, credentials } from "@grpc/grpc-js";

import { ConfigurationError } from "./errors.js";

/** Roots, and a certificate with its key: names of PEM files, or their bytes. */
export interface Tls {
  /** The authorities that may have signed the certificate of the server. Those of Node if not set. */
  roots?: string | Uint8Array;
  /** The client's own certificate, with its chain. */
  certificate?: string | Uint8Array;
  /** The key of the certificate. */
  key?: string | Uint8Array;
}

/** Reads files and returns credentials. Throws ConfigurationError. @internal */
export function credentialsOf(tls: Tls | undefined): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  const given: unknown = tls;
  if (typeof given !== "object" || given === null) {
    throw new ConfigurationError("tls: not an object with roots, certificate and key");
  }
  if ((tls.certificate === undefined) !== (tls.key === undefined)) {
    throw new ConfigurationError("tls: certificate and key are set together or not at all");
  }
  const [roots, key, certificate] = [read("roots", tls.roots), read("key", tls.key), read("certificate", tls.certificate)];
  try {
    return credentials.createSsl(roots, key, certificate);
  } catch (error) {
    throw new ConfigurationError(`tls: ${(error as Error).message}`);
  }
}

function read(name: string, file: string | Uint8Array | undefined): Buffer | null {
  if (file === undefined) return null;
  if (typeof file !== "string") return Buffer.from(file);
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigurationError(`tls.${name}: ${(error as Error).message}`);
  }
}
